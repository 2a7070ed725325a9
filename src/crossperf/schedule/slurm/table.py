"""The file that the controller reads: for each application, user and input the partitions, best first.

A text of lines with fields between tabs, made for a reader that must not hold the controller up: keys are sorted by a
sum over them, so that a few small reads find one in a table of any size; lines about the site follow them. The header
carries the size and a digest, every line a sum and the end the digest again, so that a torn, mixed or spoiled file is
refused without reading all of it. ``crossperf.lua`` is the other reader.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote_to_bytes

from crossperf.errors import CrossperfError
from crossperf.files import whole
from crossperf.schedule.slurm.names import Named, bytes_of

VERSION = 1
#: Bytes of the longest line that the controller finds, half of what it reads at a time.
LONGEST_LINE = 2048
_HEADER = "crossperf-table\t{version}\t{size:010d}\t{keys_end:010d}\t{digest}\n"
_MODULUS = 4294967291
_UNKNOWN = "-"
#: Application, user and class of input; an empty user or input stands for any.
Key = tuple[str, str, str]


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
    """What the nodes of a partition all have; ``None`` where it is not known."""

    partition: str
    platform: str
    nodes: int | None = None
    cpus: int | None = None
    memory_mb: int | None = None
    features: tuple[str, ...] | None = None
    gres: Mapping[str, int] | None = None
    price_per_node_hour: float = 0.0


@dataclass(frozen=True)
class PlacementTable:
    """A table with where it comes from; `made` and `expires` are seconds since 1970, `expires` 0 where it lasts."""

    default: str
    policy: str
    partitions: tuple[PartitionFacts, ...]
    rows: Mapping[Key, KeyRow] = field(repr=False)
    made: int = 0
    expires: int = 0

    def find(self, job: Named) -> tuple[Key, KeyRow] | None:
        """Return the most special key of a job that is known, with what is known of it."""
        return next(((key, self.rows[key]) for key in job.keys() if key in self.rows), None)  # noqa: SIM118

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the table, whole or not at all."""
        data = self.to_bytes()
        with whole(path) as part:
            part.write_bytes(data)

    @property
    def too_long(self) -> int:
        """How many keys the file leaves out because their line is too long for the controller."""
        return sum(len(line) > LONGEST_LINE for line in self._key_lines())

    def _key_lines(self) -> list[bytes]:
        return sorted(_summed(_line_of_row(key, row)) for key, row in self.rows.items())

    def to_bytes(self) -> bytes:
        """Return the file's content; keys whose line is too long for the controller are left out."""
        site = ("site", escape(self.policy), str(self.made), str(self.expires), escape(self.default))
        tail = b"".join(_summed(fields) for fields in (site, *map(_line_of_facts, self.partitions)))
        body = b"".join(line for line in self._key_lines() if len(line) <= LONGEST_LINE)
        digest = hashlib.sha256(body + tail).hexdigest()[:16]
        end = f"end\t{digest}\n".encode()
        keys_end = len(_HEADER.format(version=VERSION, size=0, keys_end=0, digest=digest)) + len(body)
        size = keys_end + len(tail) + len(end)
        return _HEADER.format(version=VERSION, size=size, keys_end=keys_end, digest=digest).encode() + body + tail + end


def _line_of_facts(facts: PartitionFacts) -> tuple[str, ...]:
    gres = None if facts.gres is None else ",".join(f"{name}={count}" for name, count in facts.gres.items())
    features = None if facts.features is None else ",".join(facts.features)
    numbers = [_UNKNOWN if n is None else str(n) for n in (facts.nodes, facts.cpus, facts.memory_mb)]
    texts = [_UNKNOWN if text is None else text for text in (features, gres)]
    price = repr(facts.price_per_node_hour)
    return ("partition", escape(facts.partition), escape(facts.platform), *numbers, *texts, price)


def _line_of_row(key: Key, row: KeyRow) -> tuple[str, ...]:
    choices = (f"{escape(c.partition)},{c.relative:.6g},{c.low:.6g},{c.high:.6g},{c.runs}" for c in row.choices)
    seconds = _UNKNOWN if row.seconds is None else f"{row.seconds:.6g}"
    names = [escape(name) for name in key]
    return ("key", checksum(bytes_of("\t".join(names))), *names, seconds, ";".join(choices))


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


def read(path: str | os.PathLike[str]) -> PlacementTable:
    """Return a table from its file; one that is not as it was written raises."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        advice = "Write one with 'crossperf slurm table'."
        raise SlurmTableError(f"{path}: {error.strerror}, expected a table. {advice}", path=str(path)) from error
    lines = _checked(data, str(path))
    site = next((fields for fields in lines if fields[0] == "site"), ["site", "", "0", "0", ""])
    partitions = tuple(_facts_of(fields) for fields in lines if fields[0] == "partition")
    rows = dict(_row_of(fields) for fields in lines if fields[0] == "key")
    return PlacementTable(unescape(site[4]), unescape(site[1]), partitions, rows, int(site[2]), int(site[3]))


def _checked(data: bytes, path: str) -> list[list[str]]:
    """Return the fields of each line of a sound file."""
    header, _, rest = data.partition(b"\n")
    stated = re.fullmatch(rb"crossperf-table\t(\d+)\t(\d{10})\t(\d{10})\t([0-9a-f]{16})", header)
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
    _, partition, platform, *numbers, features, gres, price = fields
    nodes, cpus, memory_mb = (None if text == _UNKNOWN else int(text) for text in numbers)
    listed = None if features == _UNKNOWN else tuple(filter(None, features.split(",")))
    pairs = [pair.rpartition("=") for pair in gres.split(",") if pair]
    counts = None if gres == _UNKNOWN else {name: int(count) for name, _, count in pairs}
    names = (unescape(partition), unescape(platform))
    return PartitionFacts(*names, nodes, cpus, memory_mb, listed, counts, float(price))


def _row_of(fields: Sequence[str]) -> tuple[Key, KeyRow]:
    _, _, app, user, input_, seconds, choices = fields
    ranked = []
    for name, relative, low, high, runs in (text.split(",") for text in choices.split(";") if text):
        ranked.append(PartitionChoice(unescape(name), float(relative), float(low), float(high), int(runs)))
    known_s = None if seconds == _UNKNOWN else float(seconds)
    return (unescape(app), unescape(user), unescape(input_)), KeyRow(tuple(ranked), known_s)
