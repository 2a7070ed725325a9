"""rocprof: reads the counters of AMD GPUs that rocprof, rocprofv2 and rocprofv3 wrote as CSV, and runs these tools.

rocprof and rocprofv2 write one row for each kernel launch, with a column for each counter; rocprofv3 one row for
each counter of each launch. Counters are added up over all launches; percentages and averages are left out.

Written from AMD's description of the formats: no AMD GPU was at hand, so neither the reader nor the back end has
seen what a real one writes.
"""

from __future__ import annotations

import csv
import math
import re
import shutil
import subprocess
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crossperf.catalog import FORMULAS
from crossperf.collect.measurement import Measurement
from crossperf.collect.process import Runner, version_of
from crossperf.errors import ProfileFileError, some_of

#: Blocks of the hardware whose counters add up, and the few derived ones that do too.
_COUNTER = re.compile(
    r"(SQ|SQC|TA|TD|TCP|TCC|TCA|GRBM|CPC|CPF|SPI|GL1A|GL1C|GL2A|GL2C|GCEA)_\w+(\[\d+\])?"
    r"|Wavefronts|FetchSize|WriteSize|FETCH_SIZE|WRITE_SIZE"
)
_AVERAGED = ("_avr", "_avg", "_max", "_min", "_percent")
#: The spellings of a column in the three tools, in lower case and without separators.
_COLUMNS = {
    "kernel": ("kernelname",),
    "grid": ("grd", "gridsize"),
    "group": ("wgr", "workgroupsize"),
    "gpu": ("gpuid", "agentid"),
    "queue": ("queueid",),
    "process": ("pid", "processid"),
    "launch": ("dispatchid", "index"),
    "start": ("beginns", "starttimestamp"),
    "end": ("endns", "endtimestamp"),
    "counter": ("countername",),
    "value": ("countervalue",),
}
_NO_KERNEL = "launched no kernel"
_KERNELS_KEPT = 20
#: An MI200 has eight counters for the sequencer (SQ), four for each cache; every further group runs the command again.
_SEQUENCER_COUNTERS = 8
_ROCPROFV3, _ROCPROF = "rocprofv3", "rocprof"


@dataclass
class Launch:
    """One launch of one kernel; `workgroups` is ``None`` where the file does not tell."""

    kernel: str
    queue: tuple[str, ...]
    workgroups: float | None
    time_ns: float | None
    counters: dict[str, float | None] = field(default_factory=dict)


# --- files ------------------------------------------------------------------------------------------------


def reads(path: Path) -> bool:
    """Return whether this is CSV with counters by rocprof, or a folder in which rocprofv3 left such files."""
    try:
        if path.is_dir():
            return any(True for _ in path.rglob("*counter_collection.csv"))
        with path.open(encoding="utf-8", errors="replace", newline="") as file:
            header = next(csv.reader([file.readline(1 << 16)]), [])
    except (OSError, csv.Error):
        return False
    return _is_header(header)


def read(path: Path) -> list[Measurement]:
    """Return the sums over all launches of a file, or of a folder's files: one execution of a program.

    rocprofv3 executes a program once for each group of counters and writes a folder ``pass_N`` each time, with
    one file for each process; sizes of launches are taken from the first of them.
    """
    files = sorted(path.rglob("*counter_collection.csv")) if path.is_dir() else [path]
    if not files:
        raise ProfileFileError(
            f"{path}: no file *counter_collection.csv in it, expected what rocprofv3 writes. "
            "Record with: rocprofv3 --pmc SQ_WAVES --output-format csv -d FOLDER -- COMMAND",
            path=str(path),
        )
    passes: dict[str, list[Launch]] = defaultdict(list)
    for file in files:
        passes[next((part for part in file.parts[::-1] if part.startswith("pass_")), "")] += _launches(file)
    found = total(list(passes.values()))
    if _NO_KERNEL in found.notes:
        raise ProfileFileError(
            f"{path}: found no kernel launch, expected at least one. Profile a program that uses the GPU.",
            path=str(path),
        )
    return [found]


def total(passes: Sequence[Sequence[Launch]], wanted: Iterable[str] = ()) -> Measurement:
    """Return the sums over the launches of each execution; the first that holds a counter gives it.

    Parameters
    ----------
    wanted
        Counters that were asked for: without a value they are ``None`` rather than absent.
    """
    events: dict[str, float | None] = {}
    partly: list[str] = []
    for launches in passes:
        for name in dict.fromkeys(name for launch in launches for name in launch.counters):
            values = [launch.counters.get(name) for launch in launches]
            counted = [value for value in values if value is not None]
            if name not in events:
                events[name] = math.fsum(counted) if len(counted) == len(values) else None
                partly += [name] if len(counted) != len(values) else []
    events = dict.fromkeys(wanted) | events
    launches = next((launches for launches in passes if launches), [])
    sizes = [launch.workgroups for launch in launches]
    known = [size for size in sizes if size is not None]
    events["workgroups"] = math.fsum(known) if sizes and len(known) == len(sizes) else None
    events["queues"] = float(len({launch.queue for launch in launches})) if launches else None
    notes = [] if launches else [_NO_KERNEL]
    if partly:
        notes.append(f"left out, since some launches have no value: {some_of(partly)}")
    if len({len(launches) for launches in passes}) > 1:
        numbers = ", ".join(f"{len(launches):,}" for launches in passes)
        notes.append(f"the executions differ in their number of launches ({numbers}); their counters may not fit")
    return Measurement(
        _ROCPROF, events, notes=tuple(notes), facts={"platform_class": "gpu", "kernels": _kernels(launches)}
    )


def _kernels(launches: Sequence[Launch]) -> list[dict[str, Any]]:
    """Return the launches and time of each kernel, the longest-running first."""
    number = Counter(launch.kernel for launch in launches)
    time_ns: Counter[str] = Counter()
    for launch in launches:
        time_ns[launch.kernel] += int(launch.time_ns or 0)
    longest = sorted(number, key=lambda name: (-time_ns[name], name))[:_KERNELS_KEPT]
    return [{"name": name, "launches": number[name], "time_s": time_ns[name] * 1e-9} for name in longest]


def _is_header(header: Sequence[str]) -> bool:
    places = _places(header)
    long = "counter" in places and "value" in places
    return "kernel" in places and (long or ("grid" in places and any(map(_adds_up, header))))


def _places(header: Sequence[str]) -> dict[str, int]:
    plain = [re.sub(r"[-_\s]", "", name).lower() for name in header]
    return {name: plain.index(way) for name, ways in _COLUMNS.items() for way in ways if way in plain}


def _adds_up(name: str) -> bool:
    return _COUNTER.fullmatch(name) is not None and not name.endswith(_AVERAGED)


def _launches(path: Path) -> list[Launch]:
    try:
        with path.open(encoding="utf-8", errors="replace", newline="") as file:
            rows = [row for row in csv.reader(file) if row]
    except (OSError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or error
        raise ProfileFileError(f"{path}: cannot be read ({reason}). Check the path.", path=str(path)) from error
    if not rows or not _is_header(rows[0]):
        found = ",".join(rows[0])[:60] if rows else "an empty file"
        raise ProfileFileError(
            f"{path}: found {found!r}, expected a header with the kernel's name, its grid and counters, or "
            "Counter_Name and Counter_Value. Record with 'rocprof -i' or 'rocprofv3 --pmc ... --output-format csv'.",
            path=str(path),
        )
    header, *rows = rows
    for number, row in enumerate(rows, start=2):
        if len(row) != len(header):
            raise ProfileFileError(
                f"{path}, row {number}: found {len(row)} cells, expected {len(header)}. "
                "The file was cut short; record it again.",
                path=str(path),
            )
    places = _places(header)
    return list(_long(rows, places) if "counter" in places else _wide(header, rows, places))


def _wide(header: list[str], rows: list[list[str]], places: dict[str, int]) -> Iterator[Launch]:
    """Yield launches of one row each; instances of a unit (``TCC_HIT[0]``, ``TCC_HIT[1]``) make up its sum."""
    counters = [(at, re.sub(r"\[\d+\]$", "_sum", name)) for at, name in enumerate(header) if _adds_up(name)]
    for row in rows:
        launch = _launch(row, places)
        for at, name in counters:
            _add(launch.counters, name, _number(row[at]))
        yield launch


def _long(rows: list[list[str]], places: dict[str, int]) -> Iterator[Launch]:
    """Yield launches of a row for each counter; parts of the GPU that count apart make up one sum."""
    keys = [places[name] for name in ("process", "gpu", "queue", "launch") if name in places]
    launches: dict[tuple[str, ...], Launch] = {}
    for row in rows:
        launch = launches.setdefault(tuple(row[at] for at in keys), _launch(row, places))
        name = row[places["counter"]]
        if _adds_up(name):
            _add(launch.counters, re.sub(r"\[\d+\]$", "_sum", name), _number(row[places["value"]]))
    yield from launches.values()


def _add(counters: dict[str, float | None], name: str, value: float | None) -> None:
    before = counters.get(name, 0.0)
    counters[name] = None if before is None or value is None else before + value


def _launch(row: list[str], places: dict[str, int]) -> Launch:
    def number(name: str) -> float | None:
        return _number(row[places[name]]) if name in places else None

    grid, group, start, end = number("grid"), number("group"), number("start"), number("end")
    return Launch(
        row[places["kernel"]].removesuffix(".kd").removesuffix(" [clone .kd]"),
        tuple(row[places[name]] for name in ("process", "gpu", "queue") if name in places),
        # The grid is counted in work-items, and its last workgroup may be filled in part.
        workgroups=float(math.ceil(grid / group)) if grid is not None and group else None,
        time_ns=end - start if start is not None and end is not None else None,
    )


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


# --- counting ---------------------------------------------------------------------------------------------


class RocprofBackend:
    """Every kernel launch of a command on an AMD GPU; the tool executes the command once for each group of counters.

    Written from AMD's description of rocprofv3 and rocprof; never tried on an AMD GPU.
    """

    name = _ROCPROF

    def __init__(self) -> None:
        places = [(tool, f"/opt/rocm/bin/{tool}") for tool in (_ROCPROFV3, _ROCPROF)]
        self._tool = next(filter(None, (shutil.which(place) for pair in places for place in pair)), None)

    def why_not(self) -> str | None:
        """Return why rocprof counts nothing here, or ``None``."""
        if not Path("/dev/kfd").exists():
            return "no AMD GPU here: the driver's /dev/kfd is absent"
        if self._tool is None:
            return "neither rocprofv3 nor rocprof is on PATH or in /opt/rocm/bin; they come with ROCm"
        return None

    def count(self, command: Sequence[str], runner: Runner) -> Measurement:
        """Execute the command under rocprofv3 or rocprof and return the sums over its kernel launches."""
        tool = self._tool or _ROCPROFV3
        wanted = wanted_counters()
        known = _known(tool)
        asked = [name for name in wanted if not known or name in known]
        with tempfile.TemporaryDirectory(prefix="crossperf-") as folder:
            groups = Path(folder, "counters.txt")
            groups.write_text("".join(f"pmc: {' '.join(group)}\n" for group in grouped(asked)))
            line = (*_prefix(tool, groups, Path(folder, "out")), *command)
            execution = runner.count(line, Path(tool).name)
            files = [file for file in Path(folder).rglob("*.csv") if reads(file)]
            found = read(Path(folder) if len(files) > 1 else files[0])[0] if files else total([], asked)
        notes = list(found.notes)
        optional = {name for formula in FORMULAS if formula.tool == self.name for name in formula.optional}
        lacking = [name for name in wanted if name not in asked and name not in optional]
        if lacking:
            notes.append(f"this GPU has no {some_of(lacking)}")
        if not files:
            notes.append(f"{Path(tool).name} wrote no counters")
        return Measurement(
            self.name,
            dict.fromkeys([*asked, *lacking]) | dict(found.events),
            version=version_of(tool, r"\d+\.\d+(\.\d+)?"),
            command=line,
            runtime_s=execution.wall_s,
            notes=tuple(notes),
            facts={"kernels": found.facts["kernels"]},
        )


def wanted_counters() -> list[str]:
    """Return the counters that the back end asks for: the first formula of each, and the wavefronts."""
    first: dict[str, tuple[str, ...]] = {}
    for formula in FORMULAS:
        if formula.tool == _ROCPROF:
            first.setdefault(formula.counter, formula.events)
    return list(dict.fromkeys(["SQ_WAVES", *(name for events in first.values() for name in events if _adds_up(name))]))


def grouped(counters: Sequence[str]) -> list[list[str]]:
    """Return counters in groups that an MI200 counts at a time; the caches' go along with the first.

    >>> grouped([*(f"SQ_{i}" for i in range(9)), "TCC_HIT_sum"])
    [['SQ_0', 'SQ_1', 'SQ_2', 'SQ_3', 'SQ_4', 'SQ_5', 'SQ_6', 'SQ_7', 'TCC_HIT_sum'], ['SQ_8']]
    """
    sequencer = [name for name in counters if name.startswith("SQ_")]
    groups = [sequencer[i : i + _SEQUENCER_COUNTERS] for i in range(0, len(sequencer), _SEQUENCER_COUNTERS)] or [[]]
    groups[0] += [name for name in counters if not name.startswith("SQ_")]
    return groups


def _prefix(tool: str, groups: Path, out: Path) -> list[str]:
    if Path(tool).name == _ROCPROFV3:
        return [tool, "-i", str(groups), "--output-format", "csv", "-d", str(out), "--"]
    return [tool, "-i", str(groups), "-o", f"{out}.csv"]


def _known(tool: str) -> frozenset[str]:
    """Return the counters that the tool lists for this GPU; empty where it does not tell."""
    options = [["--list-avail"]] if Path(tool).name == _ROCPROFV3 else [["--list-basic"], ["--list-derived"]]
    words: set[str] = set()
    for option in options:
        try:
            done = subprocess.run([tool, *option], capture_output=True, text=True, check=False, timeout=120)
        except (OSError, subprocess.TimeoutExpired):
            return frozenset()
        words.update(re.findall(r"\w+", done.stdout))
    return frozenset(word for word in words if _adds_up(word))
