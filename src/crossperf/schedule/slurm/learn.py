"""What finished jobs teach: each becomes a run, added once to a runs table."""

from __future__ import annotations

import fcntl
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from crossperf.records import OK, Run
from crossperf.runs import jsonl
from crossperf.schedule.slurm.history import FinishedJob
from crossperf.schedule.slurm.names import named, words_of
from crossperf.schedule.slurm.site import Site

#: Jobs that have not ended yet.
_GOING_ON = ("RUNNING", "PENDING", "SUSPENDED", "REQUEUED", "RESIZING", "CONFIGURING", "COMPLETING", "STOPPED")


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


def learn(jobs: Iterable[FinishedJob], site: Site, path: str | os.PathLike[str], cluster: str = "") -> Learned:
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


def _runs(jobs: Iterable[FinishedJob], site: Site, cluster: str, left_out: Counter[str]) -> Iterator[Run]:
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
