"""Counts what a command's kernels do on an AMD GPU, with rocprofv3 or rocprof.

Written from AMD's description of the tools; never tried on an AMD GPU.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

from crossperf.catalog import FORMULAS
from crossperf.catalog.formula import first_events
from crossperf.collect.process import Runner, ask, version_of
from crossperf.errors import some_of
from crossperf.importers.measurement import Measurement
from crossperf.importers.rocprof import ROCPROF, adds_up, read, reads, total

#: An MI200 has eight counters for the sequencer (SQ), four for each cache; every further group runs the command again.
_AT_A_TIME, _OF_A_CACHE = {"SQ": 8}, 4
_ROCPROFV3 = "rocprofv3"


class RocprofBackend:
    """Every kernel launch of a command on an AMD GPU; the tool executes the command once for each group of counters."""

    name = ROCPROF

    def __init__(self) -> None:
        places = [(tool, f"/opt/rocm/bin/{tool}") for tool in (_ROCPROFV3, ROCPROF)]
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
            to_folder = ("--output-format", "csv", "-d", f"{folder}/out", "--")
            output = to_folder if Path(tool).name == _ROCPROFV3 else ("-o", f"{folder}/out.csv")
            line = (tool, "-i", str(groups), *output, *command)
            execution = runner.count(line, Path(tool).name)
            files = [file for file in Path(folder).rglob("*.csv") if reads(file)]
            sums = read(Path(folder) if len(files) > 1 else files[0])[0] if files else total([], asked)
        optional = {name for formula in FORMULAS if formula.tool == self.name for name in formula.optional}
        lacking = [name for name in wanted if name not in asked and name not in optional]
        notes = [*sums.notes, *([f"this GPU has no {some_of(lacking)}"] if lacking else [])]
        notes += [] if files else [f"{Path(tool).name} wrote no counters"]
        events = dict.fromkeys([*asked, *lacking]) | dict(sums.events)
        version = version_of(tool, r"\d+\.\d+(\.\d+)?")
        facts = {"kernels": sums.facts["kernels"]}
        return Measurement(self.name, events, version, line, execution.wall_s, notes=tuple(notes), facts=facts)


def wanted_counters() -> list[str]:
    """Return the counters that the back end asks for: the first formula of each, and the wavefronts."""
    return list(dict.fromkeys(["SQ_WAVES", *filter(adds_up, first_events(ROCPROF, FORMULAS))]))


def grouped(counters: Sequence[str]) -> list[list[str]]:
    """Return counters in groups that an MI200 counts at a time: some of each block of the hardware.

    >>> grouped([*(f"SQ_{i}" for i in range(9)), "TCC_HIT_sum"])
    [['SQ_0', 'SQ_1', 'SQ_2', 'SQ_3', 'SQ_4', 'SQ_5', 'SQ_6', 'SQ_7', 'TCC_HIT_sum'], ['SQ_8']]
    """
    seen: Counter[str] = Counter()
    groups: dict[int, list[str]] = defaultdict(list)
    for name in counters:
        block = name.split("_")[0]
        groups[seen[block] // _AT_A_TIME.get(block, _OF_A_CACHE)].append(name)
        seen[block] += 1
    return [groups[number] for number in sorted(groups)] or [[]]


def _known(tool: str) -> frozenset[str]:
    """Return the counters that the tool lists for this GPU; empty where it does not tell."""
    options = [["--list-avail"]] if Path(tool).name == _ROCPROFV3 else [["--list-basic"], ["--list-derived"]]
    answers = [ask([tool, *option], patience_s=120.0) for option in options]
    text = "" if None in answers else " ".join(done.stdout for done in answers if done)
    return frozenset(filter(adds_up, re.findall(r"\w+", text)))
