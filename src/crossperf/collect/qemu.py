"""Counts without any hardware counter: qemu executes the program, and a plugin of ours watches it.

The plugin (``qemu_plugin.c``) writes one report for each process image: counts, sampled reuse distances, and the
bytes of every executed block, which are sorted here, those of just-in-time compilers included. A small library
(``preload.c``) is loaded into every process: it puts qemu in front of each program that is started, and marks where
``main`` and OpenMP's parallel regions begin.
"""

from __future__ import annotations

import json
import platform as python_platform
import shutil
import struct
import tempfile
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from crossperf.collect.compiling import compiler, preloaded, shared_library
from crossperf.collect.instructions import ExecutedBlock, Mix, decoder, mix_of_blocks
from crossperf.collect.process import Execution, Runner, ask, resolve, version_of
from crossperf.collect.starters import left_out
from crossperf.collect.valgrind import PASSIVE, CacheShape
from crossperf.errors import CollectError, several
from crossperf.importers.measurement import Measurement
from crossperf.records import OK

_LINE_BYTES = 64
#: Up to this size the plugin's near stack is the better one: it holds at least 4096 lines, one in eight.
_NEAR_BYTES = 4096 * 8 * _LINE_BYTES
#: Sizes of the miss-ratio curve as the catalog names them.
CURVE = {
    "32k": 1 << 15,
    "128k": 1 << 17,
    "512k": 1 << 19,
    "2m": 1 << 21,
    "8m": 1 << 23,
    "32m": 1 << 25,
    "128m": 1 << 27,
}
#: What a report counts that is added up over processes as it is.
_SUMS = (
    "loads", "stores", "bytes_loaded", "bytes_stored", "sequential", "irregular",
    "footprint_bytes", "conditional", "conditional_missed", "indirect", "indirect_missed", "unsure", "files_opened",
    "bytes_read",
)  # fmt: skip
#: The ending of the file in which our library names a launcher.
_LAUNCHER = ".launcher"
#: Why an instruction is not sorted.
_UNKNOWN = "are not known to capstone"
#: What is known where the program's start is marked.
_OF_START = ("startup_instructions", "startup_files_opened", "startup_bytes_read")
_OF_REGIONS = ("parallel_regions", "parallel_instructions")
#: Ranks copy from each other's memory by a system call that qemu does not know.
_ENVIRONMENT = {**PASSIVE, "OMPI_MCA_btl_vader_single_copy_mechanism": "none"}
_SIGILL = 4
#: Without fast strings the C library copies by vectors; a `rep movsb` would count each byte as an instruction.
_CPU = {"x86_64": "max,-erms,-fsrm"}
#: Beside a block's number of instructions: its last one may go on in the next page.
_AT_PAGE_END = 1 << 15


class QemuBackend:
    """Executed instructions by kind, bytes, locality, branches, threads; just-in-time compiled code included.

    Parameters
    ----------
    caches
        ``D1`` and ``LL``, whose sizes are looked up in the miss-ratio curve.
    notes
        What is to be known about these caches, such as that they were assumed.
    toggles
        Count only between ``CALLGRIND_TOGGLE_COLLECT`` marks.
    others
        Caches of other machines, simulated in the same execution for :func:`measured_in`.
    """

    name = "qemu"

    def __init__(
        self,
        caches: Mapping[str, CacheShape],
        notes: Sequence[str] = (),
        *,
        toggles: bool = False,
        others: Sequence[Mapping[str, CacheShape]] = (),
    ) -> None:
        self.caches = dict(caches)
        self.others = tuple(others)
        self.toggles = toggles
        self._notes = tuple(notes)
        self._machine = python_platform.machine()
        self._qemu = shutil.which(f"qemu-{self._machine}")

    def why_not(self) -> str | None:
        """Return why qemu counts nothing here, or ``None``."""
        if self._machine not in ("x86_64", "aarch64"):
            return f"written for x86-64 and ARM; this machine is {self._machine}"
        if self._qemu is None:
            return f"qemu-{self._machine} is not installed (Debian and Ubuntu: qemu-user)"
        if compiler() is None:
            return "no C compiler here, which the plugin for qemu needs (Debian and Ubuntu: gcc)"
        if find_spec("capstone") is None:
            return "the package capstone is missing: pip install 'crossperf[valgrind]'"
        done = ask([self._qemu, "-help"])
        if done is None or "-plugin" not in done.stdout:
            return f"this {Path(self._qemu).name} was built without plugins; take Debian's or Ubuntu's qemu-user"
        return None

    def count(self, command: Sequence[str], runner: Runner) -> Measurement:
        """Execute the command under qemu and return its events, summed over processes."""
        with tempfile.TemporaryDirectory(prefix="crossperf-") as name:
            folder = Path(name, "reports")
            folder.mkdir()
            variables = self.environment(folder)
            line = self.line(command)
            execution = runner.execute(line, quiet=True, env=variables)
            if execution.status != OK:
                raise _failed(execution)
            own = measured_in(folder, self.caches)
            events = {**own.events, "qemu.startup_page_faults": None}
            if events["qemu.startup_instructions"] is not None and not runner.interrupted:
                events["qemu.startup_page_faults"] = _startup_faults(command, runner, Path(name))
        facts = {"cache_sizes": {level: self.caches[level][0] for level in ("D1", "LL")}}
        shown = ("env", *(f"{name}={value}" for name, value in variables.items()), *line)
        version = version_of(self._qemu or self.name, r"\d+\.[\d.]+")
        own = replace(own, events=events, version=version, command=shown, runtime_s=execution.wall_s, facts=facts)
        return replace(own, notes=(*self._notes, *own.notes))

    def line(self, command: Sequence[str]) -> tuple[str, ...]:
        """Return what to execute: the command itself, which our library puts under qemu, or qemu in front of it.

        A statically linked program loads no library.
        """
        program = resolve(command)
        if not _is_static(Path(program)):
            return tuple(command)
        plugin, cpu = str(self._plugin), _CPU.get(self._machine, "max")
        return (self._qemu or "qemu", "-cpu", cpu, "-plugin", plugin, "-0", command[0], program, *command[1:])

    def environment(self, folder: Path) -> dict[str, str]:
        """Return the variables under which a command is counted; reports go into a folder."""
        variables = {
            **_ENVIRONMENT,
            "CROSSPERF_QEMU": self._qemu or "qemu",
            "CROSSPERF_QEMU_CPU": _CPU.get(self._machine, "max"),
            "CROSSPERF_QEMU_PLUGIN": str(self._plugin),
            "CROSSPERF_QEMU_OUT": str(folder),
            "CROSSPERF_LAUNCHERS": f" {' '.join(sorted(left_out()))} ",
            "LD_PRELOAD": preloaded(self._shim),
        }
        first = dict.fromkeys(filter(None, map(_first_cache, (self.caches, *self.others))))
        variables |= {"CROSSPERF_QEMU_D1": " ".join(first)} if first else {}
        return variables | ({"CROSSPERF_QEMU_TOGGLES": "1"} if self.toggles else {})

    @cached_property
    def _fallback(self) -> tempfile.TemporaryDirectory[str]:
        return tempfile.TemporaryDirectory(prefix="crossperf-")

    @cached_property
    def _plugin(self) -> Path:
        return shared_library("qemu_plugin.c", Path(self._fallback.name))

    @cached_property
    def _shim(self) -> Path:
        return shared_library("preload.c", Path(self._fallback.name))


def _startup_faults(command: Sequence[str], runner: Runner, folder: Path) -> float | None:
    """Return the page faults before ``main`` of all processes, from one more native execution: qemu has its own."""
    place = folder / "startup"
    place.mkdir()
    shim = shared_library("preload.c", folder)
    env = {"LD_PRELOAD": preloaded(shim), "CROSSPERF_STARTUP_OUT": str(place)}
    if runner.execute(command, quiet=True, env=env).status != OK:
        return None
    faults = [int(line) for file in place.iterdir() for line in file.read_text().split()]
    return float(sum(faults)) if faults else None


def _is_static(program: Path) -> bool:
    """Tell an ELF program that asks for no loader."""
    try:
        with program.open("rb") as file:
            head = file.read(64)
            if head[:4] != b"\x7fELF" or head[4] != 2:
                return False
            (table,) = struct.unpack_from("<Q", head, 32)
            size, n = struct.unpack_from("<HH", head, 54)
            file.seek(table)
            kinds = [struct.unpack_from("<I", entry)[0] for entry in (file.read(size) for _ in range(n))]
    except (OSError, struct.error):
        return False
    return 3 not in kinds


def _failed(execution: Execution) -> CollectError:
    if execution.returncode in (-_SIGILL, 128 + _SIGILL):
        advice = "compile it without them (-march=x86-64-v3 instead of -march=native, or add -mno-avx512f)"
        problem = "qemu cannot execute an instruction of this program, most likely one of AVX-512"
        return CollectError(f"{problem}. For counting, {advice}")
    return CollectError(f"the command failed under qemu: {execution.status}")


@dataclass(frozen=True)
class ProcessReport:
    """What the plugin wrote of one process image; a process that executes another program goes on as its next image."""

    pid: int
    image: int
    counts: Mapping[str, Any]
    blocks: Mapping[ExecutedBlock, int]

    @classmethod
    def read(cls, path: Path) -> ProcessReport | None:
        """Return the report in a file, or ``None`` where it is empty or cut short: the process was killed."""
        data = path.read_bytes()
        head, line_end, body = data.partition(b"\n")
        if not line_end:
            return None
        try:
            blocks: Counter[ExecutedBlock] = Counter()
            for block, count in _blocks(body):
                blocks[block] += count
            pid, image = path.name.split(".")
            return cls(int(pid), int(image), json.loads(head), blocks)
        except (struct.error, ValueError, IndexError):
            return None


def _blocks(body: bytes) -> Iterator[tuple[ExecutedBlock, int]]:
    start, end = 0, len(body)
    while start < end:
        count, n = struct.unpack_from("<QH", body, start)
        start += 10
        at_page_end, n = bool(n & _AT_PAGE_END), n & ~_AT_PAGE_END
        sizes = body[start : start + n]
        start += n
        code = body[start : start + sum(sizes)]
        start += len(code)
        if len(code) != sum(sizes):
            raise ValueError("a block is cut short")
        yield (_whole(sizes, code) if at_page_end else ExecutedBlock(sizes, code)), count


def _whole(sizes: bytes, code: bytes) -> ExecutedBlock:
    """Return a block without the beginning of an instruction that qemu executes in the next page's block."""
    decodes = decoder(_machine())(code[-sizes[-1] :])
    return ExecutedBlock(sizes, code) if decodes else ExecutedBlock(sizes[:-1], code[: -sizes[-1]])


def _machine() -> str:
    return "aarch64" if python_platform.machine() == "aarch64" else "x86-64"


def measured_in(folder: Path, caches: Mapping[str, CacheShape]) -> Measurement:
    """Return the events of all processes that wrote into a folder, with what is to be known about them."""
    paths = sorted(path for path in folder.iterdir() if path.suffix != _LAUNCHER)
    written = [report for path in paths if (report := ProcessReport.read(path))]
    marked = [report for report in written if report.counts["marked"]]
    reports = marked or written
    if not reports:
        raise CollectError("qemu wrote no counts; the program was killed, or cleared its environment")
    events = _sums(reports) | _at_sizes(reports, caches) | _threads(reports, written)
    blocks: Counter[ExecutedBlock] = Counter()
    for report in reports:
        blocks.update(report.blocks)
    sorted_out = mix_of_blocks(blocks, _machine())
    kinds, reasons = sorted_out.events("qemu.", _UNKNOWN)
    events |= {**kinds, "qemu.instructions": float(sorted_out.classified + sorted_out.unknown)}
    named = {int(path.stem): path.read_text(errors="replace") for path in folder.glob(f"*{_LAUNCHER}")}
    # What becomes the program, as env does, is no process of its own.
    launchers = {pid: name for pid, name in named.items() if name[:15] in left_out(while_it_runs=True)}
    notes = _notes(reports, {path.name for path in paths}, launchers, len(paths) - len(written), sorted_out)
    return Measurement(QemuBackend.name, events, notes=tuple(notes), reasons=reasons)


def _sums(reports: Sequence[ProcessReport]) -> dict[str, float | None]:
    sums: dict[str, float | None] = {
        f"qemu.{name}": float(sum(report.counts[name] for report in reports)) for name in _SUMS
    }
    # Without our library nobody says where main and parallel regions begin.
    seen = all(report.counts["main"] or report.counts["forked"] for report in reports)
    marked = any(report.counts["marked"] for report in reports)
    for names, known in ((_OF_START, seen and not marked), (_OF_REGIONS, seen)):
        sums |= {f"qemu.{name}": float(sum(r.counts[name] for r in reports)) if known else None for name in names}
    return sums


def _threads(reports: Sequence[ProcessReport], written: Sequence[ProcessReport]) -> dict[str, float | None]:
    """Return the threads started: the first of each process once, however many programs it executes in turn."""
    later_images = sum(report.image > 0 for report in written)
    busiest: dict[int, int] = defaultdict(int)
    for report in reports:
        busiest[report.pid] += report.counts["busiest_thread"]
    return {
        "qemu.threads": float(sum(report.counts["threads"] for report in written) - later_images),
        "qemu.busiest_thread": float(max(busiest.values())),
        # With the beginnings of instructions at the ends of pages, which only sorting tells from whole ones.
        "qemu.instructions_of_threads": float(sum(report.counts["instructions"] for report in reports)),
    }


def _at_sizes(reports: Sequence[ProcessReport], caches: Mapping[str, CacheShape]) -> dict[str, float | None]:
    """Return the misses of caches of the curve's sizes, and of the machine's own."""
    near, far = (
        [sum(bins) for bins in zip(*(r.counts[name] for r in reports), strict=True)] for name in ("near", "far")
    )
    accesses = sum(report.counts["loads"] + report.counts["stores"] for report in reports)
    sizes = {f"misses_{name}": size for name, size in CURVE.items()}
    sizes |= {f"{level.lower()}_misses": caches[level][0] for level in ("D1", "LL") if level in caches}
    most, events = float(accesses), {}
    first = _first_cache(caches)
    if first and all(first in report.counts["d1_misses"] for report in reports):
        del sizes["d1_misses"]
        simulated = float(sum(report.counts["d1_misses"][first] for report in reports))
        events["qemu.d1_misses"] = min(most, simulated)
    for name, size in sorted(sizes.items(), key=lambda item: item[1]):
        # A larger cache never misses more, which two samples do not know of each other.
        most = min(most, misses(near if size <= _NEAR_BYTES else far, size / _LINE_BYTES))
        events[f"qemu.{name}"] = most
    if {"qemu.ll_misses", "qemu.d1_misses"} <= events.keys():
        events["qemu.ll_misses"] = min(events["qemu.ll_misses"], events["qemu.d1_misses"])
    return dict(events)


def _first_cache(caches: Mapping[str, CacheShape]) -> str | None:
    """Return the sets and ways of the first data cache as the plugin names them, where its lines have 64 bytes."""
    if "D1" not in caches or caches["D1"][2] != _LINE_BYTES:
        return None
    size, ways, line = caches["D1"]
    return f"{size // (ways * line)},{ways}"


def misses(distances: Sequence[float], lines: float) -> float:
    """Return how many accesses miss in an LRU cache of some lines: those with as many other lines in between, or more.

    The last of the distances are first touches.

    >>> misses([0, 5, 7, 9, 2], 2)
    18.0
    """
    *bins, beyond = map(float, distances)
    for number, count in enumerate(bins):
        low, width = _bin(number)
        beyond += count * min(1.0, max(0.0, (low + width - lines) / width)) if count else 0.0
    return beyond


def _bin(number: int) -> tuple[int, int]:
    """Return the least distance of a bin and its width: single distances up to 16, from there on 8 bins an octave.

    >>> [_bin(number) for number in (0, 15, 16, 24)]
    [(0, 1), (15, 1), (16, 2), (32, 4)]
    """
    if number < 16:
        return number, 1
    octave, part = divmod(number - 16, 8)
    return (8 + part) << (octave + 1), 1 << (octave + 1)


def _notes(
    reports: Sequence[ProcessReport], begun: Collection[str], launchers: Mapping[int, str], lost: int, sorted_out: Mix
) -> list[str]:
    processes = {report.pid for report in reports}
    notes = [f"{len(processes)} processes were followed and added up"] if len(processes) > 1 else []
    if reports[0].counts["marked"]:
        notes.append("counted between the program's own marks only")
    if launchers:
        notes.append(f"left out, since they only started the others: {', '.join(sorted(set(launchers.values())))}")
    executing = [report for report in reports if report.counts["ended"] == "exec" and report.pid not in launchers]
    if away := sum(f"{report.pid}.{report.image + 1}" not in begun for report in executing):
        why = "statically linked, set-user-ID, or started without their environment"
        notes.append(f"left out: {several(away, 'program')} that could not be followed ({why})")
    if sum(report.counts["blocks_left_out"] for report in reports):
        notes.append("the program compiles so much code at run time that some of it was not counted")
    if lost:
        notes.append(f"left out, since they ended without a report (killed): {lost} of the processes")
    if any(not report.counts["main"] and not report.counts["forked"] for report in reports):
        notes.append("start-up and parallel regions are unknown: a statically linked program loads no library of ours")
    if sorted_out.unsorted > 0.001:
        notes.append(f"{sorted_out.unsorted:.1%} of the instructions {_UNKNOWN} and were not sorted")
    return notes
