"""Nsight Compute: counts what a command's kernels do on an NVIDIA GPU, and reads what ``ncu`` wrote.

Reads CSV (``--csv``, pages ``raw`` and ``details``) and, through NVIDIA's package ncu-report, ``.ncu-rep``.
Metrics that add up (``*.sum`` and the sizes of launches) are added up over all kernel launches, processes and
GPUs. Percentages and averages are left out: what they say of a whole run is worked out again from the sums.
"""

from __future__ import annotations

import csv
import functools
import math
import re
import shutil
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from crossperf.catalog import FORMULAS
from crossperf.collect.measurement import Measurement
from crossperf.collect.process import Runner, version_of
from crossperf.errors import CollectError, MissingDependencyError, ProfileFileError, some_of
from crossperf.records import OK

_BLOCKS, _THREADS, _REGISTERS = "launch__grid_size", "launch__thread_count", "launch__registers_per_thread"
_BLOCK_SIZE, _TIME = "launch__block_size", "gpu__time_duration.sum"
_STREAM, _CONTEXT, _GPU = "launch__stream_id", "launch__context_id", "device__attribute_display_name"
#: Metrics without ``.sum`` in their name that add up over launches.
_SUMS = (_BLOCKS, _THREADS, "inst_executed", "thread_inst_executed", "thread_inst_executed_true")
#: Kept beside what the formulas need. GPUs of Blackwell's consumer line spell the bytes with ``_op_``.
_MORE = (
    _TIME,
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
    "dram__bytes_op_read.sum",
    "dram__bytes_op_write.sum",
    "smsp__thread_inst_executed.sum",
    _BLOCK_SIZE,
    _THREADS,
    _REGISTERS,
)
#: What the page of details calls metrics whose own name it hides.
_LABELS = {
    "Duration": _TIME,
    "Grid Size": _BLOCKS,
    "Block Size": _BLOCK_SIZE,
    "Threads": _THREADS,
    "Registers Per Thread": _REGISTERS,
    "Executed Instructions": "smsp__inst_executed.sum",
}
_NO_KERNEL = "launched no kernel"
_KERNELS_KEPT = 20
#: So many rows settle how a file spells its numbers; each holds some in the billions.
_ROWS_LOOKED_AT = 200
_REPORT_START = b"NVR\0"
_PERMISSION = "ERR_NVGPUCTRPERM"
_MAY_NOT = (
    "the driver lets root alone read the GPU's counters; run as root, or let root load the kernel module nvidia"
    " with NVreg_RestrictProfilingToAdminUsers=0"
)


@dataclass(frozen=True)
class Launch:
    """One launch of one kernel, its metrics in base units: bytes, nanoseconds, counts."""

    kernel: str
    metrics: Mapping[str, float | None]
    process: str | None = None
    stream: tuple[str, ...] | None = None
    gpu: str | None = None


# --- counting ---------------------------------------------------------------------------------------------


class NcuBackend:
    """Every kernel launch, run again as often as its metrics need; all processes of the command are followed.

    ncu saves and restores the GPU's memory around each repetition. A program of many launches takes long, and
    kernels that wait for each other (over GPUs or ranks) can hang. Clocks are left as they are.

    Parameters
    ----------
    launch_limit
        Count the first so many launches alone, over all processes. Nothing is scaled up to the others: the sums
        are those of a part then, and a note says so.
    cache_control
        ``all`` empties the caches before each repetition, as ncu does by itself: every kernel starts cold.
        ``none`` leaves them as the repetition before left them, so that a kernel finds its own data.
    """

    name = "ncu"

    def __init__(self, launch_limit: int | None = None, cache_control: Literal["all", "none"] = "all") -> None:
        self.launch_limit = launch_limit
        self.cache_control = cache_control
        self._ncu = _find()

    def why_not(self) -> str | None:
        """Return why ncu counts nothing here, or ``None``."""
        if no_gpu := why_no_gpu():
            return no_gpu
        if self._ncu is None:
            return "ncu is not on PATH nor in /usr/local/cuda/bin; it comes with CUDA, or alone as Nsight Compute"
        return _MAY_NOT if _for_root_alone() else None

    def what_not(self) -> str | None:
        """Return what ncu cannot do here although it works, or ``None``."""
        return f"counts the first {self.launch_limit:,} launches alone" if self.launch_limit else None

    def count(self, command: Sequence[str], runner: Runner) -> Measurement:
        """Execute the command under ncu and return the sums over its kernel launches."""
        wanted = wanted_metrics()
        asked = self.asked()
        with tempfile.TemporaryDirectory(prefix="crossperf-") as folder:
            log = Path(folder, "ncu.csv")
            line = (*self.prefix(log), *command)
            execution = runner.execute(line, quiet=True)
            text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
        complaint = _complaint(text)
        if _PERMISSION in complaint:
            raise CollectError(f"ncu could not count: {_MAY_NOT}")
        if execution.status != OK:
            raise CollectError(f"the command failed under ncu: {execution.status}{complaint and f' ({complaint})'}")
        rows = list(_launches_of_text(text, str(log))) if _header_at(text.splitlines()) is not None else []
        if not rows and complaint:
            raise CollectError(f"ncu could not count: {complaint}")
        found = total(rows, wanted=asked)
        notes = [*found.notes, *([f"ncu: {complaint}"] if complaint else [])]
        lacking = [name for name in wanted if name not in asked and name not in _may_lack()]
        if lacking:
            notes.append(f"this GPU has no {some_of(lacking)}")
        if self.launch_limit and len(rows) >= self.launch_limit:
            notes.append(f"sums of the first {self.launch_limit:,} launches alone, as was asked for")
        return Measurement(
            self.name,
            dict(found.events) | dict.fromkeys(lacking),
            version=self.version,
            command=line,
            runtime_s=execution.wall_s,
            notes=tuple(notes),
            facts={name: value for name, value in found.facts.items() if name in ("gpu", "kernels")},
        )

    @property
    def version(self) -> str | None:
        """The version of ncu here."""
        return version_of(self._ncu or self.name, r"(?<=Version )\S+")

    def asked(self) -> list[str]:
        """Return the metrics that are asked for: those wanted that this GPU has."""
        known = known_metrics(self._ncu or self.name)
        return [name for name in wanted_metrics() if name.startswith("launch__") or not known or _base(name) in known]

    def prefix(self, log: Path) -> list[str]:
        """Return the command line to put in front of a command; the table goes into a file of its own.

        Without one, ncu's table and the command's output would share one stream.
        """
        options = ["--target-processes", "all", "--replay-mode", "kernel", "--clock-control", "none"]
        options += ["--cache-control", self.cache_control, "--print-units", "base", "--csv", "--page", "raw"]
        limit = ["--launch-count", str(self.launch_limit)] if self.launch_limit else []
        return [self._ncu or self.name, *options, *limit, "--metrics", ",".join(self.asked()), "--log-file", str(log)]


def _may_lack() -> frozenset[str]:
    """Return the metrics without which nothing is missing, on GPUs that have no such thing."""
    optional = {name for formula in FORMULAS if formula.tool == "ncu" for name in formula.optional}
    return frozenset(optional | {name for name in _MORE if name.startswith("dram__bytes_op_")})


def wanted_metrics() -> list[str]:
    """Return the metrics that the back end asks for: the first formula of each counter, and a few more."""
    first: dict[str, tuple[str, ...]] = {}
    for formula in FORMULAS:
        if formula.tool == "ncu":
            first.setdefault(formula.counter, formula.events)
    names = [name for events in first.values() for name in events if "__" in name]
    return list(dict.fromkeys([*names, *_MORE]))


def why_no_gpu() -> str | None:
    """Return why no NVIDIA GPU can be used here, or ``None``."""
    # /dev/dxg is how Windows lends its GPU to the Linux inside it.
    if any(Path(device).exists() for device in ("/dev/nvidiactl", "/dev/dxg")):
        return None
    return "no NVIDIA GPU here: the driver's /dev/nvidiactl is absent"


def _find() -> str | None:
    known = ["/usr/local/cuda/bin/ncu", *sorted(map(str, Path("/opt/nvidia/nsight-compute").glob("*/ncu")))[::-1]]
    return shutil.which("ncu") or next(filter(None, map(shutil.which, known)), None)


def _for_root_alone() -> bool:
    """Tell whether the driver keeps its counters from this user, as far as it says so beforehand."""
    try:
        settings = Path("/proc/driver/nvidia/params").read_text()
        capabilities = re.search(r"CapEff:\s*([0-9a-f]+)", Path("/proc/self/status").read_text())
    except OSError:
        return False
    may_administer = capabilities is not None and int(capabilities[1], 16) >> 21 & 1
    return bool(re.search(r"RmProfilingAdminOnly:\s*1", settings)) and not may_administer


@functools.cache
def known_metrics(ncu: str) -> frozenset[str]:
    """Return the metrics of the GPU here, without their ``.sum``; empty where ncu does not tell."""
    try:
        done = subprocess.run([ncu, "--query-metrics"], capture_output=True, text=True, check=False, timeout=120)
    except (OSError, subprocess.TimeoutExpired):
        return frozenset()
    return frozenset(re.findall(r"^(\w+__\w+)\s", done.stdout, flags=re.MULTILINE))


def _base(name: str) -> str:
    return name.removesuffix(".sum")


def _complaint(text: str) -> str:
    """Return what ncu says went wrong, in its words, or an empty string."""
    return next((line.removeprefix("==ERROR==").strip() for line in text.splitlines() if line.startswith("==ERR")), "")


# --- files ------------------------------------------------------------------------------------------------


def reads(path: Path) -> bool:
    """Return whether this is a report of ncu, or CSV that it wrote."""
    try:
        with path.open("rb") as file:
            head = file.read(1 << 16)
    except OSError:
        return False
    return head.startswith(_REPORT_START) or _header_at(head.decode("utf-8", "replace").splitlines()) is not None


def read(path: Path) -> list[Measurement]:
    """Return the sums over all launches of one file: one execution of a program."""
    found = launches(path)
    if not found:
        raise ProfileFileError(
            f"{path}: found no kernel launch, expected at least one. Profile a program that uses the GPU; "
            "a report that was cut short reads like this too.",
            path=str(path),
        )
    return [total(found)]


def launches(path: Path) -> list[Launch]:
    """Return every kernel launch of a file, in its order."""
    try:
        with path.open("rb") as file:
            is_report = file.read(len(_REPORT_START)) == _REPORT_START
        text = "" if is_report else path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise ProfileFileError(f"{path}: cannot be read ({error.strerror}). Check the path.", path=str(path)) from error
    return list(_launches_of_report(path) if is_report else _launches_of_text(text, str(path)))


def total(launches: Sequence[Launch], wanted: Iterable[str] = ()) -> Measurement:
    """Return the sums over launches; a metric that one launch lacks has no sum.

    Parameters
    ----------
    wanted
        Metrics that were asked for: without a value they are ``None`` rather than absent.
    """
    names = dict.fromkeys([*wanted, *(name for launch in launches for name in launch.metrics)])
    events: dict[str, float | None] = {}
    partly: list[str] = []
    for name in filter(_adds_up, names):
        values = [launch.metrics.get(name) for launch in launches]
        counted = [value for value in values if value is not None]
        events[name] = math.fsum(counted) if counted and len(counted) == len(values) else None
        if counted and events[name] is None:
            partly.append(name)
    streams = {launch.stream for launch in launches}
    events["streams_with_kernels"] = float(len(streams)) if launches and None not in streams else None
    notes = [] if launches else [_NO_KERNEL]
    if partly:
        notes.append(f"left out, since some launches have no value: {some_of(partly)}")
    if any("__" not in name and name not in _SUMS for name in names):
        notes.append("most metrics go by labels on ncu's page of details; 'ncu --page raw' has their names")
    processes = {launch.process for launch in launches if launch.process}
    gpus = {launch.gpu for launch in launches if launch.gpu}
    facts: dict[str, Any] = {"platform_class": "gpu", "kernels": _kernels(launches)}
    facts |= {"app": processes.pop()} if len(processes) == 1 else {}
    facts |= {"gpu": " + ".join(sorted(gpus))} if gpus else {}
    return Measurement("ncu", events, notes=tuple(notes), facts=facts)


def _adds_up(name: str) -> bool:
    # Samples over time ("X.TriageCompute.y") see a part of the GPU.
    return (name.endswith(".sum") and name.count(".") == 1) or name in _SUMS


def _kernels(launches: Sequence[Launch]) -> list[dict[str, Any]]:
    """Return what each kernel was launched with, the longest-running first."""
    by_name: dict[str, list[Launch]] = defaultdict(list)
    for launch in launches:
        by_name[launch.kernel].append(launch)

    def add(name: str, metric: str) -> float:
        return math.fsum(launch.metrics.get(metric) or 0.0 for launch in by_name[name])

    def most(name: str, metric: str) -> float | None:
        return max(
            (value for launch in by_name[name] if (value := launch.metrics.get(metric)) is not None), default=None
        )

    longest = sorted(by_name, key=lambda name: (-add(name, _TIME), name))[:_KERNELS_KEPT]
    return [
        {
            "name": name,
            "launches": len(by_name[name]),
            "blocks": add(name, _BLOCKS),
            "most_threads_per_block": most(name, _BLOCK_SIZE),
            "most_registers_per_thread": most(name, _REGISTERS),
            "time_s": add(name, _TIME) * 1e-9,
        }
        for name in longest
    ]


def _header_at(lines: Sequence[str]) -> int | None:
    return next((i for i, line in enumerate(lines) if line.startswith('"ID",') and '"Kernel Name"' in line), None)


def _launches_of_text(text: str, path: str) -> Iterator[Launch]:
    """Yield the launches of ncu's CSV; what the program and ncu print around the table is passed over."""
    lines = text.splitlines()
    start = _header_at(lines)
    if start is None:
        told = f" ncu says: {_complaint(text)}." if _complaint(text) else ""
        raise ProfileFileError(
            f'{path}: found no line that starts with "ID" and names "Kernel Name", expected a table of ncu.{told} '
            "Make one with: ncu --csv --page raw --log-file FILE COMMAND",
            path=path,
        )
    table = csv.reader(line for line in lines[start:] if not line.startswith("=="))
    try:
        header = next(table)
        rows = [row for row in table if row and (row[0].isdigit() or (not row[0] and len(row) == len(header)))]
    except csv.Error as error:
        raise ProfileFileError(f"{path}: no proper CSV ({error}). Record it again.", path=path) from error
    numbers = _Numbers(cell for row in rows[:_ROWS_LOOKED_AT] for cell in row)
    if "Metric Name" in header:
        yield from _long(header, rows, numbers, path)
    else:
        yield from _wide(header, rows, numbers, path)


def _wide(header: list[str], rows: list[list[str]], numbers: _Numbers, path: str) -> Iterator[Launch]:
    """Yield launches of the page ``raw``: one row each, after a row of units."""
    units = dict(zip(header, rows.pop(0), strict=True)) if rows and not rows[0][0] else {}
    kept = [(at, name) for at, name in enumerate(header) if _adds_up(name) or name in (_BLOCK_SIZE, _REGISTERS)]
    told = [(at, name) for at, name in enumerate(header) if "__" not in name or name == _GPU]
    for row in rows:
        if len(row) != len(header):
            raise _cut_short(path, row, f"{len(row)} cells", f"{len(header)}")
        metrics = {name: numbers.read(row[at], units.get(name, "")) for at, name in kept}
        yield _launch({name: row[at] for at, name in told}, metrics)


def _long(header: list[str], rows: list[list[str]], numbers: _Numbers, path: str) -> Iterator[Launch]:
    """Yield launches of the page ``details``: one row for each metric of each launch."""
    by_launch: dict[str, tuple[dict[str, str], dict[str, float | None]]] = {}
    enough = header.index("Metric Value") + 1
    for row in rows:
        if len(row) < enough:
            raise _cut_short(path, row, f"{len(row)} cells", f"{enough} or more")
        cells = dict(zip(header, row, strict=False))
        _, metrics = by_launch.setdefault(cells["ID"], (cells, {}))
        name = _LABELS.get(cells["Metric Name"], cells["Metric Name"])
        if name:
            metrics[name] = numbers.read(cells["Metric Value"], cells.get("Metric Unit", ""))
    for cells, metrics in by_launch.values():
        yield _launch(cells, metrics)


def _cut_short(path: str, row: list[str], found: str, expected: str) -> ProfileFileError:
    return ProfileFileError(
        f"{path}: launch {row[0]} has {found}, expected {expected}. The file was cut short; record it again.",
        path=path,
    )


def _launch(cells: Mapping[str, str], metrics: dict[str, float | None]) -> Launch:
    blocks, threads = _volume(cells.get("Grid Size")), _volume(cells.get("Block Size"))
    metrics.setdefault(_BLOCKS, blocks)
    metrics.setdefault(_BLOCK_SIZE, threads)
    metrics.setdefault(_THREADS, blocks * threads if blocks is not None and threads is not None else None)
    places = [cells.get(name) for name in ("Process ID", "Context", "Stream")]
    stream = tuple(place for place in places if place is not None)
    return Launch(
        cells["Kernel Name"],
        metrics,
        process=cells.get("Process Name") or None,
        stream=stream if len(stream) == len(places) else None,
        gpu=cells.get(_GPU) or None,
    )


def _volume(text: str | None) -> float | None:
    """Return the number of blocks or threads of a size.

    >>> _volume("(4, 4, 1)")
    16.0
    """
    numbers = re.findall(r"\d+", text or "")
    return float(math.prod(map(int, numbers))) if numbers else None


class _Numbers:
    """Reads numbers as the locale of their writer spelt them: ``1,234.56``, ``1.234,56``, ``1 234,56``.

    One ``4.352`` could be either; the other numbers of the file settle it.
    """

    _COMMA_IS_DECIMAL = re.compile(r"\d{1,3}(\.\d{3}){2,}(,\d+)?|[\d.\u00a0\u202f]*\d,(\d{1,2}|\d{4,})")

    def __init__(self, cells: Iterable[str]) -> None:
        self._decimal = "," if any(self._COMMA_IS_DECIMAL.fullmatch(cell) for cell in cells) else "."

    def read(self, text: str, unit: str) -> float | None:
        plain = re.sub(r"[\s\u00a0\u202f']", "", text)
        plain = plain.replace("." if self._decimal == "," else ",", "").replace(self._decimal, ".")
        try:
            value = float(plain)
        except ValueError:
            return None
        return value * _scale(unit) if math.isfinite(value) else None


_TIMES = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
_TIMES |= {"nsecond": 1.0, "usecond": 1e3, "msecond": 1e6, "second": 1e9}
_TENS = {"K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_COUNTED = r"(byte|inst|sectors?|cycle|warp|thread|block|request|branches)"


def _scale(unit: str) -> float:
    """Return what a value in this unit is multiplied with for bytes, nanoseconds or counts.

    >>> _scale("Mbyte"), _scale("us"), _scale("sector")
    (1000000.0, 1000.0, 1.0)
    """
    if unit in _TIMES:
        return _TIMES[unit]
    match = re.fullmatch(rf"([KMGT]){_COUNTED}", unit)
    return _TENS[match[1]] if match else 1.0


def _launches_of_report(path: Path) -> Iterator[Launch]:
    try:
        import ncu_report  # type: ignore[import-not-found, unused-ignore]
    except ImportError as error:
        raise MissingDependencyError(
            f"{path}: reading .ncu-rep needs ncu-report: pip install 'crossperf[ncu]'. "
            "Or make CSV of it where ncu is: ncu --import FILE --csv --page raw --log-file FILE.csv"
        ) from error
    try:
        report = ncu_report.load_report(str(path))
        ranges = [report.range_by_idx(i) for i in range(report.num_ranges())]
        actions = [part.action_by_idx(i) for part in ranges for i in range(part.num_actions())]
    except Exception as error:  # the package raises its own kinds, and RuntimeError
        raise ProfileFileError(
            f"{path}: ncu-report cannot read it ({error}). It may be cut short, or newer than the package.",
            path=str(path),
        ) from error
    for action in actions:
        found = {name: action.metric_by_name(name) for name in action.metric_names()}
        texts = {name: found[name].as_string() for name in (_GPU,) if name in found}
        numbers = {
            name: metric.as_double() * _scale(metric.unit() or "")
            for name, metric in found.items()
            if metric.has_value() and metric.kind() != metric.ValueKind_STRING
        }
        # ncu-report tells no process ids, so the streams of two processes can look like one.
        places = [numbers.get(name) for name in (_CONTEXT, _STREAM)]
        stream = tuple(f"{place:g}" for place in places if place is not None)
        metrics: dict[str, float | None] = dict(numbers)
        yield Launch(
            action.name(action.NameBase_DEMANGLED),
            metrics,
            stream=stream if len(stream) == len(places) else None,
            gpu=texts.get(_GPU),
        )
