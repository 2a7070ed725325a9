"""Finished jobs as Slurm recorded them, from sacct or from the file of the plugin jobcomp/filetxt, and as runs."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from crossperf.documents import read_text
from crossperf.errors import CrossperfError, some_of
from crossperf.files import locked
from crossperf.plain import whole
from crossperf.records import OK, Run
from crossperf.runs import jsonl
from crossperf.schedule.slurm import controller
from crossperf.schedule.slurm.names import named, words_of
from crossperf.schedule.slurm.site import Site

#: What is asked of sacct; a file from elsewhere may have these columns in any order, and others.
_NEEDED = ("JobIDRaw", "JobName", "User", "Partition", "State", "ElapsedRaw", "NNodes", "Start")
COLUMNS = ("Cluster", *_NEEDED, "Comment", "AdminComment", "Submit")
#: The separator of our own call: names and comments may hold a |.
_UNIT = "\x1f"
#: A month of a large site takes the database minutes.
_PATIENCE_S = 900.0
_TIME = r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d|Unknown|None)"
# A name may hold anything, even the words between the fields, so it reaches as far as the rest still fits.
_JOBCOMP = re.compile(
    r"JobId=(?P<job>\d+) UserId=(?P<user>.*?)\(\d+\) (?:GroupId=\S+ )?Name=(?P<name>.*) JobState=(?P<state>\w+)\S* "
    rf"Partition=(?P<partition>\S*) TimeLimit=\S+ StartTime=(?P<start>{_TIME}) EndTime=(?P<end>{_TIME}) "
    r"NodeList=(?P<list>\S*) NodeCnt=(?P<nodes>\d{1,9}) .*"
)
_CLUSTER = re.compile(r".* Cluster=(\S*) ")
#: Jobs that have not ended yet.
_GOING_ON = ("RUNNING", "PENDING", "SUSPENDED", "REQUEUED", "RESIZING", "CONFIGURING", "COMPLETING", "STOPPED")


class HistoryError(CrossperfError):
    """Finished jobs cannot be read; ``path`` names the file."""


@dataclass(frozen=True)
class FinishedJob:
    """A job that has ended, as Slurm recorded it: the `COLUMNS` of sacct."""

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
    submitted: str = ""


@dataclass
class Reading:
    """The jobs of a file, with a sentence for each line that does not read as one."""

    jobs: list[FinishedJob] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def from_sacct(since: str = "now-30days") -> Reading:
    """Return the jobs that the accounting database holds."""
    what = (f"--delimiter={_UNIT}", f"--starttime={since}", f"--format={','.join(COLUMNS)}")
    command = ("sacct", "--allusers", "--allocations", "--parsable2", *what)
    text = controller.ask(*command, env={"SLURM_TIME_FORMAT": "standard"}, patience_s=_PATIENCE_S)
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
    reading = Reading()
    for number, line in enumerate(lines[1:], start=2):
        fields = line.removesuffix(mark).split(mark) if line.count(mark) == len(columns) else line.split(mark)
        row = dict(zip(columns, fields, strict=False))
        if not line.strip():
            continue
        if len(fields) != len(columns):
            problem = f"found {len(fields)} fields, expected {len(columns)} fields as in the header"
            reading.problems.append(f"{where}, line {number:,}: {problem}; left out.")
        elif whole(row["ElapsedRaw"]) is None or whole(row["NNodes"]) is None:
            problem = f"found {row['ElapsedRaw']!r} seconds on {row['NNodes']!r} nodes, expected whole numbers"
            reading.problems.append(f"{where}, line {number:,}: {problem}; left out.")
        else:
            cluster, job, name, user, partition, state, seconds, nodes, *rest = (row.get(name, "") for name in COLUMNS)
            state = state.split(" ")[0].rstrip("+")
            finished = FinishedJob(cluster, job, name, user, partition, state, float(seconds), int(nodes), *rest)
            reading.jobs.append(finished)
    return reading


def from_sacct_file(path: str | os.PathLike[str]) -> Reading:
    """Return the jobs of a file that holds what sacct printed."""
    try:
        return sacct_lines(read_text(path, errors="backslashreplace"), str(path))
    except OSError as error:
        problem = f"cannot be read ({error.strerror}), expected what 'sacct --parsable2' printed"
        raise HistoryError(f"{path}: {problem}. Check the path.", path=str(path)) from error


def from_jobcomp(path: str | os.PathLike[str]) -> Reading:
    """Return the jobs of a file of the plugin jobcomp/filetxt; a last line still being written is passed over."""
    try:
        text = read_text(path, errors="backslashreplace")
    except OSError as error:
        advice = "JobCompLoc in slurm.conf names it, with JobCompType=jobcomp/filetxt."
        raise HistoryError(f"{path}: cannot be read ({error.strerror}). {advice}", path=str(path)) from error
    reading = Reading()
    for number, line in enumerate(text.split("\n")[:-1], start=1):
        row = _JOBCOMP.fullmatch(line)
        job = _jobcomp_job(row) if row else None
        if job is not None:
            reading.jobs.append(job)
        elif line.strip():
            problem = f"found {line[:40]!r}, expected 'JobId=... Name=... JobState=...'"
            reading.problems.append(f"{path}, line {number:,}: {problem}; left out.")
    return reading


def _jobcomp_job(row: re.Match[str]) -> FinishedJob | None:
    """Return a job; ``None`` where its times are none of a calendar."""
    seconds, cluster = 0.0, _CLUSTER.match(row[0])
    if not {row["start"], row["end"]} & {"Unknown", "None"} and row["nodes"] != "0":
        try:
            seconds = (datetime.fromisoformat(row["end"]) - datetime.fromisoformat(row["start"])).total_seconds()
        except ValueError:
            return None
    names = (cluster[1] if cluster else "", row["job"], row["name"], row["user"], row["partition"])
    return FinishedJob(*names, row["state"], seconds, int(row["nodes"]), row["start"])


@dataclass(frozen=True)
class Learned:
    """How many runs were added, how many were there already, and why jobs were left out."""

    added: int
    known: int
    left_out: Counter[str]

    @property
    def reasons(self) -> list[str]:
        """Why jobs were left out, in words, the most frequent reason first."""
        return [f"{count:,} job{'s' * (count > 1)} {reason}" for reason, count in self.left_out.most_common()]


def run_of(job: FinishedJob, platform: str, cluster: str = "") -> Run:
    """Return a finished job as a run.

    The application and its input are what ``crossperf.lua`` noted when it saw the job, or else what its comment and
    name tell. A job number comes round again after years and a requeued job keeps it, so the start is part of the id.
    """
    tag = words_of(job.tag) if job.tag.startswith("crossperf ") else {}
    job_named = named(job.name, job.user, job.comment, nodes=job.nodes)
    work = {"work": tag["work"]} if "work" in tag else {}
    return Run(
        tag.get("app") or job_named.app,
        tag.get("input") or job_named.input,
        platform,
        job.seconds,
        status=OK if job.state == "COMPLETED" else job.state.lower(),
        run_id=f"{job.cluster or cluster or 'slurm'}:{job.number}:{job.started}",
        source_tool="slurm",
        started=job.started,
        metadata={"user": job.user, "nodes": job.nodes, "partition": job.partition} | work,
    )


def learn(jobs: Iterable[FinishedJob], site: Site, path: str | os.PathLike[str], cluster: str = "") -> Learned:
    """Add the runs that a file does not have yet, and tell what became of every job."""
    left_out: Counter[str] = Counter()
    runs = list(_runs(jobs, site, cluster, left_out))
    # Two that learn at once take turns: each would add what the other is about to add.
    with locked(path):
        Path(path).touch()
        seen = {run.run_id for run in jsonl.read(path)}
        fresh = {run.run_id: run for run in runs if run.run_id not in seen}
        jsonl.append(path, fresh.values())
    return Learned(len(fresh), len(runs) - len(fresh), left_out)


def _runs(jobs: Iterable[FinishedJob], site: Site, cluster: str, left_out: Counter[str]) -> Iterator[Run]:
    for job in jobs:
        platform = site.platform(job.partition)
        if job.state in _GOING_ON:
            left_out["had not ended yet"] += 1
        elif job.seconds < 1:
            left_out["never started, or ran for less than the second that Slurm's clock shows"] += 1
        elif platform is None:
            left_out[f"ran in partition {job.partition!r}, which has no platform"] += 1
        elif not (run := run_of(job, platform, cluster)).app:
            left_out["had no name, or one that jobs of many programs bear, such as 'wrap' or 'run.sh'"] += 1
        else:
            yield run
