"""The Standard Workload Format (SWF): traces of parallel machines, read and written."""

# J jobs

from __future__ import annotations

import gzip
import math
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from crossperf.arrays import Floats, Integers, Mask
from crossperf.errors import SettingsError, some_of
from crossperf.files import whole
from crossperf.schedule.jobs import LONGEST_S, Jobs, TraceError, names_of, nodes_of
from crossperf.schedule.traces import text
from crossperf.schedule.traces.feedback import FEEDBACK, after_sessions

_COLUMNS = 18
#: Status of lines that tell a part of a job of which another line tells the whole.
_PARTS = (2, 3, 4)
_CANCELLED = 5
_HEADER = re.compile(r";\s*(\w+)\s*:\s*(\d{1,15}(?:,\d{3}){0,4})\b")
_KB_PER_GB = 1024.0**2


class _Line(NamedTuple):
    """What a line of a trace says that matters here; -1 stands for unknown."""

    number: float
    submit_s: float
    wait_s: float
    run_s: float
    processors: float
    used_kb: float
    requested_processors: float
    requested_s: float
    requested_kb: float
    status: float
    user: float
    executable: float
    queue: float
    preceding: float
    think_s: float


#: Takes the fields of `_Line` out of the 18 columns.
_FIELDS = itemgetter(0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 13, 14, 16, 17)


def read_swf(
    path: str | os.PathLike[str],
    *,
    processors_per_node: int | None = None,
    share_nodes: bool = False,
    feedback: str | None = None,
) -> Jobs:
    """Return the jobs of a trace (``.swf`` or ``.swf.gz``) that ran, in order of arrival.

    Failed jobs and those that were cancelled while they ran took their nodes, so they stay, for as long as they ran.
    Jobs that never started are left out and counted, and so are lines that tell of a part of a job, or of a run time
    below 0.

    Parameters
    ----------
    processors_per_node
        How many processors make a node. ``None`` takes the trace's MaxProcs over MaxNodes, or 1 where it gives none.
    share_nodes
        Count processors in the place of nodes, so that a job may take a part of one.
    feedback
        ``jobs``: a job arrives when the preceding job that the trace names has ended and its think time is over.
        ``users``: it follows the job of the same user that ended last before it arrived, in one session.
    """
    if feedback not in (None, *FEEDBACK):
        expected = " or ".join(FEEDBACK)
        raise SettingsError(f"feedback: found {feedback!r}, expected {expected}.", argument="feedback")
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
        why = f" ({', '.join(f'{count:,} {reason}' for reason, count in left_out.items())})" if left_out else ""
        raise TraceError(f"{path}: found no job that ran{why}, expected at least one. Check the trace.", path=str(path))
    nodes, processors = headers.get("MaxNodes", 0), headers.get("MaxProcs", 0)
    by_header = max(1, processors // nodes) if nodes and processors else 1
    per_node = processors_per_node or by_header
    return _jobs(kept, per_node, share_nodes, feedback, Path(path).name, dict(left_out))


def _lines(path: Path, headers: dict[str, int]) -> Iterator[_Line]:
    problems: dict[int, str] = {}
    for number, line in text.lines(path):
        if line.startswith(";"):
            headers.update((name, int(value.replace(",", ""))) for name, value in _HEADER.findall(line))
        elif line.strip():
            try:
                yield _parse(line, path, number)
            except TraceError as problem:
                problems[number] = str(problem)
    if problems:
        first, *others = problems
        also = f" Malformed as well: line {some_of(map(str, others), 8)}." if others else ""
        raise TraceError(f"{problems[first]}{also}", path=str(path), line=first)


def _parse(line: str, path: Path, number: int) -> _Line:
    words = line.split()
    if len(words) < _COLUMNS:
        raise _malformed(path, number, f"found {len(words)} columns, expected {_COLUMNS}")
    try:
        job = _Line._make(map(float, _FIELDS(words)))
    except ValueError as error:
        wrong = str(error).rpartition(" ")[2]  # a word holds no blank, so it is the last of the sentence
        raise _malformed(path, number, f"found {wrong}, expected a number") from None
    if not math.isfinite(sum(job)):
        raise _malformed(path, number, "found a number that is not finite, expected seconds and counts")
    if job.submit_s < 0:
        raise _malformed(path, number, f"found a submit time of {job.submit_s:g} s, expected 0 or more")
    for what, seconds in (("run", job.run_s), ("requested", job.requested_s)):
        if seconds > LONGEST_S:
            problem = f"found a {what} time of {seconds:g} s, expected at most {LONGEST_S:g}"
            raise _malformed(path, number, problem)
    return job


def _malformed(path: Path, number: int, what: str) -> TraceError:
    advice = "Fix or remove the line: the columns are those of the Standard Workload Format, version 2.2."
    return TraceError(f"{path}, line {number:,}: {what}. {advice}", path=str(path), line=number)


def _why_left_out(line: _Line) -> str | None:
    if line.status in _PARTS:
        return "parts of jobs that another line tells whole"
    if line.status == _CANCELLED and line.run_s <= 0:
        return "cancelled before they started"
    if line.run_s < 0:
        return "without a run time" if line.run_s == -1 else "with a run time below 0"
    if max(line.processors, line.requested_processors) <= 0:
        return "without a number of processors"
    return None


def _jobs(
    lines: list[_Line], per_node: int, share: bool, feedback: str | None, name: str, left_out: Mapping[str, int]
) -> Jobs:
    columns = (np.array(column) for column in zip(*sorted(lines, key=itemgetter(1)), strict=True))
    number, submit_s, wait_s, run_s, processors, used_kb, asked, requested_s, asked_kb, _, *who = columns
    user, executable, queue, preceding, think_s = who
    wanted = np.where(asked > 0, asked, processors)
    nodes = nodes_of(name, wanted if share else wanted / per_node)
    seconds = np.maximum(run_s, 1.0)
    limit_s = np.where(requested_s > 0, requested_s, seconds)
    # A line tells kilobytes of memory for each processor.
    kb = np.where(asked_kb > 0, asked_kb, np.where(used_kb > 0, used_kb, np.nan))
    memory_gb = kb * (1 if share else np.minimum(wanted, per_node)) / _KB_PER_GB
    follows, think = _preceding(number, preceding, think_s)
    if feedback == "users":
        follows, think = after_sessions(submit_s, wait_s, run_s, user)
    notes = _notes(name, per_node, share, run_s, requested_s, feedback, follows)
    named = {"preceding jobs and think times (--feedback jobs)": (preceding > 0).any() and feedback != "jobs"}
    return Jobs(
        submit_s,
        nodes,
        seconds,
        limit_s,
        names_of(name, "user", user),
        names_of(name, "executable", executable),
        name,
        left_out,
        tuple(notes),
        queue=names_of(name, "queue", queue),
        ignored=tuple(what for what, ignored in named.items() if ignored),
        memory_gb=memory_gb if np.isfinite(memory_gb).any() else None,
        follows=follows if feedback else None,
        think_s=think if feedback else None,
    )


def _preceding(number_j: Floats, preceding_j: Floats, think_j: Floats) -> tuple[Integers, Floats]:
    """Return the place of the job that each job follows, -1 for none that arrives before it, and the think times."""
    place = {number: j for j, number in enumerate(number_j.tolist())}
    follows_j = np.array([place.get(number, -1) if number > 0 else -1 for number in preceding_j.tolist()], np.int64)
    follows_j[follows_j >= np.arange(len(follows_j))] = -1
    return follows_j, np.where(think_j >= 0, think_j, np.nan)


def _notes(
    name: str, per_node: int, share: bool, run_s: Floats, requested_s: Floats, feedback: str | None, follows: Integers
) -> list[str]:
    unlimited: Mask = requested_s <= 0
    notes = []
    if share:
        notes.append(f"{name}: processors are counted in the place of nodes, {per_node} for each node of a machine.")
    elif per_node > 1:
        notes.append(f"{name}: {per_node} processors make a node.")
    if (run_s == 0).any():
        notes.append(f"{name}: {(run_s == 0).sum():,} jobs ran for 0 s and count as 1 s.")
    if (requested_s < -1).any():
        notes.append(f"{name}: {(requested_s < -1).sum():,} jobs have a limit below 0, which counts as none.")
    if unlimited.any():
        notes.append(text.clairvoyant(name, int(unlimited.sum()), len(run_s)))
    if feedback:
        notes.append(f"{name}: {(follows >= 0).sum():,} of {len(follows):,} jobs arrive after another has ended.")
    return notes


def write_swf(path: str | os.PathLike[str], jobs: Jobs, wait_s: Floats | None = None) -> None:
    """Write jobs as a trace (.swf or .swf.gz), a processor for each node, in whole seconds as the format has it."""
    waits, unknown = np.full(len(jobs), -1.0) if wait_s is None else wait_s, np.full(len(jobs), -1)
    queue = unknown if jobs.queue is None else jobs.queue
    follows = unknown if jobs.follows is None else np.where(jobs.follows >= 0, jobs.follows + 1, -1)
    think = unknown if jobs.think_s is None else np.nan_to_num(jobs.think_s, nan=-1.0)
    times = (jobs.submit_s, waits, jobs.run_s, jobs.nodes, jobs.requested_s)
    columns = (*times, jobs.user, jobs.executable, queue, follows, think)
    rows = zip(*(np.round(column).astype(np.int64).tolist() for column in columns), strict=True)
    opener: Any = gzip.open if str(path).endswith(".gz") else open
    with whole(path) as part, opener(part, "wt", encoding="utf-8") as out:
        out.write(f"; Version: 2.2\n; MaxJobs: {len(jobs)}\n; Note: {jobs.name}; a processor stands for a node\n")
        for i, (submit, wait, run, nodes, asked, user, program, line, after, pause) in enumerate(rows, start=1):
            request = f"{nodes} {asked} -1"
            who = f"{user} -1 {program} {line} -1 {after} {pause}"
            out.write(f"{i} {submit} {wait} {run} {nodes} -1 -1 {request} 1 {who}\n")
