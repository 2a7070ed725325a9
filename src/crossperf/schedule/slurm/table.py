"""The file that the controller reads: for each application, user and input the partitions, best first.

A text of lines with fields between tabs, made for a reader that must not hold the controller up: keys are sorted, so
that a few small reads find one in a table of any size; lines about the site follow them. The header carries the size
and a digest, every line a sum and the end the digest again, so that a torn, mixed or spoiled file is refused without
reading all of it. Names of applications, users and inputs are not in it, only salted sums over them: who knows a name
can look it up, and nobody can read the names off. ``crossperf.lua`` is the other reader.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote_to_bytes

from crossperf.documents import MEGABYTE, read_bytes
from crossperf.errors import CrossperfError
from crossperf.files import whole
from crossperf.schedule.slurm.names import Named, bytes_of

VERSION = 2
#: Bytes of the longest line that the controller finds, half of what it reads at a time.
LONGEST_LINE = 2048
_BEGINNING = b"crossperf-table\t"
_HEADER = "crossperf-table\t{version}\t{size:010d}\t{keys_end:010d}\t{digest}\n"
_MODULUS = 4294967291
#: Lua 5.1 has no integers, and its floats are exact up to 2^53: squares of what is below this prime are.
_PRIME = 67108859
#: Multipliers of the four sums that make the digest of a key.
_LANES = (40503, 15485863, 32452843, 49979687)
_UNKNOWN = "-"
_MOST_BYTES = 1024 * MEGABYTE
#: The policy of a table that gives jobs a list of partitions, for Slurm to start them where it can first.
LISTS = "list"
#: Application, user and class of input; an empty user or input stands for any.
Key = tuple[str, str, str]


def is_own(beginning: bytes) -> bool:
    r"""Tell by how a file begins whether it is a table for a controller, of any version, whole or torn.

    >>> is_own(b"crossperf-table\t2\t0000"), is_own(b"app,input,platform")
    (True, False)
    """
    return beginning.startswith(_BEGINNING)


class SlurmTableError(CrossperfError):
    """A table of predictions for Slurm cannot be read or written; ``path`` names it."""


@dataclass(frozen=True)
class PartitionChoice:
    """How long a job takes in a partition, over its time in the default one.

    `low` to `high` is the interval; `runs` is how many measured runs stand behind it, 0 where it is a prediction.
    """

    partition: str
    relative: float
    low: float
    high: float
    runs: int = 0


@dataclass(frozen=True)
class KeyRow:
    """What is known of a key: partitions, best first, and seconds in the default partition where they are known.

    Without choices, jobs of the key stay as they are, and no more general key counts for them.
    """

    choices: tuple[PartitionChoice, ...]
    seconds: float | None = None


@dataclass(frozen=True)
class PartitionFacts:
    """What the nodes of a partition all have; ``None`` where it is not known.

    A job that is sent there and asks for no generic resource asks for `adds`, such as ``gpu:1``. `qos` is the
    partition's QOS if it has one that lets every job in. `closed` says why no job is sent there.
    """

    partition: str
    platform: str
    nodes: int | None = None
    cpus: int | None = None
    memory_mb: int | None = None
    features: tuple[str, ...] | None = None
    gres: Mapping[str, int] | None = None
    price_per_node_hour: float = 0.0
    adds: str = ""
    qos: str = ""
    closed: str = ""


@dataclass(frozen=True)
class PlacementTable:
    """A table with where it comes from; `made` and `expires` are seconds since 1970.

    Until it expires, a job goes to the first partition that takes it; 0 never expires. After that, and where the policy
    is `LISTS`, it gets a list of those that are about as fast.
    """

    default: str
    policy: str
    partitions: tuple[PartitionFacts, ...]
    rows: Mapping[Key, KeyRow] = field(repr=False)
    made: int = 0
    expires: int = 0

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the table, whole or not at all; only another table for a controller is ever replaced."""
        data = self.to_bytes()
        with whole(path, ours=is_own) as part:
            part.write_bytes(data)

    @property
    def too_long(self) -> int:
        """How many keys the file leaves out because their line is too long for the controller."""
        return sum(len(line) > LONGEST_LINE for line in self._key_lines("salt"))

    def _key_lines(self, salt: str) -> list[bytes]:
        return sorted(_summed(_line_of_row(digest_of(key, salt), row)) for key, row in self.rows.items())

    def to_bytes(self) -> bytes:
        """Return the file's content; keys whose line is too long for the controller are left out."""
        # A salt of its own for each table; drawn from what it says, so that the same table is the same file.
        salt = hashlib.sha256(repr((self.default, self.made, sorted(self.rows))).encode(errors="replace")).hexdigest()
        words = (escape(self.policy), str(self.made), str(self.expires), escape(self.default), salt[:16])
        tail = b"".join(_summed(fields) for fields in (("site", *words), *map(_line_of_facts, self.partitions)))
        body = b"".join(line for line in self._key_lines(salt[:16]) if len(line) <= LONGEST_LINE)
        digest = hashlib.sha256(body + tail).hexdigest()[:16]
        end = f"end\t{digest}\n".encode()
        keys_end = len(_HEADER.format(version=VERSION, size=0, keys_end=0, digest=digest)) + len(body)
        size = keys_end + len(tail) + len(end)
        return _HEADER.format(version=VERSION, size=size, keys_end=keys_end, digest=digest).encode() + body + tail + end


@dataclass(frozen=True)
class StoredTable:
    """A table as its file holds it: rows by the digest of their key."""

    default: str
    policy: str
    partitions: tuple[PartitionFacts, ...]
    rows: Mapping[str, KeyRow] = field(repr=False)
    salt: str = ""
    made: int = 0
    expires: int = 0

    def row(self, key: Key) -> KeyRow | None:
        """Return what is known of a key, ``None`` where nothing is."""
        return self.rows.get(digest_of(key, self.salt))

    def find(self, job: Named) -> tuple[Key, KeyRow] | None:
        """Return the most special key of a job that is known, with what is known of it."""
        entries = ((key, self.row(key)) for key in job.keys())  # noqa: SIM118
        return next(((key, row) for key, row in entries if row is not None), None)


def digest_of(key: Key, salt: str) -> str:
    """Return four salted sums over a key, each of squares, so that they tell keys apart and not what they are.

    >>> len(digest_of(("lmp", "ann", "melt"), "0")), digest_of(("a", "", ""), "0") == digest_of(("", "a", ""), "0")
    (28, False)
    """
    a, b, c, d = _LANES
    w = x = y = z = 1
    for byte in bytes_of("\t".join((salt, *map(escape, key)))):
        w = (w * w + byte * a + 1) % _PRIME
        x = (x * x + byte * b + 2) % _PRIME
        y = (y * y + byte * c + 3) % _PRIME
        z = (z * z + byte * d + 4) % _PRIME
    return f"{w:07x}{x:07x}{y:07x}{z:07x}"


def _line_of_facts(facts: PartitionFacts) -> tuple[str, ...]:
    gres = None if facts.gres is None else ",".join(f"{name}={count}" for name, count in facts.gres.items())
    features = None if facts.features is None else ",".join(facts.features)
    numbers = [_UNKNOWN if n is None else str(n) for n in (facts.nodes, facts.cpus, facts.memory_mb)]
    texts = [_UNKNOWN if text is None else text for text in (features, gres)]
    more = [escape(text) or _UNKNOWN for text in (facts.adds, facts.qos, facts.closed)]
    price = repr(facts.price_per_node_hour)
    return ("partition", escape(facts.partition), escape(facts.platform), *numbers, *texts, price, *more)


def _line_of_row(digest: str, row: KeyRow) -> tuple[str, ...]:
    choices = (f"{escape(c.partition)},{c.relative:.6g},{c.low:.6g},{c.high:.6g},{c.runs}" for c in row.choices)
    seconds = _UNKNOWN if row.seconds is None else f"{row.seconds:.6g}"
    return ("key", digest, seconds, ";".join(choices))


def escape(text: str) -> str:
    """Return a text without tabs, line breaks and the marks between fields.

    >>> escape("a,b"), unescape("a%2Cb")
    ('a%2Cb', 'a,b')
    """
    return re.sub(r"[\x00-\x1f%,;\x7f]", lambda match: f"%{ord(match[0]):02X}", text)


def unescape(text: str) -> str:
    """Return the text that `escape` was given."""
    return unquote_to_bytes(bytes_of(text)).decode(errors="surrogateescape")


def checksum(data: bytes) -> str:
    """Return a sum over a line that one changed byte or two swapped ones change.

    >>> checksum(b"ab") == checksum(b"ba")
    False
    """
    total = 0
    for byte in data:
        total = (total * 257 + byte) % _MODULUS
    return f"{total:08x}"


def _summed(fields: Sequence[str]) -> bytes:
    body = bytes_of("\t".join(fields))
    return body + b"\t" + checksum(body).encode() + b"\n"


def read(path: str | os.PathLike[str]) -> StoredTable:
    """Return a table from its file; one that is not as it was written raises."""
    try:
        data = read_bytes(path, _MOST_BYTES)
    except OSError as error:
        advice = "Write one with 'crossperf slurm table'."
        raise SlurmTableError(f"{path}: {error.strerror}, expected a table. {advice}", path=str(path)) from error
    lines = _checked(data, str(path))
    site = next((fields for fields in lines if fields[0] == "site"), ["site", "", "0", "0", "", ""])
    partitions = tuple(_facts_of(fields) for fields in lines if fields[0] == "partition")
    rows = dict(_row_of(fields) for fields in lines if fields[0] == "key")
    names = unescape(site[4]), unescape(site[1])
    return StoredTable(*names, partitions, rows, site[5], int(site[2]), int(site[3]))


def _checked(data: bytes, path: str) -> list[list[str]]:
    """Return the fields of each line of a sound file."""
    header, _, rest = data.partition(b"\n")
    stated = re.fullmatch(rb"crossperf-table\t(\d{1,9})\t(\d{10})\t(\d{10})\t([0-9a-f]{16})", header)
    if stated is None or int(stated[1]) != VERSION:
        start = header[:60].decode(errors="replace")
        raise _unsound(path, f"starts with {start!r}, expected a table of predictions of version {VERSION}")
    body = rest.removesuffix(b"end\t" + stated[4] + b"\n")
    same = hashlib.sha256(body).hexdigest()[:16].encode() == stated[4]
    if int(stated[2]) != len(data) or body == rest or not same or not data.startswith(b"site\t", int(stated[3])):
        size = f"({len(data):,} bytes, expected {int(stated[2]):,})"
        raise _unsound(path, f"torn or changed since it was written {size}")
    return [line.split("\t")[:-1] for line in body.decode(errors="surrogateescape").split("\n")[:-1]]


def _unsound(path: str, problem: str) -> SlurmTableError:
    return SlurmTableError(f"{path}: {problem}. Write it again with 'crossperf slurm table'.", path=path)


def _facts_of(fields: Sequence[str]) -> PartitionFacts:
    _, partition, platform, *numbers, features, gres, price, adds, qos, closed = fields
    nodes, cpus, memory_mb = (None if text == _UNKNOWN else int(text) for text in numbers)
    listed = None if features == _UNKNOWN else tuple(filter(None, features.split(",")))
    pairs = [pair.rpartition("=") for pair in gres.split(",") if pair]
    counts = None if gres == _UNKNOWN else {name: int(count) for name, _, count in pairs}
    names = (unescape(partition), unescape(platform))
    more = ("" if text == _UNKNOWN else unescape(text) for text in (adds, qos, closed))
    return PartitionFacts(*names, nodes, cpus, memory_mb, listed, counts, float(price), *more)


def _row_of(fields: Sequence[str]) -> tuple[str, KeyRow]:
    _, digest, seconds, choices = fields
    ranked = []
    for name, relative, low, high, runs in (text.split(",") for text in choices.split(";") if text):
        ranked.append(PartitionChoice(unescape(name), float(relative), float(low), float(high), int(runs)))
    known_s = None if seconds == _UNKNOWN else float(seconds)
    return digest, KeyRow(tuple(ranked), known_s)
