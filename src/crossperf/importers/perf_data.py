"""Reads ``perf.data``, which ``perf record`` and ``perf stat record`` write, through the program ``perf script``.

Samples of ``perf record`` are added up by their periods, so that a count is an estimate; what ``perf stat record``
keeps are counts.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from crossperf.errors import some_of
from crossperf.importers.files import start_of, unusable
from crossperf.importers.measurement import Measurement

_MAGICS = (b"PERFILE2", b"2ELIFREP")
_SAMPLE = re.compile(
    r"\s*(?P<comm>.*?)\s+(?P<pid>-?\d+)/(?P<tid>-?\d+)\s+(?P<time>\d+\.\d+):\s+(?P<period>\d+)\s+(?P<event>\S+?):?\s*"
)
_COUNT = re.compile(
    r"\s*(?P<place>-?\d+\s+-?\d+)\s+(?P<value>\d+)\s+(?P<enabled>\d+)\s+(?P<running>\d+)\s+(?P<time>\d+)\s+(?P<event>\S+)\s*"
)
#: Fewer samples than this say little: the first ones and the last of an event weigh too much.
_FEWEST = 100
#: Letters that the kernel keeps of a process's name.
_COMM = 15
_FIELDS = "comm,pid,tid,time,event,period"
_COUNTS_INSIDE = "contains stat data"


def reads(path: Path) -> bool:
    """Tell whether a file is a ``perf.data``."""
    return start_of(path, 8) in _MAGICS


def read(path: Path) -> list[Measurement]:
    """Return the one recording that a file holds."""
    if not reads(path):
        raise unusable(path, "found a file that does not start with PERFILE2, expected what 'perf record' writes.")
    perf = shutil.which("perf")
    if perf is None:
        advice = "Install it (Debian: linux-perf), or import where it is."
        raise unusable(path, f"found no program perf on this machine, expected it to read perf.data with. {advice}")
    head = _head(perf, path)
    return [_counts(perf, path, head) if _COUNTS_INSIDE in head else _samples(perf, path, head)]


@contextmanager
def _running(perf: str, path: Path, *options: str) -> Iterator[Iterator[str]]:
    """Yield the lines that a subcommand of perf prints; its failure is an error in its words.

    ``-f`` reads files of other users. Debug information is not looked for.
    """
    line = [perf, *options, "-f", "-i", str(path)]
    env = os.environ | {"LC_ALL": "C", "DEBUGINFOD_URLS": "", "PAGER": "cat"}
    with tempfile.TemporaryFile("w+", errors="replace") as complaints:
        process = subprocess.Popen(
            line,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=complaints,
            env=env,
            text=True,
            errors="replace",
        )
        with process:
            try:
                yield _lines(process.stdout)
            except BaseException:
                process.kill()
                raise
        complaints.seek(0)
        words = [text.strip() for text in complaints.read(10_000).splitlines() if text.strip()]
    if process.returncode != 0:
        why = f" ({words[-1]})" if words else ""
        advice = "It may be cut short, or of a newer perf than the one here."
        raise unusable(path, f"{' '.join(line[:2])} cannot read it{why}, expected a whole perf.data. {advice}")


def _lines(stream: IO[str] | None) -> Iterator[str]:
    """Yield lines; one that goes on without end is cut."""
    while stream and (line := stream.readline(1 << 16)):
        yield line


def _head(perf: str, path: Path) -> str:
    with _running(perf, path, "report", "--header-only") as lines:
        return "".join(lines)


def _fact(head: str, name: str) -> str | None:
    match = re.search(rf"^# {re.escape(name)}\s*: (.+?)\s*$", head, re.MULTILINE)
    return match[1] if match else None


def _facts(head: str, comm: str | None) -> dict[str, Any]:
    # Not "captured on": that is when the file was last written, which a copy changes.
    names = {"host": "hostname", "cpu_model": "cpudesc", "perf_command": "cmdline"}
    facts: dict[str, Any] = {ours: _fact(head, theirs) for ours, theirs in names.items()}
    words = (facts["perf_command"] or "").split()
    # The command follows on perf's options, of which the kernel's name for the process tells it apart.
    at = next((at for at, word in enumerate(words) if at > 1 and Path(word).name[:_COMM] == comm), None)
    if at is None and "--" in words[:-1]:
        at = words.index("--") + 1
    program = comm if at is None else Path(words[at]).name
    return facts | {"app": program, "input": " ".join(words[at + 1 :]) or None if at is not None else None}


@dataclass
class _Samples:
    """Samples added up as they come."""

    periods: Counter[str] = field(default_factory=Counter)
    numbers: Counter[str] = field(default_factory=Counter)
    by_comm: Counter[str] = field(default_factory=Counter)
    threads: set[tuple[str, str]] = field(default_factory=set)
    first_s: float | None = None
    last_s: float | None = None

    def add(self, sample: re.Match[str]) -> None:
        """Add a sample."""
        self.periods[sample["event"]] += int(sample["period"])
        self.numbers[sample["event"]] += 1
        self.by_comm[sample["comm"]] += 1
        self.threads.add((sample["pid"], sample["tid"]))
        time_s = float(sample["time"])
        self.first_s = time_s if self.first_s is None else min(self.first_s, time_s)
        self.last_s = time_s if self.last_s is None else max(self.last_s, time_s)


def _samples(perf: str, path: Path, head: str) -> Measurement:
    samples = _Samples()
    with _running(perf, path, "script", "-F", _FIELDS) as lines:
        for line in lines:
            if match := _SAMPLE.fullmatch(line):
                samples.add(match)
    if samples.first_s is None or samples.last_s is None:
        advice = "Record again, for longer or with a higher frequency (-F)."
        raise unusable(path, f"found no sample with a time, expected at least one. {advice}")
    few = [event for event, number in samples.numbers.items() if number < _FEWEST]
    events = {event: None if event in few else float(total) for event, total in samples.periods.items()}
    number = samples.numbers.total()
    notes = [f"counts are estimates from {number:,} samples", "runtime is the span from the first sample to the last"]
    if few:
        notes.append(f"fewer than {_FEWEST} samples are no estimate, so these are left out: {some_of(few)}")
    ((comm, _),) = samples.by_comm.most_common(1)
    facts = _facts(head, comm) | {"threads_sampled": len(samples.threads), "samples": dict(samples.numbers)}
    span_s = samples.last_s - samples.first_s
    return Measurement("perf", events, _fact(head, "perf version"), (), span_s or None, tuple(notes), facts)


def _counts(perf: str, path: Path, head: str) -> Measurement:
    """Return the counts of ``perf stat record``: the last reading of each event on each processor or thread."""
    last: dict[tuple[str, str], re.Match[str]] = {}
    with _running(perf, path, "script") as lines:
        for line in lines:
            if match := _COUNT.fullmatch(line):
                last[match["event"], match["place"]] = match
    if not last:
        raise unusable(path, "found no count, expected what 'perf stat record' keeps. Count again.")
    readings: dict[str, list[re.Match[str]]] = {}
    for (event, _), reading in last.items():
        readings.setdefault(event, []).append(reading)
    events = {event: _scaled(of_event) for event, of_event in readings.items()}
    shared = [
        event for event, of_event in readings.items() if any(each["running"] != each["enabled"] for each in of_event)
    ]
    notes = [f"perf scaled these, which shared a register: {some_of(shared)}"] if shared else []
    runtime_s = max(int(reading["time"]) for reading in last.values()) * 1e-9
    return Measurement(
        "perf", events, _fact(head, "perf version"), (), runtime_s or None, tuple(notes), _facts(head, None)
    )


def _scaled(readings: Sequence[re.Match[str]]) -> float | None:
    """Return a count over all processors or threads, each scaled to the time in which it was wanted."""
    total = 0.0
    for reading in readings:
        value, enabled, running = (int(reading[name]) for name in ("value", "enabled", "running"))
        if enabled and not running:
            return None
        total += value * enabled / running if running else value
    return total
