"""Traces that are tables (CSV): Helios of SenseTime, PAI of Alibaba, and Supercloud of MIT."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from crossperf.schedule.traces import text
from crossperf.schedule.traces.labelled import TraceJob, TraceReading


class TraceTable(NamedTuple):
    """A format: whether the name of a file and its first line are of it, and what reads it."""

    is_like: Callable[[str, str], bool]
    read: Callable[[Path], TraceReading]


def _read_helios(path: Path) -> TraceReading:
    """Return the jobs of a ``cluster_log.csv``; virtual clusters are queues, and jobs without GPUs are left out."""
    reading = TraceReading(path.name)
    for row, cells in text.rows(path, ("user", "vc", "gpu_num", "submit_time", "duration")):
        submit_s = text.seconds_of(path, row, "submit_time", cells["submit_time"])
        run_s, gpus = (text.number(path, row, name, cells[name], math.nan) for name in ("duration", "gpu_num"))
        line = TraceJob(math.nan if submit_s is None else submit_s, run_s, gpus, user=cells["user"], queue=cells["vc"])
        reading.add(line)
    reading.ignored += ["CPUs and nodes of a job"]
    return reading


helios = TraceTable(lambda _, first: {"gpu_num", "vc", "submit_time"} <= set(first.strip().split(",")), _read_helios)

#: The tables of PAI come without a header; it is published beside them.
_TIMES = ("status", "start_time", "end_time")
_PAI_TASKS = ("job_name", "task_name", "inst_num", *_TIMES, "plan_cpu", "plan_mem", "plan_gpu", "gpu_type")
_PAI_JOBS = ("job_name", "inst_id", "user", *_TIMES)
_PAI_TAGS = ("inst_id", "user", "gpu_type_spec", "group", "workload")


class _Tasks:
    """What the tasks of a job of PAI say together."""

    def __init__(self) -> None:
        self.begin_s, self.end_s, self.gpus, self.running = math.inf, -math.inf, 0.0, False
        self.names: list[str] = []
        self.gpu_type = ""


def _read_pai(path: Path) -> TraceReading:
    """Return the jobs of a ``pai_task_table.csv``: from their first task's start to the last one's end, with all GPUs.

    Beside it, ``pai_job_table.csv`` tells users and arrivals, and with ``pai_group_tag_table.csv`` the workload, which
    becomes the executable; without them it is the names of the tasks. Types of GPUs are queues.
    """
    reading = TraceReading(path.name)
    tasks: dict[str, _Tasks] = {}
    for row, cells in text.rows(path, ("job_name", "plan_gpu"), _PAI_TASKS):
        numbers = {
            name: text.number(path, row, name, cells[name], math.nan)
            for name in ("inst_num", "start_time", "end_time", "plan_gpu")
        }
        job = tasks.setdefault(cells["job_name"], _Tasks())
        job.running |= math.isnan(numbers["start_time"]) or math.isnan(numbers["end_time"])
        job.begin_s = min(job.begin_s, numbers["start_time"])
        job.end_s = max(job.end_s, numbers["end_time"])
        if numbers["plan_gpu"] > 0 and numbers["inst_num"] > 0:
            job.gpus += numbers["inst_num"] * numbers["plan_gpu"] / 100.0
            job.gpu_type = job.gpu_type or cells["gpu_type"]
        job.names.append(cells["task_name"])
    users, arrivals, workloads = _of_jobs(path)
    for name, job in tasks.items():
        if job.running:
            reading.left_out["without a start and an end"] += 1
            continue
        executable = workloads.get(name) or "+".join(sorted(set(job.names)))
        submit_s = min(arrivals.get(name, job.begin_s), job.begin_s)
        who = (users.get(name, ""), executable, job.gpu_type)
        reading.add(TraceJob(submit_s, job.end_s - job.begin_s, job.gpus, 0.0, *who))
    reading.ignored += ["CPUs and memory of a job"]
    return reading


def _of_jobs(path: Path) -> tuple[dict[str, str], dict[str, float], dict[str, str]]:
    """Return the user, the arrival and the workload by job, as far as the tables beside tell."""
    users: dict[str, str] = {}
    arrivals: dict[str, float] = {}
    workloads: dict[str, str] = {}
    job_table, tag_table = (_beside(path, "pai_task_table", name) for name in ("pai_job_table", "pai_group_tag_table"))
    tags = {}
    if tag_table:
        rows = text.rows(tag_table, ("inst_id", "workload"), _PAI_TAGS)
        tags = {cells["inst_id"]: cells["workload"] for _, cells in rows if cells["workload"]}
    if job_table:
        for row, cells in text.rows(job_table, ("job_name", "user"), _PAI_JOBS):
            users[cells["job_name"]] = cells["user"]
            workloads[cells["job_name"]] = tags.get(cells["inst_id"], "")
            arrival_s = text.number(job_table, row, "start_time", cells["start_time"], math.nan)
            if not math.isnan(arrival_s):
                arrivals[cells["job_name"]] = arrival_s
    return users, arrivals, workloads


def _beside(path: Path, stem: str, name: str) -> Path | None:
    other = path.with_name(path.name.replace(stem, name))
    return other if other != path and other.is_file() else None


pai = TraceTable(lambda name, _: name.startswith("pai_task_table"), _read_pai)

#: Trackable resources of Slurm that are GPUs in the log of Supercloud (``tres-mapping.txt``).
_SUPERCLOUD_GPUS = ("1001", "1002")
#: Minutes that stand for no limit: Slurm's own number, and a year, which is the default there.
_NO_LIMIT = (4294967295, 525600)


def _read_supercloud(path: Path) -> TraceReading:
    """Return the jobs of a ``slurm-log.csv``; ``labelled_jobids.csv`` beside it names what they trained."""
    reading = TraceReading(path.name)
    models: dict[str, str] = {}
    labels = path.with_name("labelled_jobids.csv")
    if labels.is_file():
        models = {cells["id_job"]: cells["model"] for _, cells in text.rows(labels, ("id_job", "model"))}
    for row, cells in text.rows(path, ("id_job", "time_submit", "time_start", "time_end", "tres_alloc")):
        times = [text.number(path, row, n, cells[n], math.nan) for n in ("time_submit", "time_start", "time_end")]
        submit_s, start_s, end_s = times
        if not start_s > 0 or not end_s > 0:
            reading.left_out["without a start and an end"] += 1
            continue
        minutes = text.number(path, row, "timelimit", cells.get("timelimit", ""), 0.0)
        limit_s = 0.0 if minutes in _NO_LIMIT else 60.0 * minutes
        gpus = _gpus(path, row, cells["tres_alloc"])
        executable = models.get(cells["id_job"], cells.get("job_type", ""))
        who = (cells.get("id_user", ""), executable, cells.get("partition", ""))
        reading.add(TraceJob(submit_s, end_s - start_s, gpus, limit_s, *who))
    reading.ignored += ["CPUs and memory of a job"]
    return reading


def _gpus(path: Path, row: int, tres: str) -> float:
    """Return the GPUs of a list of resources such as ``1=20,2=170000,4=1,1002=2``."""
    parts = (part.partition("=") for part in tres.split(","))
    return sum(text.number(path, row, "tres_alloc", n, 0.0) for key, _, n in parts if key.strip() in _SUPERCLOUD_GPUS)


supercloud = TraceTable(lambda _, first: {"id_job", "tres_alloc"} <= set(first.strip().split(",")), _read_supercloud)
