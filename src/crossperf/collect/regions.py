"""Regions that a program marks (``crossperf.h``, `crossperf.region`): what it does there, and how tools count there.

Every native execution names the file that marks write. A program that wrote it is marked: its time is the region's,
and each tool counts in the region alone, as far as it can.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import shutil
import struct
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from crossperf.collect import compiling
from crossperf.collect.mark import LIBRARY
from crossperf.errors import CollectError
from crossperf.importers.measurement import Measurement

if TYPE_CHECKING:
    from crossperf.collect.process import Execution, Runner

_FILE, _PERF, _REQUESTS = "CROSSPERF_REGION_FILE", "CROSSPERF_REGION_PERF", "CROSSPERF_REGION_REQUESTS"
#: What a process writes in this order behind its depth, visits, first begin and last end; see region.c.
_IO = ("rchar", "wchar", "read_bytes", "write_bytes")
_COUNTS = ("wall_s", "cpu_s", "own_cpu_s", "minor_faults", "major_faults", *_IO)
_RECORD = struct.Struct(f"={4 + len(_COUNTS)}d")
#: Callgrind's requests: ZERO_STATS, TOGGLE_COLLECT, START_INSTRUMENTATION, STOP_INSTRUMENTATION.
_ZERO, _TOGGLE, _START, _STOP = (0x43540000 + number for number in (1, 2, 4, 5))
#: These count in the region alone.
_ABLE = ("perf", "valgrind", "qemu")
#: Of a tool for CPUs that cannot, the events that hold for the program as a whole by their meaning.
_OF_THE_WHOLE: Mapping[str, Sequence[str]] = {"strace": ["strace.threads_started"], "papi": []}
#: Above this share of the processor time, others than the thread that marks have worked.
_OTHERS = 0.01


@dataclass(frozen=True)
class Region:
    """What one execution of a marked program did between its marks, over all its processes.

    Parameters
    ----------
    wall_s
        Seconds; of processes that overlap in time, those of the longest.
    cpu_s, own_cpu_s
        Processor seconds of all threads, and of the threads that mark.
    visits
        How often a region was entered and left.
    processes
        How many processes marked one.
    not_ended
        How many of them ended inside one.
    io
        Bytes by the names of ``/proc/PID/io``; ``None`` where the kernel does not tell.
    """

    wall_s: float
    cpu_s: float = 0.0
    own_cpu_s: float = 0.0
    minor_faults: int = 0
    major_faults: int = 0
    io: Mapping[str, int] | None = None
    visits: int = 1
    processes: int = 1
    not_ended: int = 0

    @property
    def threaded(self) -> bool:
        """Whether other threads than those that mark did a part of the work."""
        return self.cpu_s - self.own_cpu_s > _OTHERS * self.cpu_s

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the numbers must know."""
        if not self.not_ended:
            return ()
        measured = "what came after that begin is left out" if self.visits else "so the whole program is measured"
        return (f"{self.not_ended} of {self.processes} marked processes began a region and did not end it; {measured}",)


def execute(runner: Runner, command: Sequence[str], *, quiet: bool = False) -> Execution:
    """Execute a command natively, with the region that it marks, unless the whole is asked for."""
    if runner.whole:
        return runner.execute(command, quiet=quiet)
    with tempfile.TemporaryDirectory(prefix="crossperf-") as folder:
        execution = runner.execute(command, env={**library(), _FILE: str(Path(folder, "region"))}, quiet=quiet)
        return replace(execution, region=read(Path(folder)))


def read(folder: Path) -> Region | None:
    """Return what the marks of all processes wrote into a folder; ``None`` where no process marked anything."""
    data = [path.read_bytes() for path in sorted(folder.glob("region.*"))]
    rows = [_RECORD.unpack(record) for record in data if len(record) == _RECORD.size]
    if not rows:
        return None
    sums = {name: math.fsum(row[4 + at] for row in rows) for at, name in enumerate(_COUNTS)}
    io = None if any(math.isnan(sums[name]) for name in _IO) else {name: int(sums[name]) for name in _IO}
    return Region(
        wall_s=_together([(first, last, seconds) for _, visits, first, last, seconds, *_ in rows if visits]),
        cpu_s=sums["cpu_s"],
        own_cpu_s=sums["own_cpu_s"],
        minor_faults=int(sums["minor_faults"]),
        major_faults=int(sums["major_faults"]),
        io=io,
        visits=int(sum(row[1] for row in rows)),
        processes=len(rows),
        not_ended=sum(row[0] > 0 for row in rows),
    )


def _together(spans: Sequence[tuple[float, float, float]]) -> float:
    """Return the seconds of processes: the most of those that overlap, added up over those that do not.

    >>> _together([(0.0, 3.0, 2.0), (1.0, 4.0, 2.5), (5.0, 6.0, 1.0)])
    3.5
    """
    total = most = until = 0.0
    for first, last, seconds in sorted(spans):
        if first >= until:
            total, most = total + most, 0.0
        most, until = max(most, seconds), max(until, last)
    return total + most


def for_callgrind(region: Region | None) -> tuple[list[str], dict[str, str], tuple[str, ...]]:
    """Return the options of callgrind that count a region alone, variables for the program, and notes.

    Collecting is switched by each thread for itself. So where other threads work in the region, instrumentation is
    switched instead, for all of them; that empties the simulated caches.
    """
    if region is None:
        return [], {}, ()
    if region.threaded:
        cold = "the simulated caches are empty where the marked region begins, since other threads work in it"
        return ["--instr-atstart=no"], {_REQUESTS: f"{_START} {_STOP} {_ZERO}"}, (cold,)
    return ["--collect-atstart=no"], {_REQUESTS: f"{_TOGGLE} {_TOGGLE} {_ZERO}"}, ()


def for_perf(region: Region | None, folder: Path) -> tuple[list[str], dict[str, str]]:
    """Return the options of ``perf stat`` that count a region alone, and variables for the program.

    The pipes between the program and perf are made in a folder, which must outlast the execution.
    """
    if region is None:
        return [], {}
    for name in ("control", "ack"):
        os.mkfifo(folder / name)
    (folder / "inside").touch()
    return ["--delay=-1", f"--control=fifo:{folder}/control,{folder}/ack"], {_PERF: str(folder)}


def counted_in(region: Region | None, measurement: Measurement) -> Measurement:
    """Return a tool's measurement without what holds for the whole program only, and with a note where it does."""
    if region is None or measurement.tool in _ABLE:
        return measurement
    kept = _OF_THE_WHOLE.get(measurement.tool)
    if kept is None:
        note = "counts of the whole program: this tool cannot tell the marked region apart"
        return replace(measurement, notes=(*measurement.notes, note))
    lost = [name for name in measurement.events if name not in kept]
    note = f"{', '.join(lost)} left out: this tool cannot tell the marked region apart"
    events = {name: value if name in kept else None for name, value in measurement.events.items()}
    return replace(measurement, events=events, notes=(*measurement.notes, *([note] if lost else [])))


@functools.cache
def library() -> dict[str, str]:
    """Return the variable that names the library behind marks to a program; empty where it cannot be compiled."""
    cache = compiling.private_cache()
    with contextlib.suppress(CollectError):
        return {LIBRARY: str(compiling.shared_library("region.c", cache))} if cache else {}
    return {}


def not_seen(command: Sequence[str]) -> tuple[str, ...]:
    """Return the note that a program's marks cannot be measured here, where that is so."""
    if library():
        return ()
    with contextlib.suppress(OSError):
        if LIBRARY.encode() in Path(shutil.which(command[0]) or command[0]).read_bytes():
            return ("the program marks a region, which needs a C compiler here; the whole program is measured",)
    return ()
