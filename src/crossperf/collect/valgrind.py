"""Counts without any hardware counter: callgrind executes the program, caches and branches are simulated."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from crossperf.collect import callgrind, instructions, regions
from crossperf.collect.compiling import preloaded, shared_library
from crossperf.collect.process import Execution, Runner, elsewhere, version_of
from crossperf.collect.starters import left_out
from crossperf.errors import CollectError, ProfileFileError, SettingsError
from crossperf.importers.measurement import Measurement
from crossperf.platforms import CacheGeometry
from crossperf.records import OK

#: Bytes, ways and bytes a line of one cache.
CacheShape = tuple[int, int, int]
#: Valgrind runs one thread at a time: a thread that spins for another would count its waiting.
PASSIVE = {"OMP_WAIT_POLICY": "passive", "OMPI_MCA_mpi_yield_when_idle": "1"}


class ValgrindBackend:
    """Executed instructions by kind, simulated cache and branch misses; children and threads are followed.

    Parameters
    ----------
    caches
        ``I1``, ``D1`` and ``LL`` to simulate. They are always given to valgrind: what it detects on a virtual
        machine can be a last-level cache that no program misses.
    notes
        What is to be known about these caches, such as that they were assumed.
    """

    name = "valgrind"

    def __init__(self, caches: Mapping[str, CacheShape], notes: Sequence[str] = ()) -> None:
        self.caches = dict(caches)
        self._notes = tuple(notes)
        self._valgrind = shutil.which("valgrind")

    def why_not(self) -> str | None:
        """Return why valgrind counts nothing here, or ``None``."""
        if self._valgrind is None:
            return "valgrind is not installed (Debian and Ubuntu: valgrind)"
        if find_spec("capstone") is None:
            return "the package capstone is missing: pip install 'crossperf[valgrind]'"
        return None

    def count(self, command: Sequence[str], runner: Runner) -> Measurement:
        """Execute the command under callgrind and return its events, summed over processes."""
        with tempfile.TemporaryDirectory(prefix="crossperf-") as name:
            folder = Path(name)
            options, env, marking = regions.for_callgrind(runner.region)
            line = (*self.prefix(folder), *options, *command)
            variables = PASSIVE | by_vectors() | _once_for_all(folder) | env
            execution = runner.execute(line, quiet=True, env=variables)
            if execution.status != OK:
                raise _failed(execution, folder)
            measured = measured_in(folder)
        facts = {"simulated_caches": {level: list(cache) for level, cache in self.caches.items()}}
        version, notes = version_of(self._valgrind or self.name), (*self._notes, *marking, *measured.notes)
        return replace(measured, version=version, command=line, runtime_s=execution.wall_s, notes=notes, facts=facts)

    def prefix(self, folder: Path) -> list[str]:
        """Return the command line to put in front of a command; reports and logs go into a folder."""
        tool = ["--tool=callgrind", "--dump-instr=yes", "--cache-sim=yes", "--branch-sim=yes"]
        follow = ["--trace-children=yes", "--fair-sched=try"]
        files = [f"--callgrind-out-file={folder}/out.%p", f"--log-file={folder}/log.%p"]
        return [self._valgrind or "valgrind", *tool, *CacheGeometry(self.caches).options(), *follow, *files]


def by_vectors() -> dict[str, str]:
    """Return variables under which the C library fills and copies by vectors.

    By ``rep stosb``, one instruction of a processor, each byte would count as an instruction and as an access.
    """
    others = os.environ.get("GLIBC_TUNABLES")
    return {"GLIBC_TUNABLES": ":".join(filter(None, [others, "glibc.cpu.hwcaps=-ERMS,-FSRM"]))}


def _once_for_all(folder: Path) -> dict[str, str]:
    """Return variables under which a forked child does not report once more what its parent had executed."""
    try:
        return {"LD_PRELOAD": preloaded(shared_library("preload.c", folder)), "CROSSPERF_ZERO_IN_CHILD": "1"}
    except CollectError:  # without a compiler children count it again, as callgrind does by itself
        return {}


def measured_in(folder: Path) -> Measurement:
    """Return the events of all processes that wrote into a folder, with what is to be known about them."""
    totals: Counter[str] = Counter()
    line_bytes: dict[str, int] = {}
    sorted_out = instructions.NOTHING
    processes = lost = 0
    launchers: set[str] = set()
    for path in sorted(folder.glob("out.*")):
        try:
            profile = callgrind.read(path)
        except ProfileFileError:
            lost += 1
            continue
        program = Path((profile.command.split() or [""])[0]).name
        if program[:15] in left_out():
            launchers.add(program)
            continue
        processes += 1
        totals.update(profile.totals)
        line_bytes |= profile.line_bytes
        sorted_out += instructions.mix(profile.executions)
    if not processes and launchers:
        raise CollectError(elsewhere(sorted(launchers)))
    if not processes:
        raise CollectError("valgrind wrote no counts; the program may have replaced its own signal handling")
    events: dict[str, float | None] = {name: float(count) for name, count in totals.items()}
    events |= {f"{cache}.line_bytes": float(n_bytes) for cache, n_bytes in line_bytes.items()}
    kinds, reasons = sorted_out.events()
    notes = [f"{processes} processes were followed and added up"] if processes > 1 else []
    if launchers:
        notes.append(f"{' and '.join(sorted(launchers))}, which only started the others, is left out")
    if lost:
        notes.append(f"{lost} processes ended without a report (killed, or replaced by exec) and are left out")
    if sorted_out.unsorted > 0.001:
        unsorted = f"{sorted_out.unsorted:.1%} of the instructions are in no file (compiled at run time)"
        notes.append(f"{unsorted} and were not sorted")
    return Measurement("valgrind", events | kinds, notes=tuple(notes), reasons=reasons)


def _failed(execution: Execution, folder: Path) -> CollectError:
    logs = "\n".join(path.read_text(errors="replace") for path in sorted(folder.glob("log.*")))
    unhandled = re.search(r"unhandled instruction bytes: ((?:0x[0-9A-F]{2} ?)+)", logs)
    if unhandled and unhandled[1].startswith("0x62"):
        advice = "compile it without them (-march=x86-64-v3 instead of -march=native, or add -mno-avx512f)"
        problem = "valgrind cannot execute AVX-512 instructions, which this program holds"
        return CollectError(f"{problem}. For counting, {advice}")
    if unhandled:
        advice = "Compile it for an older processor, such as -march=x86-64-v3, or install a newer valgrind"
        problem = f"valgrind does not know an instruction of this program (bytes {unhandled[1].strip()})"
        return CollectError(f"{problem}. {advice}")
    own = re.findall(r"^(?:==\d+== )?((?:valgrind: |Process terminating ).+)$", logs, re.MULTILINE)
    words = f" ({own[-1][:200]})" if own else ""
    return CollectError(f"the command failed under valgrind: {execution.status}{words}")


def parse_caches(text: str) -> dict[str, CacheShape]:
    """Return caches from ``D1=32768,8,64 LL=33554432,16,64``, the sizes in bytes.

    >>> parse_caches("D1=32768,8,64")
    {'D1': (32768, 8, 64)}
    """
    caches: dict[str, CacheShape] = {}
    for part in text.split():
        match = re.fullmatch(r"(I1|D1|LL)=(\d{1,15}),(\d{1,15}),(\d{1,15})", part)
        if match is None:
            expected = "I1, D1 or LL with bytes, ways and bytes a line, such as D1=32768,8,64"
            raise SettingsError(f"cache: found {part!r}, expected {expected}.", argument="cache")
        caches[match[1]] = (int(match[2]), int(match[3]), int(match[4]))
    return caches
