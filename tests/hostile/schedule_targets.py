"""Readers of what a simulation rests on: traces of jobs, maps of them, times, machines and outages."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from crossperf.schedule import readers
from crossperf.schedule.jobs import LABELS, Jobs
from crossperf.schedule.machines import Machines
from crossperf.schedule.mapping import MapRow, mapped, read_map
from crossperf.schedule.simulate import simulate
from crossperf.schedule.times import RelativeTimes
from crossperf.schedule.traces import read_trace
from tests.hostile.target import Target
from tests.schedule.traces import test_tables as sound

_SWF = b"; MaxNodes: 4\n; MaxProcs: 8\n" + b"".join(
    b"%d %d 5 %d 1 -1 2048 1 200 4096 1 3 1 2 1 1 %d %d\n" % (i, 10 * i, 90 + i, i - 1 or -1, 30 if i > 1 else -1)
    for i in range(1, 6)
)
_TIMES = b"app,input,cpu-a,gpu-a,cpu-a:low,cpu-a:high,gpu-a:nodes\nlu,1,1.0,2.0,0.9,1.1,1\nlu,2,3.0,,2,4,2\n"
_MACHINES = b"machine,size,price_per_node_hour,power_w,idle_w,memory_gb\na,4,1.5,3,4,5\nb,2,,,,\n"
_MAP = b"executable,user,queue,app,input,priority\n2,3,,lu,1,3\n,,1,lu,2,\n"
_LABELS = b"id_job,model\n11,ResNet50_v1.5\n"
_WORLD = Machines.of({"a": 4, "b": 2}, memory_gb={"a": 2.0})
_TRUTH = RelativeTimes.of([("lu", "1"), ("lu", "2")], ["a", "b"], np.array([[1.0, 2.0], [1.0, 0.5]]))
#: More jobs than these are read and not simulated.
_MOST = 100


def _use(jobs: Jobs) -> None:
    """Ask for names, and let jobs run."""
    assert (jobs.nodes >= 1).all()
    assert ((jobs.submit_s >= 0) & np.isfinite(jobs.submit_s)).all()
    for what in LABELS:
        numbers = getattr(jobs, what)
        for number in () if numbers is None else numbers[:20].tolist():
            jobs.label_of(what, number)
    if len(jobs) <= _MOST:
        jobs = mapped(jobs, [MapRow("", "", "1", "lu", "2", 1.5)])
        simulate(jobs, _WORLD, _TRUTH, _TRUTH, "turnaround")


def _trace(beside: dict[str, str] | None = None, name: str = "", **settings: Any) -> Callable[[Path], None]:
    """Return what reads a trace, or one of the tables `beside` the trace of a name, and uses it."""

    def use(path: Path) -> None:
        for other, content in (beside or {}).items():
            path.with_name(other).write_text(content)
        _use(read_trace(path.with_name(name or path.name), **settings))

    return use


def _gavel(path: Path) -> None:
    throughputs = path.with_name("throughputs.json")
    throughputs.write_text(json.dumps(sound.THROUGHPUTS))
    _use(read_trace(path, throughputs=throughputs))


def _throughputs(path: Path) -> None:
    readers.read_times(path)
    trace = path.with_name("jobs.trace")
    trace.write_text("\n".join(sound.GAVEL))
    _use(read_trace(trace, throughputs=path))


def _times(path: Path) -> None:
    table = readers.read_times(path)
    for cells in ("speedup", "relative-time"):
        readers.read_times(path, cells=cells)
    assert len(table.workloads) == len(table.relative_wm)


def _times_json() -> bytes:
    rows = [
        {"app": "lu", "input": str(n), "group": "g", "times": {"a": 1.0, "b": 2.0}, "low": {"a": 0.5}} for n in "12"
    ]
    return json.dumps({"cells": "relative-time", "modes": ["a", "b"], "workloads": rows}).encode()


_PAI = {"pai_task_table.csv": sound.PAI_TASKS, "pai_group_tag_table.csv": sound.PAI_TAGS}
#: Files of simulations.
SIMULATIONS = [
    Target("swf", "trace.swf", lambda: _SWF, _trace(feedback="jobs")),
    Target("swf-users", "trace.swf", lambda: _SWF, _trace(feedback="users", share_nodes=True)),
    Target("swf-gz", "trace.swf.gz", lambda: gzip.compress(_SWF), _trace()),
    Target("philly", "cluster_job_log", lambda: json.dumps(sound.PHILLY).encode(), _trace()),
    Target("helios", "cluster_log.csv", sound.HELIOS.encode, _trace(per_node=4)),
    Target("pai", "pai_task_table.csv", sound.PAI_TASKS.encode, _trace()),
    Target("pai-jobs", "pai_job_table.csv", sound.PAI_JOBS.encode, _trace(_PAI, "pai_task_table.csv")),
    Target(
        "pai-tags",
        "pai_group_tag_table.csv",
        sound.PAI_TAGS.encode,
        _trace({"pai_task_table.csv": sound.PAI_TASKS, "pai_job_table.csv": sound.PAI_JOBS}, "pai_task_table.csv"),
    ),
    Target("supercloud", "slurm-log.csv", sound.SUPERCLOUD.encode, _trace(share_nodes=True)),
    Target(
        "supercloud-labels",
        "labelled_jobids.csv",
        lambda: _LABELS,
        _trace({"slurm-log.csv": sound.SUPERCLOUD}, "slurm-log.csv"),
    ),
    Target("gavel", "jobs.trace", "\n".join(sound.GAVEL).encode, _gavel),
    Target("throughputs", "throughputs.json", lambda: json.dumps(sound.THROUGHPUTS).encode(), _throughputs),
    Target("map", "map.csv", lambda: _MAP, read_map),
    Target("maintenance", "windows.csv", lambda: b"machine,start_s,end_s,nodes\na,1,2,3\n", readers.read_maintenance),
    Target("times-csv", "times.csv", lambda: _TIMES, _times),
    Target("times-json", "times.json", _times_json, _times),
    Target("machines", "machines.csv", lambda: _MACHINES, readers.read_machines),
]
