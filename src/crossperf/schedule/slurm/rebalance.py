"""Jobs that wait in one partition and would end sooner in another, as the queues are now."""

from __future__ import annotations

import functools
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from crossperf.schedule.slurm import controller
from crossperf.schedule.slurm.advise import duration, lasts
from crossperf.schedule.slurm.controller import ControllerError, Start, seconds_of
from crossperf.schedule.slurm.names import Named, words_of
from crossperf.schedule.slurm.ranking import UNKNOWN_S
from crossperf.schedule.slurm.table import KeyRow, PartitionFacts, StoredTable

#: What squeue tells of a job, in the order of `WaitingJob`.
_FIELDS = (
    *("JobArrayID", "Partition", "UserName", "Reason", "NumNodes", "NumCPUs", "MinMemory", "TimeLimit", "StartTime"),
    *("Feature", "tres-per-node", "admin_comment"),
)
_UNIT = "\x1f"
_NOTHING = ("", "N/A", "(null)")
_MEGABYTES = {"K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0**2}
#: A job moves only if it ends sooner by this share of the time until its end, and by this many seconds.
_SHARE, _SECONDS = 0.1, 300.0


@dataclass(frozen=True)
class WaitingJob:
    """A job that waits, as squeue prints it."""

    number: str
    partition: str
    user: str
    reason: str
    nodes: str
    cpus: str
    memory: str
    limit: str
    start: str
    features: str
    gres: str
    tag: str

    @property
    def memory_mb(self) -> float:
        """The most that each node must have, whether the memory is that of a processor or of a node."""
        number, unit = self.memory[:-1], self.memory[-1:]
        return float(number) * _MEGABYTES.get(unit, 1.0) * int(self.cpus) if number.replace(".", "").isdigit() else 0.0


@dataclass(frozen=True)
class Move:
    """A job that should move: from where, to where, and the seconds until its end in both."""

    number: str
    app: str
    user: str
    here: str
    elsewhere: str
    end_here_s: float
    end_elsewhere_s: float

    def __str__(self) -> str:
        times = f"{duration(self.end_here_s)} until its end in {self.here}, {duration(self.end_elsewhere_s)}"
        return f"job {self.number} ({self.app}, {self.user}): {self.here} to {self.elsewhere} ({times} there)"

    def apply(self) -> None:
        """Let the controller move the job; raises where it refuses."""
        controller.ask("scontrol", "update", f"JobId={self.number}", f"Partition={self.elsewhere}")


def waiting() -> list[WaitingJob]:
    """Return the jobs that wait, in the order of the queue."""
    controller.refuse_unless_up()
    form = ",".join(f"{name}:{_UNIT}" for name in _FIELDS)
    command = ("squeue", "--noheader", "--states=PENDING", "--sort=-p,i", f"--Format={form}")
    lines = controller.ask(*command, env={"SLURM_TIME_FORMAT": "%s"}).splitlines()
    rows = (line.removesuffix(_UNIT).split(_UNIT) for line in lines)
    return [WaitingJob(*row) for row in rows if len(row) == len(_FIELDS)]


def moves(
    jobs: Iterable[WaitingJob],
    table: StoredTable,
    start: Callable[[str, Sequence[str]], Start] = controller.start,
    now_s: float | None = None,
) -> tuple[list[Move], Counter[str]]:
    """Return the jobs that should move, and why others stay.

    A job moves only if the plugin has sent it where it is, not its user. What moves to a partition lengthens the wait
    of those that come after it.

    Parameters
    ----------
    start
        Tells when a submission with these options would start in a partition.
    now_s
        Seconds since 1970; ``None`` takes the present.
    """
    now_s = time.time() if now_s is None else now_s
    facts = {partition.partition: partition for partition in table.partitions}
    asked = functools.cache(start)
    added_s: dict[str, float] = defaultdict(float)
    chosen: list[Move] = []
    stay: Counter[str] = Counter()
    for job in jobs:
        words = words_of(job.tag) if job.tag.startswith("crossperf ") else {}
        entry = table.find(Named((words.get("app", ""),), job.user, words.get("input", "")))
        why = _stays(job, words, entry, facts)
        if why or entry is None:
            stay[why or "the table does not know them"] += 1
            continue
        row = _in_time(job, entry[1], table.default)
        ends_s = _ends_s(job, row, facts, asked, added_s, float(job.start) - now_s)
        best = min(ends_s, key=ends_s.__getitem__)
        gain_s = ends_s[job.partition] - ends_s[best]
        if gain_s < max(_SECONDS, _SHARE * ends_s[job.partition]):
            stay["they are best where they are, or gain little"] += 1
            continue
        chosen.append(
            Move(job.number, words["app"], job.user, job.partition, best, ends_s[job.partition], ends_s[best])
        )
        added_s[best] += _run_s(job, entry[1], best) * int(job.nodes) / (facts[best].nodes or 1)
    return chosen, stay


def _stays(
    job: WaitingJob, words: dict[str, str], entry: object | None, facts: dict[str, PartitionFacts]
) -> str | None:
    if job.reason not in controller.WAITS_FOR_ITS_TURN or not job.start.isdecimal():
        return "they do not wait for their turn, or nobody knows when it comes"
    if "sent" not in words:
        return "their users chose the partition"
    if "," in job.partition:
        return "they have a list, from which Slurm takes what is free first"
    if job.features not in _NOTHING or job.gres not in _NOTHING:
        return "they ask for features or generic resources"
    return None if entry is not None and job.partition in facts else "the table does not know them"


def _in_time(job: WaitingJob, row: KeyRow, default: str) -> KeyRow:
    """Return the choices that let a job end within its limit, and the one where it is."""
    base = next((choice for choice in row.choices if choice.partition == default), None)
    limit_s = seconds_of(job.limit)
    kept = [c for c in row.choices if c.partition == job.partition or lasts(c, base, row.seconds, limit_s)]
    return replace(row, choices=tuple(kept))


def _ends_s(
    job: WaitingJob,
    row: KeyRow,
    facts: dict[str, PartitionFacts],
    start: Callable[[str, tuple[str, ...]], Start],
    added_s: dict[str, float],
    wait_s: float,
) -> dict[str, float]:
    """Return the seconds until the end of a job in each partition that can take it."""
    ends_s = {job.partition: max(0.0, wait_s) + _run_s(job, row, job.partition)}
    limit = [] if seconds_of(job.limit) is None else [f"--time={job.limit}"]
    options = (f"--nodes={job.nodes}", f"--ntasks={job.cpus}", *limit, "--wrap=true", "--output=/dev/null")
    for choice in row.choices:
        place = facts.get(choice.partition)
        if place is None or choice.partition == job.partition or place.closed or place.adds:
            continue
        if place.memory_mb is None or job.memory_mb > place.memory_mb:
            continue
        begins = start(choice.partition, options)
        if begins.refused is None:
            waits_s = begins.wait_s + added_s[choice.partition]
            ends_s[choice.partition] = waits_s + _run_s(job, row, choice.partition)
    return ends_s


def _run_s(job: WaitingJob, row: KeyRow, partition: str) -> float:
    relative = next((choice.relative for choice in row.choices if choice.partition == partition), 1.0)
    return (row.seconds or seconds_of(job.limit) or UNKNOWN_S) * relative


def apply(several: Iterable[Move]) -> tuple[list[Move], list[str]]:
    """Move jobs, and return those that moved with a sentence for each that the controller refused."""
    done, problems = [], []
    for move in several:
        try:
            move.apply()
            done.append(move)
        except ControllerError as error:
            problems.append(f"job {move.number} stays in {move.here}: {error}")
    return done, problems
