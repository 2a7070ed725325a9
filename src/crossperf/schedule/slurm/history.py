"""Finished jobs as runs: from sacct's output, or from the file of the plugin jobcomp/filetxt."""

from __future__ import annotations

import fcntl
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from crossperf.errors import CrossperfError, some_of
from crossperf.records import OK, Run
from crossperf.runs import jsonl
from crossperf.schedule.slurm import controller
from crossperf.schedule.slurm.names import named, words_of
from crossperf.schedule.slurm.site import Site

#: What is asked of sacct; a file from elsewhere may have these columns in any order, and others.
_NEEDED = ("JobIDRaw", "JobName", "User", "Partition", "State", "ElapsedRaw", "NNodes", "Start")
COLUMNS = ("Cluster", *_NEEDED, "Comment", "AdminComment")
#: The separator of our own call: names and comments may hold a |.
_UNIT = "\x1f"
#: A month of a large site takes the database minutes.
_PATIENCE_S = 900.0
#: Jobs that have not ended yet.
_GOING_ON = ("RUNNING", "PENDING", "SUSPENDED", "REQUEUED", "RESIZING", "CONFIGURING", "COMPLETING", "STOPPED")
_TIME = r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d|Unknown|None)"
# A name may hold anything, even the words between the fields, so it reaches as far as the rest still fits.
_JOBCOMP = re.compile(
    r"JobId=(?P<job>\d+) UserId=(?P<user>.*?)\(\d+\) (?:GroupId=\S+ )?Name=(?P<name>.*) JobState=(?P<state>\w+)\S* "
    rf"Partition=(?P<partition>\S*) TimeLimit=\S+ StartTime=(?P<start>{_TIME}) EndTime=(?P<end>{_TIME}) "
    r"NodeList=(?P<list>\S*) NodeCnt=(?P<nodes>\d+) .*"
)
_CLUSTER = re.compile(r".* Cluster=(\S*) ")


class HistoryError(CrossperfError):
    """Finished jobs cannot be read; ``path`` names the file."""


@dataclass(frozen=True)
class Job:
    """A job that has ended, as Slurm recorded it."""

    cluster: str
    number: str
    name: str
    user: str
    partition: str
    state: str
    seconds: float
    nodes: int
    started: str
    comment: str = ""
    tag: str = ""


@dataclass
class Reading:
    """The jobs of a file, with a sentence for each line that does not read as one."""

    jobs: list[Job] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Learned:
    """How many runs were added, how many were there already, and why jobs were left out."""

    added: int
    known: int
    left_out: Counter[str]


# Readers


def from_sacct(since: str = "now-30days") -> Reading:
    """Return the jobs that the accounting database holds."""
    text = controller.ask(
        "sacct",
        "--allusers",
        "--allocations",
        "--parsable2",
        f"--delimiter={_UNIT}",
        f"--starttime={since}",
        f"--format={','.join(COLUMNS)}",
        env={"SLURM_TIME_FORMAT": "standard"},
        patience_s=_PATIENCE_S,
    )
    return sacct_lines(text, "sacct")


def sacct_lines(text: str, where: str) -> Reading:
    r"""Return the jobs of sacct's parsable output with a header; the separator is that of the header.

    >>> header = "JobIDRaw|JobName|User|Partition|State|ElapsedRaw|NNodes|Start"
    >>> sacct_lines(header + "\n7|lmp|ann|gpu|COMPLETED|60|2|2024-05-01T12:00:00\n", "x").jobs[0].seconds
    60.0
    """
    lines = text.split("\n")
    mark = _UNIT if _UNIT in lines[0] else "|"
    columns = lines[0].strip().rstrip(mark).split(mark)
    missing = [name for name in _NEEDED if name not in columns]
    if missing:
        raise HistoryError(
            f"{where}, line 1: found the columns {some_of(columns, 8)!r}, expected also {', '.join(missing)}. Write it "
            f"with 'sacct --allusers --allocations --parsable2 --format={','.join(COLUMNS)}'.",
            path=where,
        )
    found = Reading()
    for number, line in enumerate(lines[1:], start=2):
        fields = line.removesuffix(mark).split(mark) if line.count(mark) == len(columns) else line.split(mark)
        row = dict(zip(columns, fields, strict=False))
        if not line.strip():
            continue
        if len(fields) != len(columns):
            expected = f"{len(columns)} fields as in the header"
            found.problems.append(
                f"{where}, line {number:,}: found {len(fields)} fields, expected {expected}; left out."
            )
        elif not row["ElapsedRaw"].isdecimal() or not row["NNodes"].isdecimal():
            what = f"{row['ElapsedRaw']!r} seconds on {row['NNodes']!r} nodes"
            found.problems.append(f"{where}, line {number:,}: found {what}, expected whole numbers; left out.")
        else:
            found.jobs.append(_sacct_job(row))
    return found


def _sacct_job(row: dict[str, str]) -> Job:
    return Job(
        row.get("Cluster", ""),
        row["JobIDRaw"],
        row["JobName"],
        row["User"],
        row["Partition"],
        row["State"].split(" ")[0].rstrip("+"),
        float(row["ElapsedRaw"]),
        int(row["NNodes"]),
        row["Start"],
        row.get("Comment", ""),
        row.get("AdminComment", ""),
    )


def from_jobcomp(path: str | os.PathLike[str]) -> Reading:
    """Return the jobs of a file of the plugin jobcomp/filetxt; a last line still being written is passed over."""
    try:
        text = Path(path).read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        advice = "JobCompLoc in slurm.conf names it, with JobCompType=jobcomp/filetxt."
        raise HistoryError(f"{path}: cannot be read ({error.strerror}). {advice}", path=str(path)) from error
    found = Reading()
    for number, line in enumerate(text.split("\n")[:-1], start=1):
        job = _jobcomp_job(line)
        if job is not None:
            found.jobs.append(job)
        elif line.strip():
            problem = (
                f"{path}, line {number:,}: found {line[:40]!r}, expected 'JobId=... Name=... JobState=...'; left out."
            )
            found.problems.append(problem)
    return found


def _jobcomp_job(line: str) -> Job | None:
    row = _JOBCOMP.fullmatch(line)
    if row is None:
        return None
    known = not {row["start"], row["end"]} & {"Unknown", "None"} and row["nodes"] != "0"
    seconds = (
        (datetime.fromisoformat(row["end"]) - datetime.fromisoformat(row["start"])).total_seconds() if known else 0
    )
    cluster = _CLUSTER.match(line)
    return Job(
        cluster[1] if cluster else "",
        row["job"],
        row["name"],
        row["user"],
        row["partition"],
        row["state"],
        seconds,
        int(row["nodes"]),
        row["start"],
    )


# Runs


def run_of(job: Job, platform: str, cluster: str = "") -> Run:
    """Return a finished job as a run.

    The application and its input are what ``crossperf.lua`` noted when it saw the job, or else what its comment and
    name tell. A job number comes round again after years and a requeued job keeps it, so the start is part of the id.
    """
    tag = words_of(job.tag) if job.tag.startswith("crossperf ") else {}
    job_named = named(job.name, job.user, job.comment, nodes=job.nodes)
    return Run(
        tag.get("app") or job_named.app,
        tag.get("input") or job_named.input,
        platform,
        job.seconds,
        status=OK if job.state == "COMPLETED" else job.state.lower(),
        run_id=f"{job.cluster or cluster or 'slurm'}:{job.number}:{job.started}",
        source_tool="slurm",
        started=job.started,
        metadata={"user": job.user, "nodes": job.nodes, "partition": job.partition},
    )


def learn(jobs: Iterable[Job], site: Site, path: str | os.PathLike[str], cluster: str = "") -> Learned:
    """Add the runs that a file does not have yet, and tell what became of every job."""
    left_out: Counter[str] = Counter()
    runs = list(_runs(jobs, site, cluster, left_out))
    # Two that learn at once take turns: each would add what the other is about to add.
    with Path(path).open("a", encoding="utf-8") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        seen = {run.run_id for run in jsonl.read(path)}
        fresh = {run.run_id: run for run in runs if run.run_id not in seen}
        jsonl.append(path, fresh.values())
    return Learned(len(fresh), len(runs) - len(fresh), left_out)


def _runs(jobs: Iterable[Job], site: Site, cluster: str, left_out: Counter[str]) -> Iterator[Run]:
    for job in jobs:
        platform = site.platform(job.partition)
        if job.state in _GOING_ON:
            left_out["had not ended yet"] += 1
        elif job.seconds < 1:
            left_out["never started, or ran for less than the second that Slurm's clock shows"] += 1
        elif platform is None:
            left_out[f"ran in partition {job.partition!r}, which has no platform"] += 1
        elif not named(job.name, job.user, job.comment).apps and not job.tag:
            left_out["had no name"] += 1
        else:
            yield run_of(job, platform, cluster)


def told(left_out: Counter[str]) -> Sequence[str]:
    """Return why jobs were left out, in words, the most frequent reason first."""
    return [f"{count:,} job{'s' * (count > 1)} {reason}" for reason, count in left_out.most_common()]
