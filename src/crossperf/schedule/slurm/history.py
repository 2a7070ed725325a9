"""Finished jobs as Slurm recorded them: from sacct's output, or from the file of the plugin jobcomp/filetxt."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from crossperf.errors import CrossperfError, some_of
from crossperf.schedule.slurm import controller

#: What is asked of sacct; a file from elsewhere may have these columns in any order, and others.
_NEEDED = ("JobIDRaw", "JobName", "User", "Partition", "State", "ElapsedRaw", "NNodes", "Start")
COLUMNS = ("Cluster", *_NEEDED, "Comment", "AdminComment")
#: The separator of our own call: names and comments may hold a |.
_UNIT = "\x1f"
#: A month of a large site takes the database minutes.
_PATIENCE_S = 900.0
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
class FinishedJob:
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

    jobs: list[FinishedJob] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


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
    reading = Reading()
    for number, line in enumerate(lines[1:], start=2):
        fields = line.removesuffix(mark).split(mark) if line.count(mark) == len(columns) else line.split(mark)
        row = dict(zip(columns, fields, strict=False))
        if not line.strip():
            continue
        if len(fields) != len(columns):
            problem = f"found {len(fields)} fields, expected {len(columns)} fields as in the header"
            reading.problems.append(f"{where}, line {number:,}: {problem}; left out.")
        elif not row["ElapsedRaw"].isdecimal() or not row["NNodes"].isdecimal():
            problem = f"found {row['ElapsedRaw']!r} seconds on {row['NNodes']!r} nodes, expected whole numbers"
            reading.problems.append(f"{where}, line {number:,}: {problem}; left out.")
        else:
            reading.jobs.append(_sacct_job(row))
    return reading


def _sacct_job(row: dict[str, str]) -> FinishedJob:
    return FinishedJob(
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
    reading = Reading()
    for number, line in enumerate(text.split("\n")[:-1], start=1):
        job = _jobcomp_job(line)
        if job is not None:
            reading.jobs.append(job)
        elif line.strip():
            problem = f"found {line[:40]!r}, expected 'JobId=... Name=... JobState=...'"
            reading.problems.append(f"{path}, line {number:,}: {problem}; left out.")
    return reading


def _jobcomp_job(line: str) -> FinishedJob | None:
    row = _JOBCOMP.fullmatch(line)
    if row is None:
        return None
    known = not {row["start"], row["end"]} & {"Unknown", "None"} and row["nodes"] != "0"
    seconds = (
        (datetime.fromisoformat(row["end"]) - datetime.fromisoformat(row["start"])).total_seconds() if known else 0
    )
    cluster = _CLUSTER.match(line)
    return FinishedJob(
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
