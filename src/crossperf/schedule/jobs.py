"""Jobs that arrive over time, from a trace in the Standard Workload Format (SWF) or to one."""

# J jobs

from __future__ import annotations

import gzip
import math
import os
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple, TextIO, cast

import numpy as np

from crossperf.arrays import Floats, Integers
from crossperf.documents import lines_of
from crossperf.errors import CrossperfError, some_of
from crossperf.files import whole

#: No job runs for 30,000 years.
_LONGEST_S = 1e12


class TraceError(CrossperfError):
    """A trace of jobs cannot be used; ``path`` and ``line`` name the place."""


@dataclass(frozen=True)
class Jobs:
    """Jobs in order of arrival; times in seconds, run and requested time as they would be on the reference platform.

    `user` and `executable` are numbers, -1 where unknown. `left_out` counts by reason what a trace held besides.
    """

    submit_s: Floats
    nodes: Integers
    run_s: Floats
    requested_s: Floats
    user: Integers
    executable: Integers
    name: str = "jobs"
    left_out: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for what, seconds in (("run time", self.run_s), ("requested time", self.requested_s)):
            for j in np.flatnonzero(~((seconds > 0) & (seconds <= _LONGEST_S)))[:1]:
                odd = f"a {what} of {seconds[j]:g} s for job {j + 1:,}"
                raise TraceError(f"{self.name}: found {odd}, expected seconds above 0 and up to {_LONGEST_S:g}.")

    def __len__(self) -> int:
        return len(self.submit_s)


class _Line(NamedTuple):
    """What a line of a trace says that matters here; -1 stands for unknown."""

    submit_s: float
    run_s: float
    processors: float
    requested_processors: float
    requested_s: float
    status: float
    user: float
    executable: float


_COLUMNS = 18
#: Takes the fields of `_Line` out of the 18 columns.
_FIELDS = itemgetter(1, 3, 4, 7, 8, 10, 11, 13)
#: Status of lines that tell a part of a job of which another line tells the whole.
_PARTS = (2, 3, 4)
_CANCELLED = 5
_HEADER = re.compile(r";\s*(\w+)\s*:\s*(\d{1,15})\b")


def read_swf(path: str | os.PathLike[str], *, processors_per_node: int | None = None) -> Jobs:
    """Return the jobs of a trace (``.swf`` or ``.swf.gz``) that ran, in order of arrival.

    Failed jobs and those that were cancelled while they ran took their nodes, so they stay, for as long as they ran.
    Jobs that never started are left out and counted, and so are lines that tell of a part of a job.

    Parameters
    ----------
    processors_per_node
        How many processors make a node. ``None`` takes the trace's MaxProcs over MaxNodes, or 1 where it gives none.
    """
    left_out: Counter[str] = Counter()
    headers: dict[str, int] = {}
    kept: list[_Line] = []
    for line in _lines(Path(path), headers):
        reason = _why_left_out(line)
        if reason:
            left_out[reason] += 1
        else:
            kept.append(line)
    if not kept:
        raise TraceError(f"{path}: found no job that ran, expected at least one. Check the trace.", path=str(path))
    nodes, processors = headers.get("MaxNodes", 0), headers.get("MaxProcs", 0)
    by_header = max(1, processors // nodes) if nodes and processors else 1
    return _jobs(kept, processors_per_node or by_header, Path(path).name, dict(left_out))


def _lines(path: Path, headers: dict[str, int]) -> Iterator[_Line]:
    opener = gzip.open if path.suffix == ".gz" else open
    problems: dict[int, str] = {}
    try:
        with opener(path, "rt", encoding="utf-8", errors="replace") as lines:
            for number, text in enumerate(lines_of(cast("TextIO", lines)), start=1):
                if text.startswith(";"):
                    headers.update((name, int(value)) for name, value in _HEADER.findall(text))
                elif text.strip():
                    try:
                        yield _parse(text, path, number)
                    except TraceError as problem:
                        problems[number] = str(problem)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise TraceError(f"{path}: does not read as a whole gzip file ({error}). Copy it again.", path=path) from error
    except OSError as error:
        reason = f"cannot be read ({error.strerror}), expected a trace of jobs. Check the path."
        raise TraceError(f"{path}: {reason}", path=path) from error
    if problems:
        first, *others = problems
        also = f" Malformed as well: line {some_of(map(str, others), 8)}." if others else ""
        raise TraceError(f"{problems[first]}{also}", path=str(path), line=first)


def _parse(text: str, path: Path, number: int) -> _Line:
    words = text.split()
    if len(words) < _COLUMNS:
        raise _malformed(path, number, f"found {len(words)} columns, expected {_COLUMNS}")
    try:
        line = _Line._make(map(float, _FIELDS(words)))
    except ValueError as error:
        wrong = str(error).rpartition(" ")[2]  # a word holds no blank, so it is the last of the sentence
        raise _malformed(path, number, f"found {wrong}, expected a number") from None
    if not math.isfinite(sum(line)):
        raise _malformed(path, number, "found a number that is not finite, expected seconds and counts")
    if line.submit_s < 0:
        raise _malformed(path, number, f"found a submit time of {line.submit_s:g} s, expected 0 or more")
    for what, seconds in (("run", line.run_s), ("requested", line.requested_s)):
        if seconds < 0 and seconds != -1:
            problem = f"found a {what} time of {seconds:g} s, expected 0 or more, or -1 for unknown"
            raise _malformed(path, number, problem)
        if seconds > _LONGEST_S:
            problem = f"found a {what} time of {seconds:g} s, expected at most {_LONGEST_S:g}"
            raise _malformed(path, number, problem)
    return line


def _malformed(path: Path, number: int, what: str) -> TraceError:
    advice = "Fix or remove the line: the columns are those of the Standard Workload Format, version 2.2."
    return TraceError(f"{path}, line {number:,}: {what}. {advice}", path=str(path), line=number)


def _why_left_out(line: _Line) -> str | None:
    if line.status in _PARTS:
        return "parts of jobs that another line tells whole"
    if line.status == _CANCELLED and line.run_s <= 0:
        return "cancelled before they started"
    if line.run_s < 0:
        return "without a run time"
    if max(line.processors, line.requested_processors) <= 0:
        return "without a number of processors"
    return None


def _jobs(lines: list[_Line], per_node: int, name: str, left_out: Mapping[str, int]) -> Jobs:
    columns = (np.array(column) for column in zip(*sorted(lines, key=itemgetter(0)), strict=True))
    submit_s, run_s, processors, asked, requested_s, _, user, executable = columns
    wanted = np.where(asked > 0, asked, processors)
    notes = [f"{name}: {per_node} processors make a node."] if per_node > 1 else []
    if (run_s == 0).any():
        notes.append(f"{name}: {(run_s == 0).sum():,} jobs ran for 0 s and count as 1 s.")
    seconds = np.maximum(run_s, 1.0)
    nodes = np.ceil(wanted / per_node).astype(np.int64)
    limit_s = np.where(requested_s > 0, requested_s, seconds)
    who = (user.astype(np.int64), executable.astype(np.int64))
    return Jobs(submit_s, nodes, seconds, limit_s, *who, name, left_out, tuple(notes))


def write_swf(path: str | os.PathLike[str], jobs: Jobs, wait_s: Floats | None = None) -> None:
    """Write jobs as a trace (.swf or .swf.gz), a processor for each node, in whole seconds as the format has it."""
    waits = np.full(len(jobs), -1.0) if wait_s is None else wait_s
    columns = (jobs.submit_s, waits, jobs.run_s, jobs.nodes, jobs.requested_s, jobs.user, jobs.executable)
    rows = zip(*(np.round(column).astype(np.int64).tolist() for column in columns), strict=True)
    with whole(path) as part:
        opener = gzip.open if str(path).endswith(".gz") else open
        with opener(part, "wt", encoding="utf-8") as out:
            out.write(f"; Version: 2.2\n; MaxJobs: {len(jobs)}\n; Note: {jobs.name}; a processor stands for a node\n")
            for i, (submit, wait, run, nodes, asked, user, program) in enumerate(rows, start=1):
                request = f"{nodes} {asked} -1"
                out.write(f"{i} {submit} {wait} {run} {nodes} -1 -1 {request} 1 {user} -1 {program} -1 -1 -1 -1\n")
