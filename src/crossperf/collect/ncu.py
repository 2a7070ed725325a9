"""Counts what a command's kernels do on an NVIDIA GPU, with Nsight Compute (``ncu``)."""

from __future__ import annotations

import functools
import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from crossperf.catalog import FORMULAS
from crossperf.catalog.formula import first_events
from crossperf.collect.process import Runner, ask, version_of
from crossperf.errors import CollectError, some_of
from crossperf.importers.measurement import Measurement
from crossperf.importers.ncu import (
    BLOCK_SIZE,
    CYCLES,
    REGISTERS,
    THREADS,
    TIME,
    WARPS,
    complaint,
    header_at,
    launches_of_text,
    total,
)
from crossperf.records import OK

#: Kept beside what the formulas need. GPUs of Blackwell's consumer line spell the bytes with ``_op_``.
_DRAM = tuple(f"dram__bytes_{way}.sum" for way in ("read", "write", "op_read", "op_write"))
_MORE = (TIME, *_DRAM, "smsp__thread_inst_executed.sum", WARPS, CYCLES, BLOCK_SIZE, THREADS, REGISTERS)
_PERMISSION = "ERR_NVGPUCTRPERM"
_MAY_NOT = (
    "the driver lets root alone read the GPU's counters; run as root, or let root load the kernel module nvidia"
    " with NVreg_RestrictProfilingToAdminUsers=0"
)


class NcuBackend:
    """Every kernel launch, run again as often as its metrics need; all processes of the command are followed.

    ncu saves and restores the GPU's memory around each repetition. A program of many launches takes long, and
    kernels that wait for each other (over GPUs or ranks) can hang. Clocks are left as they are.

    Parameters
    ----------
    launch_limit
        How many launches to count, the first of all processes. Nothing is scaled up to the others: the sums are
        those of a part then, and a note says so.
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
        problem = complaint(text)
        if _PERMISSION in problem:
            raise CollectError(f"ncu could not count: {_MAY_NOT}")
        if execution.status != OK:
            raise CollectError(f"the command failed under ncu: {execution.status}{problem and f' ({problem})'}")
        rows = list(launches_of_text(text, str(log))) if header_at(text.splitlines()) is not None else []
        if not rows and problem:
            raise CollectError(f"ncu could not count: {problem}")
        sums = total(rows, wanted=asked)
        notes = [*sums.notes, *([f"ncu: {problem}"] if problem else [])]
        # Without these nothing is missing, on GPUs that have no such thing.
        formulas = [formula for formula in FORMULAS if formula.tool == self.name]
        optional = {*_DRAM[2:], *(name for formula in formulas for name in formula.optional)}
        lacking = [name for name in wanted if name not in asked and name not in optional]
        if lacking:
            notes.append(f"this GPU has no {some_of(lacking)}")
        if self.launch_limit and len(rows) >= self.launch_limit:
            notes.append(f"sums of the first {self.launch_limit:,} launches alone, as was asked for")
        events = dict(sums.events) | dict.fromkeys(lacking)
        facts = {name: value for name, value in sums.facts.items() if name in ("gpu", "kernels")}
        return Measurement(self.name, events, self.version, line, execution.wall_s, notes=tuple(notes), facts=facts)

    @property
    def version(self) -> str | None:
        """The version of ncu here."""
        return version_of(self._ncu or self.name, r"(?<=Version )\S+")

    def asked(self) -> list[str]:
        """Return the metrics that are asked for: those wanted that this GPU has."""
        known, wanted = known_metrics(self._ncu or self.name), wanted_metrics()
        known |= {name.removesuffix(".sum") for name in wanted if name.startswith("launch__") or not known}
        return [name for name in wanted if name.removesuffix(".sum") in known]

    def prefix(self, log: Path) -> list[str]:
        """Return the command line to put in front of a command; the table goes into a file of its own.

        Without one, ncu's table and the command's output would share one stream.
        """
        options = ["--target-processes", "all", "--replay-mode", "kernel", "--clock-control", "none"]
        options += ["--cache-control", self.cache_control, "--print-units", "base", "--csv", "--page", "raw"]
        limit = ["--launch-count", str(self.launch_limit)] if self.launch_limit else []
        return [self._ncu or self.name, *options, *limit, "--metrics", ",".join(self.asked()), "--log-file", str(log)]


def wanted_metrics() -> list[str]:
    """Return the metrics that the back end asks for: the first formula of each counter, and a few more."""
    return list(dict.fromkeys([*(name for name in first_events("ncu", FORMULAS) if "__" in name), *_MORE]))


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
    done = ask([ncu, "--query-metrics"], patience_s=120.0)
    return frozenset(re.findall(r"^(\w+__\w+)\s", done.stdout if done else "", flags=re.MULTILINE))
