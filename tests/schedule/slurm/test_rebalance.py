"""Waiting jobs that would end sooner elsewhere: by numbers worked out by hand, and in a real Slurm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from crossperf.schedule.slurm import rebalance, setup, table
from crossperf.schedule.slurm.controller import Start
from crossperf.schedule.slurm.rebalance import Move, WaitingJob
from crossperf.schedule.slurm.table import KeyRow, PartitionChoice, StoredTable
from tests.cli.test_cli import Crossperf, crossperf
from tests.schedule.slurm.cluster import Cluster, until
from tests.schedule.slurm.conftest import TABLE

__all__ = ["crossperf"]

SENT = "crossperf app=lmp input=nodes-1 sent=big there=0.25,0.2,0.3 here=1,1,1"
#: Waits for two hours in 'big', where it takes 150 s; in 'gpu' it would take 300 s, in 'cpu' 600 s.
JOB = WaitingJob("7", "big", "ann", "Resources", "1", "1", "100M", "30:00", "8200", "(null)", "N/A", SENT)


@pytest.fixture
def stored(tmp_path: Path) -> StoredTable:
    TABLE.write(tmp_path / "t")
    return table.read(tmp_path / "t")


def starts(**waits: float) -> object:
    def start(partition: str, arguments: Sequence[str]) -> Start:
        return Start(waits[partition]) if partition in waits else Start(refused="no")

    return start


def moved(stored: StoredTable, *jobs: WaitingJob, **waits: float) -> list[tuple[str, str]]:
    chosen, _ = rebalance.moves(jobs, stored, starts(**waits), now_s=1000.0)  # type: ignore[arg-type]
    return [(move.number, move.elsewhere) for move in chosen]


def test_a_job_moves_where_it_ends_soonest(stored: StoredTable) -> None:
    assert moved(stored, JOB, cpu=0.0, gpu=0.0) == [("7", "gpu")]
    assert moved(stored, JOB, cpu=0.0, gpu=400.0) == [("7", "cpu")]
    assert moved(stored, JOB, cpu=7100.0) == [], "not for a few minutes"
    assert moved(stored, JOB) == [], "nobody else takes it"


def test_what_moves_lengthens_the_wait_of_those_behind(stored: StoredTable) -> None:
    jobs = [replace(JOB, number=str(number)) for number in range(4)]
    # In 'gpu' a job takes 300 s on the one node; in 'cpu' 600 s on one of two.
    assert moved(stored, *jobs, cpu=0.0, gpu=0.0) == [("0", "gpu"), ("1", "gpu"), ("2", "cpu"), ("3", "gpu")]


def test_no_job_moves_where_its_limit_would_end_it(stored: StoredTable) -> None:
    """In 'gpu' and 'big' it is faster than in the default partition, in 'slow' slower than its limit allows."""
    slow = PartitionChoice("gpu", 2.0, 1.8, 3.5)
    row = KeyRow((TABLE.rows["lmp", "", ""].choices[0], PartitionChoice("cpu", 1.0, 1.0, 1.0), slow), 600.0)
    rows = {table.digest_of(("lmp", "", ""), stored.salt): row}
    assert moved(replace(stored, rows=rows), JOB, gpu=0.0) == [], "600 s, 3.5 times as long, within 30 minutes"
    assert moved(replace(stored, rows=rows), replace(JOB, limit="1:00:00"), gpu=0.0) == [("7", "gpu")]


STAYS = [
    {"reason": "JobHeldUser"},
    {"start": "N/A"},
    {"tag": "crossperf app=lmp input=nodes-1"},
    {"tag": ""},
    {"partition": "big,cpu"},
    {"features": "x86"},
    {"gres": "gres:gpu:1"},
    {"tag": SENT.replace("lmp", "nobody")},
    {"memory": "20G"},
    {"memory": "5000M", "cpus": "2"},
]


@pytest.mark.parametrize("more", STAYS)
def test_a_job_that_is_not_ours_to_move_stays(stored: StoredTable, more: dict[str, str]) -> None:
    assert moved(stored, replace(JOB, **more), cpu=0.0, gpu=0.0) == []


def test_partitions_that_are_closed_or_give_a_gres_are_left_out(stored: StoredTable) -> None:
    cpu, big, gpu = stored.partitions
    for other in (replace(gpu, closed="no"), replace(gpu, adds="gpu:1")):
        assert moved(replace(stored, partitions=(cpu, big, other)), JOB, cpu=0.0, gpu=0.0) == [("7", "cpu")]


def test_a_move_is_told_in_one_line() -> None:
    move = Move("7", "lmp", "ann", "big", "cpu", 7350.0, 600.0)
    assert str(move) == "job 7 (lmp, ann): big to cpu (2.04 h until its end in big, 10 min there)"


@pytest.mark.slow
def test_a_real_job_is_named_and_moves_only_when_told(slurm: Cluster, crossperf: Crossperf) -> None:
    busy = slurm.submit("-pbig", "-n2", "-t600", wrap="sleep 60")
    until(lambda: slurm.facts(busy)["JobState"] == "RUNNING", "a job to run")
    ours, theirs = slurm.submit("-Jlmp", "-n2", "-t30"), slurm.submit("-Jlmp", "-pbig", "-n2", "-t30")
    until(lambda: all(slurm.facts(job)["StartTime"] != "Unknown" for job in (ours, theirs)), "predicted starts", 40.0)
    command = ("slurm", "rebalance", "--table", slurm.etc / setup.TABLE)
    done = crossperf(*command)
    assert done.stdout.startswith(f"1 of 2 waiting jobs would move\njob {ours} (lmp, root): big to gpu (")
    assert "1 stay: their users chose the partition" in done.stderr
    assert slurm.facts(ours)["Partition"] == "big"
    assert crossperf(*command, "--apply").stdout.startswith("1 of 2 waiting jobs moved")
    until(lambda: slurm.facts(ours)["JobState"] in ("RUNNING", "COMPLETED"), "it to run", 30.0)
    assert slurm.facts(ours)["Partition"] == "gpu"
    assert slurm.facts(theirs)["Partition"] == "big"
