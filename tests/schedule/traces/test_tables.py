"""Traces of GPU clusters: rows in the published formats, made up, and what is kept of them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crossperf.errors import SettingsError
from crossperf.schedule.jobs import Jobs, TraceError
from crossperf.schedule.machines import Machines
from crossperf.schedule.readers import read_times
from crossperf.schedule.simulate import simulate
from crossperf.schedule.traces import read_trace

HELIOS = """job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue
101,uAnn,vcA,8,32,1,COMPLETED,2020-06-09 18:41:01,2020-06-09 18:41:05,2020-06-09 19:41:05,3600,4
102,uBob,vcB,0,4,1,COMPLETED,2020-06-09 18:42:00,2020-06-09 18:42:00,2020-06-09 18:43:00,60,0
103,uAnn,vcA,1,4,1,FAILED,2020-06-09 18:40:01,2020-06-09 18:40:01,2020-06-09 18:45:01,300,0
"""

# Without a header, as they are published.
PAI_TASKS = """j1,worker,2.0,Terminated,1000.0,1600.0,600.0,29.3,50.0,T4
j1,ps,1.0,Terminated,990.0,1590.0,600.0,29.3,,
j2,tensorflow,1.0,Running,1200.0,,600.0,29.3,100.0,P100
j3,worker,4.0,Failed,1300.0,1310.0,600.0,29.3,100.0,V100
j4,xComputeWorker,1.0,Terminated,1300.0,1310.0,600.0,29.3,,
"""
PAI_JOBS = """j1,i1,ann,Terminated,950.0,1600.0
j3,i3,bob,Failed,1250.0,1310.0
"""
PAI_TAGS = """i1,ann,,g1,bert
i3,bob,V100,g2,
"""

SUPERCLOUD = """id_job,id_user,partition,state,timelimit,time_submit,time_eligible,time_start,time_end,nodes,tres_alloc
11,7,gaia,3,1440,1600000000,1600000000,1600000060,1600003660,1,"1=20,2=170000,4=1,1002=2"
12,8,gaia,3,525600,1600000100,1600000100,1600000100,1600000160,2,"1=40,2=1,4=2,1001=4"
13,8,cpu,3,60,1600000100,1600000100,1600000100,1600000160,2,"1=40,2=1,4=2"
14,8,gaia,4,60,1600000100,1600000100,0,1600000160,0,"1=40,1002=1"
"""

PHILLY: list[dict[str, Any]] = [
    {
        "status": "Pass",
        "vc": "v1",
        "jobid": "application_1_1",
        "attempts": [
            {
                "start_time": "2017-10-07 01:12:00",
                "end_time": "2017-10-07 01:13:00",
                "detail": [{"ip": "m1", "gpus": ["gpu0"]}],
            },
            {
                "start_time": "2017-10-07 02:00:00",
                "end_time": "2017-10-07 03:00:00",
                "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}, {"ip": "m2", "gpus": ["gpu0"]}],
            },
        ],
        "submitted_time": "2017-10-07 01:11:00",
        "user": "u1",
    },
    {
        "status": "Killed",
        "vc": "v2",
        "jobid": "application_1_2",
        "attempts": [{"start_time": "2017-10-07 01:12:00", "end_time": "None", "detail": []}],
        "submitted_time": "2017-10-07 01:12:00",
        "user": "u2",
    },
    {
        "status": "Killed",
        "vc": "v2",
        "jobid": "3",
        "attempts": [],
        "submitted_time": "2017-10-07 01:12:00",
        "user": "u",
    },
]


def names(jobs: Jobs, what: str) -> list[str]:
    return [jobs.label_of(what, number) for number in getattr(jobs, what).tolist()]


def test_helios_comes_with_gpus_users_and_virtual_clusters(tmp_path: Path) -> None:
    (tmp_path / "cluster_log.csv").write_text(HELIOS)
    jobs = read_trace(tmp_path / "cluster_log.csv")
    assert jobs.submit_s.tolist() == [0, 60]  # in order of arrival, from the first on
    assert (jobs.nodes.tolist(), jobs.run_s.tolist()) == ([1, 8], [300, 3600])
    assert (names(jobs, "user"), names(jobs, "queue")) == (["uAnn", "uAnn"], ["vcA", "vcA"])
    assert jobs.left_out == {"without a GPU": 1}
    assert any("clairvoyant" in note for note in jobs.notes)
    assert read_trace(tmp_path / "cluster_log.csv", per_node=4).nodes.tolist() == [1, 2]
    assert read_trace(tmp_path / "cluster_log.csv", per_node=4, share_nodes=True).nodes.tolist() == [1, 8]


def test_pai_adds_up_the_tasks_of_a_job_and_asks_the_tables_beside_it(tmp_path: Path) -> None:
    (tmp_path / "pai_task_table.csv").write_text(PAI_TASKS)
    alone = read_trace(tmp_path / "pai_task_table.csv")
    assert (alone.nodes.tolist(), alone.run_s.tolist()) == ([1, 4], [610, 10])  # two halves of a GPU make one
    assert names(alone, "executable") == ["ps+worker", "worker"]
    assert names(alone, "queue") == ["T4", "V100"]
    assert alone.left_out == {"without a start and an end": 1, "without a GPU": 1}
    (tmp_path / "pai_job_table.csv").write_text(PAI_JOBS)
    (tmp_path / "pai_group_tag_table.csv").write_text(PAI_TAGS)
    beside = read_trace(tmp_path / "pai_task_table.csv")
    assert names(beside, "user") == ["ann", "bob"]
    assert names(beside, "executable") == ["bert", "worker"]
    assert beside.submit_s.tolist() == [0, 300]  # 950 and 1250, when they were submitted


def test_a_header_in_a_table_of_pai_is_no_job(tmp_path: Path) -> None:
    header = "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type\n"
    with gzip.open(tmp_path / "pai_task_table.csv.gz", "wt") as file:
        file.write(header + PAI_TASKS)
    assert len(read_trace(tmp_path / "pai_task_table.csv.gz")) == 2


def test_supercloud_comes_with_limits_and_the_networks_that_jobs_trained(tmp_path: Path) -> None:
    (tmp_path / "slurm-log.csv").write_text(SUPERCLOUD)
    (tmp_path / "labelled_jobids.csv").write_text("id_job,model\n11,ResNet50_v1.5\n")
    jobs = read_trace(tmp_path / "slurm-log.csv")
    assert (jobs.submit_s.tolist(), jobs.nodes.tolist()) == ([0, 100], [2, 4])
    assert (jobs.run_s.tolist(), jobs.requested_s.tolist()) == ([3600, 60], [86_400, 60])  # a year is no limit
    assert names(jobs, "executable") == ["ResNet50_v1.5", ""]
    assert (names(jobs, "user"), names(jobs, "queue")) == (["7", "8"], ["gaia", "gaia"])
    assert jobs.left_out == {"without a GPU": 1, "without a start and an end": 1}


def test_philly_runs_for_as_long_as_all_attempts_on_the_gpus_of_the_widest(tmp_path: Path) -> None:
    (tmp_path / "cluster_job_log").write_text(json.dumps(PHILLY, indent=1))
    jobs = read_trace(tmp_path / "cluster_job_log")
    assert (jobs.nodes.tolist(), jobs.run_s.tolist()) == ([3], [3660])
    assert (names(jobs, "user"), names(jobs, "queue")) == (["u1"], ["v1"])
    assert jobs.left_out == {"without an attempt that has ended": 2}


THROUGHPUTS = {
    "k80": {"('A3C', 1)": {"null": 2.0, "('A3C', 1)": [1.0, 1.0]}, "('LM (batch size 5)', 2)": {"null": 0.0}},
    "v100": {"('A3C', 1)": {"null": 8.0}, "('LM (batch size 5)', 2)": {"null": 10.0}},
}
GAVEL = [
    "A3C\tpython3 main.py\t--max-steps\t0\t800\t0.000000\t1",
    "LM (batch size 5)\tpython main.py\t--steps\t1\t5000\t30.000000\t2",
    "CycleGAN\tpython3 c.py\t--n_steps\t1\t500\t40.000000\t1",
]


def test_gavels_jobs_are_of_its_own_types_and_run_by_its_throughputs(tmp_path: Path) -> None:
    (tmp_path / "throughputs.json").write_text(json.dumps(THROUGHPUTS))
    (tmp_path / "small.trace").write_text("\n".join(GAVEL) + "\n")
    truth = read_times(tmp_path / "throughputs.json")
    assert (truth.workloads, truth.modes) == ((("A3C", "x1"), ("LM (batch size 5)", "x2")), ("k80", "v100"))
    np.testing.assert_array_equal(truth.relative_wm, [[4.0, 1.0], [np.nan, 1.0]])
    jobs = read_trace(tmp_path / "small.trace", throughputs=tmp_path / "throughputs.json")
    assert (jobs.run_s.tolist(), jobs.nodes.tolist()) == ([100, 500], [1, 2])
    assert jobs.left_out == {"of job types without a throughput on the reference platform": 1}
    outcome = simulate(jobs, Machines.of({"k80": 1, "v100": 2}), truth, truth, lambda *_: 0)
    assert [truth.workloads[w][0] for w in outcome.workload] == ["A3C", "LM (batch size 5)"]
    assert outcome.run_s.tolist() == [400, 500]  # the first on a k80, the second where it can
    with pytest.raises(SettingsError, match="counts in steps, expected --truth with its throughputs"):
        read_trace(tmp_path / "small.trace")
    with pytest.raises(SettingsError, match=r"reference: found 'v10'.*did you mean 'v100'"):
        read_times(tmp_path / "throughputs.json", reference="v10")


def test_traces_of_gavels_physical_cluster_have_ten_columns_and_priorities(tmp_path: Path) -> None:
    (tmp_path / "throughputs.json").write_text(json.dumps(THROUGHPUTS))
    (tmp_path / "long.trace").write_text("A3C\tpython3 m.py\t/d\t--steps\t0\t80\t1\t2.5\t-1.0\t7.0\n")
    jobs = read_trace(tmp_path / "long.trace", throughputs=tmp_path / "throughputs.json", reference="k80")
    assert jobs.run_s.tolist() == [40]
    assert jobs.priority is not None
    assert jobs.priority.tolist() == [2.5]


BAD = {
    "cluster_log.csv": (HELIOS.replace("3600,4", "an hour,4"), "row 2: found 'an hour' under 'duration'"),
    "cluster_log2.csv": (HELIOS.replace("2020-06-09 18:41:01,2", "soon,2"), "found 'soon' under 'submit_time'"),
    "pai_task_table.csv": ("j1,worker\n", "row 1: found 2 cells, expected 10"),
    "slurm-log.csv": ("id_job,tres_alloc\n1,2\n", "expected id_job, time_submit"),
    "cluster_job_log": ('[{"user": "u"}]', "job 1: expected 'submitted_time'"),
    "cluster_job_log2": ("[{", "does not read as JSON"),
    "cluster_job_log3": ("{}", "found no list"),
    "jobs.csv": ("a,b\n1,2\n", "found no trace that is known"),
    "none.csv": ("", "found no trace that is known"),
    "cluster_log3.csv": (HELIOS.splitlines()[0] + "\n", "found no job that ran"),
    "cluster_log4.csv": (HELIOS + "x" * 200_000 + "\n", "does not read as CSV"),
    "few.trace": ("A3C\tx\n", "line 1: found 2 columns, expected 7 or 10"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_trace_that_cannot_be_used_raises_one_sentence(name: str, tmp_path: Path) -> None:
    (tmp_path / "throughputs.json").write_text(json.dumps(THROUGHPUTS))
    (tmp_path / name).write_text(BAD[name][0])
    with pytest.raises(TraceError) as caught:
        read_trace(tmp_path / name, throughputs=tmp_path / "throughputs.json")
    assert BAD[name][1] in str(caught.value)
    assert name in str(caught.value)
