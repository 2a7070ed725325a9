"""Reads profiles of Score-P (``profile.cubex``) and Scalasca (``summary.cubex``) in the format CUBE 4.

The file is an archive (tar) of ``anchor.xml``, which describes metrics, call tree and threads, and of two files for
each metric: ``N.index`` names the nodes of the call tree that have values, ``N.data`` holds a row for each of them
with a value for each thread. A metric is inclusive, so that the roots of the tree hold its total, or exclusive, so
that its total is the sum over all nodes.
"""

from __future__ import annotations

import math
import struct
import sys
import zlib
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO
from xml.parsers import expat

from crossperf.catalog import canonical
from crossperf.errors import some_of
from crossperf.importers.files import SPELLINGS, start_of, unusable
from crossperf.importers.measurement import Measurement

ANCHOR = "anchor.xml"
_BLOCK = 512
_INDEX, _DATA, _COMPRESSED = b"CUBEX.INDEX", b"CUBEX.DATA", b"ZCUBEX.DATA"
#: Types of values by the letter that `array` has for them; minima and maxima do not add up.
_TYPES = {
    **dict.fromkeys(("UINT64", "UNSIGNED INTEGER"), "Q"),
    **dict.fromkeys(("INT64", "INTEGER", "SIGNED INTEGER"), "q"),
    **dict.fromkeys(("UINT32", "UNSIGNED INT"), "I"),
    **dict.fromkeys(("INT32", "INT", "SIGNED INT"), "i"),
    **dict.fromkeys(("DOUBLE", "FLOAT"), "d"),
}
#: The most that a compressed description of the call tree may unpack to, and the longest row of values.
_MOST_XML, _LONGEST_ROW = 1 << 30, 1 << 28
_CHUNK = 1 << 20
#: What Score-P called the region of a whole program before it gave that region the program's name.
_NAMELESS = "PARALLEL"
_AGAIN = "Copy the file again, or measure again."


def reads(path: Path) -> bool:
    """Tell whether a file is an archive in the format CUBE 4, or a folder in which Score-P left one."""
    try:
        if path.is_dir():
            return _in_folder(path) is not None
        # The magic of tar stands after the first name.
        if start_of(path, _BLOCK)[257:262] != b"ustar":
            return False
        with path.open("rb") as file:
            return ANCHOR in _members(file)
    except (OSError, ValueError):
        return False


def read(path: Path) -> list[Measurement]:
    """Return the one execution that a profile holds."""
    profile = _in_folder(path) if path.is_dir() else path
    if profile is None:
        raise unusable(path, "found no profile.cubex in the folder, expected what Score-P writes. Name the file.")
    try:
        with profile.open("rb") as file:
            return [_measurement(_Cube(file, _members(file)))]
    except (ValueError, LookupError, struct.error, zlib.error, expat.ExpatError, OverflowError, MemoryError) as error:
        problem = f"found a file that breaks off or is damaged ({error}), expected a profile in the format CUBE 4"
        hint = "unpack it with gunzip first. " if start_of(profile, 2) == b"\x1f\x8b" else ""
        raise unusable(profile, f"{problem}. {hint}{_AGAIN}") from error


def _in_folder(folder: Path) -> Path | None:
    return next((file for name in ("profile.cubex", "summary.cubex") if (file := folder / name).is_file()), None)


def _members(file: BinaryIO) -> dict[str, tuple[int, int]]:
    """Return where each member of an archive starts, and its size, which never goes past the end of the file.

    Checksums are passed over: CUBE 4.8 writes wrong ones. Links and folders have no content.
    """
    length = file.seek(0, 2)
    members: dict[str, tuple[int, int]] = {}
    at = 0
    while at + _BLOCK <= length:
        file.seek(at)
        header = file.read(_BLOCK)
        if not header.strip(b"\0"):
            break
        size = _size(header[124:136])
        if size > length - at - _BLOCK:
            raise ValueError(f"a member of {size:,} bytes goes past its end")
        if header[156:157] in (b"0", b"\0"):
            name = header[:100].split(b"\0")[0].decode("utf-8", "replace")
            members.setdefault(name.removeprefix("./"), (at + _BLOCK, size))
        at += _BLOCK + -(-size // _BLOCK) * _BLOCK
    return members


def _size(octal: bytes) -> int:
    if octal[0] & 0x80:  # over 8 GiB: a binary number
        return int.from_bytes(octal[1:], "big")
    return int(octal.strip(b"\0 ") or b"0", 8)


@dataclass
class _CubeMetric:
    """A metric of the file: its number, unit and type of values."""

    number: str
    inclusive: bool
    name: str = ""
    unit: str = ""
    type: str = ""


@dataclass
class _Description:
    """What ``anchor.xml`` tells: metrics, the sizes of the trees of calls, processes and threads."""

    attributes: dict[str, str] = field(default_factory=dict)
    metrics: list[_CubeMetric] = field(default_factory=list)
    tree_sizes: list[int] = field(default_factory=list)
    #: Everything that has values of its own: threads of a processor, and streams of a GPU.
    locations: int = 0
    #: Threads by process.
    threads: Counter[str] = field(default_factory=Counter)
    nodes: list[str] = field(default_factory=list)
    #: Name of the region at the first root, where Score-P made that region: the program's.
    program: str | None = None

    @property
    def roots(self) -> list[int]:
        """The numbers of the roots: each follows on all nodes of the trees before it, in both orders of CUBE."""
        return [sum(self.tree_sizes[:at]) for at in range(len(self.tree_sizes))]


class _AnchorParser:
    """Reads ``anchor.xml`` as a stream; entities of its own are refused."""

    def __init__(self) -> None:
        self.about = _Description()
        self._open: list[tuple[str, dict[str, str]]] = []
        self._text: list[str] = []
        self._regions: dict[str, dict[str, str]] = defaultdict(dict)
        self._callee: str | None = None
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._text.append
        self._parser.EntityDeclHandler = self._refuse

    def parse(self, chunks: Iterator[bytes]) -> _Description:
        for chunk in chunks:
            self._parser.Parse(chunk)
        self._parser.Parse(b"", True)
        root = self._regions[self._callee or ""]
        own = root.get("role") == "artificial" and root.get("name") != _NAMELESS
        self.about.program = root.get("name") if own else None
        return self.about

    def _refuse(self, name: str, *_: Any) -> None:
        raise ValueError(f"an entity {name!r} of its own")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._text.clear()
        if tag == "metric":
            self.about.metrics.append(_CubeMetric(attributes["id"], attributes.get("type") == "INCLUSIVE"))
        elif tag == "cnode":
            if all(outer != "cnode" for outer, _ in self._open):
                self.about.tree_sizes.append(0)
                self._callee = self._callee or attributes.get("calleeId")
            self.about.tree_sizes[-1] += 1
        elif tag == "attr" and len(self._open) == 1:
            self.about.attributes[attributes.get("key", "")] = attributes.get("value", "")
        elif tag == "location":
            self.about.locations += 1
        self._open.append((tag, attributes))

    def _end(self, tag: str) -> None:
        self._open.pop()
        text, (parent, attributes) = "".join(self._text).strip(), self._open[-1] if self._open else ("", {})
        self._text.clear()
        if parent == "metric" and self.about.metrics:
            metric = self.about.metrics[-1]
            if tag == "uniq_name":
                metric.name = text
            elif tag == "dtype":
                metric.type = text.upper()
            elif tag == "uom":
                metric.unit = text
        elif parent == "region" and tag in ("name", "role"):
            self._regions[attributes.get("id", "")][tag] = text
        elif parent == "location" and tag == "type" and "thread" in text:
            process = next((outer.get("Id", "") for name, outer in self._open if name == "locationgroup"), "")
            self.about.threads[process] += 1
        elif parent == "systemtreenode" and tag == "name" and text.startswith("node "):
            self.about.nodes.append(text.removeprefix("node "))


class _Cube:
    """An open archive: its description, and the totals of its metrics by thread."""

    def __init__(self, file: BinaryIO, members: Mapping[str, tuple[int, int]]) -> None:
        self._file = file
        self._members = members
        if ANCHOR not in members:
            raise ValueError(f"no {ANCHOR} in it")
        self.about = _AnchorParser().parse(self._anchor())

    def _anchor(self) -> Iterator[bytes]:
        start, size = self._members[ANCHOR]
        self._file.seek(start)
        gzipped = self._file.read(2) == b"\x1f\x8b"
        unzipping = zlib.decompressobj(31)
        room = _MOST_XML
        for at in range(0, size, _CHUNK):
            chunk = self._bytes(start + at, min(_CHUNK, size - at))
            while gzipped and chunk:
                part = unzipping.decompress(chunk, _CHUNK)
                chunk, room = unzipping.unconsumed_tail, room - len(part)
                if room < 0:
                    raise ValueError(f"{ANCHOR} unpacks to more than {_MOST_XML:,} bytes")
                yield part
            yield chunk

    def has(self, metric: _CubeMetric) -> bool:
        """Tell whether the archive holds values of a metric that add up; other metrics follow from these."""
        files = (f"{metric.number}.index", f"{metric.number}.data")
        return metric.type in _TYPES and all(name in self._members for name in files)

    def totals(self, metric: _CubeMetric) -> list[float]:
        """Return the total of a metric for each thread."""
        order, nodes = self._index(metric)
        wanted = set(self.about.roots) if metric.inclusive else None
        totals = [0.0] * self.about.locations
        for node, row in zip(nodes, self._data(metric, order, len(nodes)), strict=True):
            if wanted is None or node in wanted:
                values = array(_TYPES[metric.type], row())
                if order != sys.byteorder:
                    values.byteswap()
                totals = [total + value for total, value in zip(totals, values, strict=True)]
        if not all(map(math.isfinite, totals)):
            raise ValueError(f"{metric.number}.data holds what is no number")
        return totals

    def _index(self, metric: _CubeMetric) -> tuple[str, array[int]]:
        """Return the order of bytes and the numbers of the nodes that have values."""
        start, size = self._members[f"{metric.number}.index"]
        self._file.seek(start)
        content = self._file.read(size)
        if not content.startswith(_INDEX):
            raise ValueError(f"{metric.number}.index does not start with {_INDEX.decode()}")
        sign, order = ("<", "little") if content[11:15] == b"\1\0\0\0" else (">", "big")
        _, _, count = struct.unpack_from(f"{sign}hbi", content, 15)
        nodes = array("i", content[22:])
        if order != sys.byteorder:
            nodes.byteswap()
        if count != len(nodes):
            raise ValueError(f"{metric.number}.index names {len(nodes):,} nodes instead of {count:,}")
        return order, nodes

    def _data(self, metric: _CubeMetric, order: str, count: int) -> Iterator[Callable[[], bytes]]:
        """Yield a function for each row of values that reads it."""
        start, size = self._members[f"{metric.number}.data"]
        length = array(_TYPES[metric.type]).itemsize * self.about.locations
        if length > _LONGEST_ROW:
            raise ValueError(f"a row of {length:,} bytes, more than {_LONGEST_ROW:,}")
        self._file.seek(start)
        head = self._file.read(min(size, len(_COMPRESSED)))
        if head.startswith(_DATA):
            if size != len(_DATA) + count * length:
                raise ValueError(f"{metric.number}.data has {size:,} bytes instead of {len(_DATA) + count * length:,}")
            for row in range(count):
                yield partial(self._bytes, start + len(_DATA) + row * length, length)
        elif head == _COMPRESSED:
            yield from self._compressed(metric, order, count, length)
        else:
            raise ValueError(f"{metric.number}.data does not start with {_DATA.decode()}")

    def _compressed(self, metric: _CubeMetric, order: str, count: int, length: int) -> Iterator[Callable[[], bytes]]:
        """Yield the rows of a compressed file: a table of places and sizes, then each row by itself."""
        start, size = self._members[f"{metric.number}.data"]
        sign = "<" if order == "little" else ">"
        at = start + len(_COMPRESSED)
        (rows,) = struct.unpack(f"{sign}q", self._bytes(at, 8))
        if rows != count or len(_COMPRESSED) + 8 + 24 * rows > size:
            raise ValueError(f"{metric.number}.data has {rows:,} rows instead of {count:,}")
        table = struct.unpack(f"{sign}{3 * rows}q", self._bytes(at + 8, 24 * rows))
        place = at + 8 + 24 * rows
        for packed in table[2::3]:
            if packed < 0 or place + packed > start + size:
                raise ValueError(f"a row of {metric.number}.data goes past its end")
            yield partial(self._unpacked, place, packed, length)
            place += packed

    def _unpacked(self, place: int, packed: int, length: int) -> bytes:
        if packed == 0:
            return bytes(length)
        row = zlib.decompressobj().decompress(self._bytes(place, packed), length + 1)
        if len(row) != length:
            raise ValueError(f"a row unpacks to {len(row):,} bytes instead of {length:,}")
        return row

    def _bytes(self, at: int, size: int) -> bytes:
        self._file.seek(at)
        return self._file.read(size)


def _measurement(cube: _Cube) -> Measurement:
    about = cube.about
    if not about.threads or not about.tree_sizes:
        raise ValueError("no threads or no call tree in it")
    runtime_s, events, counters = None, dict[str, float | None](), dict[str, float | None]()
    wrapped = []
    for metric in filter(cube.has, about.metrics):
        totals = cube.totals(metric)
        counter = SPELLINGS["scorep"]["counters"].get(metric.name)
        if metric.name == "time":
            runtime_s = max(totals) * SPELLINGS["scorep"]["seconds"].get(metric.unit, 1.0)
        elif any(total >= 2.0**63 for total in totals):  # a counter that ran backwards
            wrapped.append(metric.name)
            events[canonical(metric.name)] = None
        else:
            (events if counter is None else counters)[counter or canonical(metric.name)] = sum(totals)
    counters["threads"] = float(about.threads.total())
    notes = [
        "runtime is the longest time of any thread" if runtime_s else "no runtime: the profile has no metric 'time'"
    ]
    if wrapped:
        notes.append(f"{some_of(wrapped)} came out negative and is not used")
    return Measurement(
        "scorep", events, about.attributes.get("Creator"), (), runtime_s, tuple(notes), _facts(about), counters
    )


def _facts(about: _Description) -> dict[str, Any]:
    nodes = sorted(set(about.nodes))
    return {
        "app": about.program,
        "ranks": len(about.threads),
        "threads": max(about.threads.values()),
        "host": nodes[0] if len(nodes) == 1 else None,
        "hosts": nodes or None,
    }
