"""Finished jobs as runs: recorded files of each kind, and a real Slurm that has just run them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from crossperf.runs import jsonl
from crossperf.schedule.slurm import history, setup
from crossperf.schedule.slurm.history import HistoryError, learn, run_of, sacct_lines
from tests.cli.test_cli import Crossperf, assert_one_sentence, crossperf
from tests.collect.real import need
from tests.schedule.slurm.cluster import ACCOUNTING, PROGRAMS, Cluster, until
from tests.schedule.slurm.conftest import SITE, install, speak_to

__all__ = ["crossperf"]

DATA = Path(__file__).parents[2] / "data" / "slurm"
PARTITIONS = ("--partitions", "cpu=epyc-2,big=genoa,gpu=h200")
#: Name, partition, state, seconds and nodes of the recorded jobs by number.
RECORDED = {
    "1": ("lmp", "big", "COMPLETED", 2.0, 1),
    "2": ("my job=1 JobState=x|y", "cpu", "COMPLETED", 1.0, 1),
    "3": ("hpcc", "cpu", "FAILED", 1.0, 2),
    "4": ("array", "cpu", "COMPLETED", 1.0, 1),
    "5": ("killed", "gpu", "CANCELLED", 2.0, 1),
    "7": ("short", "cpu", "COMPLETED", 0.0, 1),
    "8": ("array", "cpu", "COMPLETED", 1.0, 1),
}


def facts(jobs: list[history.FinishedJob]) -> dict[str, tuple[str, str, str, float, int]]:
    return {job.number: (job.name, job.partition, job.state, job.seconds, job.nodes) for job in jobs}


def test_sacct_and_jobcomp_tell_the_same_of_the_same_jobs() -> None:
    sacct = sacct_lines((DATA / "sacct-22.05.txt").read_text(), "sacct")
    jobcomp = history.from_jobcomp(DATA / "jobcomp-22.05.log")
    assert sacct.problems == jobcomp.problems == []
    assert facts(sacct.jobs) == RECORDED
    # sacct leaves out a job that was cancelled before it started; its line in the other file has no nodes.
    assert facts(jobcomp.jobs) == RECORDED | {"6": ("held", "cpu", "CANCELLED", 0.0, 0)}
    ids = [{run_of(job, "p").run_id for job in jobs if job.number != "6"} for jobs in (sacct.jobs, jobcomp.jobs)]
    assert ids[0] == ids[1]


def test_a_line_that_the_separator_breaks_is_one_sentence_with_its_number() -> None:
    reading = sacct_lines((DATA / "sacct-22.05-pipes.txt").read_text(), "sacct.txt")
    assert set(facts(reading.jobs)) == set(RECORDED) - {"2"}
    assert reading.problems == ["sacct.txt, line 3: found 13 fields, expected 11 fields as in the header; left out."]


def test_the_older_trailing_separator_is_read_too() -> None:
    text = (DATA / "sacct-22.05-pipes.txt").read_text()
    parsable = "".join(f"{line}|\n" for line in text.splitlines() if "x|y" not in line)
    assert facts(sacct_lines(parsable, "x").jobs) == facts(sacct_lines(text, "x").jobs)


def test_columns_that_are_missing_are_named() -> None:
    with pytest.raises(HistoryError, match=r"expected also User, State.*sacct --allusers"):
        sacct_lines("JobIDRaw|JobName|Partition|ElapsedRaw|NNodes|Start\n", "x")


def test_numbers_that_are_none_are_one_sentence() -> None:
    text = (DATA / "sacct-22.05-pipes.txt").read_text().replace("FAILED|1|2", "FAILED|?|2")
    assert any("line 4: found '?' seconds" in problem for problem in sacct_lines(text, "x").problems)


def test_a_torn_last_line_of_jobcomp_is_passed_over_and_a_bad_one_before_it_named(tmp_path: Path) -> None:
    lines = (DATA / "jobcomp-22.05.log").read_text().splitlines(keepends=True)
    path = tmp_path / "jobcomp.log"
    path.write_text(lines[0] + "JobId=9 nonsense\n" + lines[1] + lines[2][:70])
    reading = history.from_jobcomp(path)
    assert [job.number for job in reading.jobs] == ["3", "8"]
    assert reading.problems == [
        f"{path}, line 2: found 'JobId=9 nonsense', expected 'JobId=... Name=... JobState=...'; left out."
    ]


def test_jobcomp_of_versions_without_group_tres_and_cluster_is_read(tmp_path: Path) -> None:
    """As Slurm 16.05 wrote it."""
    line = (
        "JobId=77 UserId=ann(1001) Name=old code JobState=TIMEOUT Partition=cpu TimeLimit=60 "
        "StartTime=2016-07-01T10:00:00 EndTime=2016-07-01T11:00:00 NodeList=n1 NodeCnt=1 ProcCnt=4 WorkDir=/home/ann \n"
    )
    (tmp_path / "log").write_text(line)
    (job,) = history.from_jobcomp(tmp_path / "log").jobs
    assert (job.cluster, job.user, job.name, job.state, job.seconds) == ("", "ann", "old code", "TIMEOUT", 3600.0)
    assert run_of(job, "p", "old").run_id == "old:77:2016-07-01T10:00:00"


def test_jobs_become_runs_with_their_platform_user_and_fate(crossperf: Crossperf) -> None:
    done = crossperf("slurm", "learn", "--sacct-file", DATA / "sacct-22.05.txt", *PARTITIONS, "-o", "runs.jsonl")
    assert done.status == 0, done.stderr
    assert done.stdout == "6 runs added, 0 were there already\n"
    runs = {run.run_id: run for run in jsonl.read("runs.jsonl")}
    melt = runs["crossperf:1:2026-11-15T18:28:02"]
    assert (melt.app, melt.input, melt.platform, melt.runtime_s, melt.status) == ("lmp", "melt", "genoa", 2.0, "ok")
    assert melt.metadata == {"user": "root", "nodes": 1, "partition": "big"}
    assert runs["crossperf:2:2026-11-15T18:28:02"].app == "my job=1 JobState=x|y", "as the plugin noted it"
    assert runs["crossperf:3:2026-11-15T18:28:02"].status == "failed"
    assert runs["crossperf:3:2026-11-15T18:28:02"].input == "nodes-2"
    assert runs["crossperf:5:2026-11-15T18:28:02"].status == "cancelled"
    assert "1 job never started, or ran for less than the second" in done.stderr


def test_what_was_learned_is_not_learned_twice_from_wherever_it_comes(crossperf: Crossperf) -> None:
    command = ("slurm", "learn", *PARTITIONS, "-o", "runs.jsonl")
    crossperf(*command, "--sacct-file", DATA / "sacct-22.05.txt")
    before = Path("runs.jsonl").read_bytes()
    for source in (("--sacct-file", DATA / "sacct-22.05.txt"), ("--jobcomp", DATA / "jobcomp-22.05.log")):
        assert crossperf(*command, *source).stdout == "0 runs added, 6 were there already\n"
    assert Path("runs.jsonl").read_bytes() == before


def test_a_partition_without_a_platform_is_left_out_and_counted(crossperf: Crossperf) -> None:
    done = crossperf(
        "slurm", "learn", "--jobcomp", DATA / "jobcomp-22.05.log", "--partitions", "cpu=a", "-o", "r.jsonl"
    )
    assert done.stdout == "4 runs added, 0 were there already\n"
    assert "left out: 1 job ran in partition 'gpu', which has no platform" in done.stderr


def test_jobs_that_go_on_are_left_for_later(tmp_path: Path) -> None:
    text = (DATA / "sacct-22.05.txt").read_text().replace("FAILED", "RUNNING")
    result = learn(sacct_lines(text, "x").jobs, SITE, tmp_path / "r.jsonl")
    assert (result.added, result.left_out["had not ended yet"]) == (5, 1)


def test_what_is_missing_is_one_sentence(crossperf: Crossperf, no_slurm: None) -> None:
    common = ("slurm", "learn", *PARTITIONS, "-o", "r.jsonl")
    assert_one_sentence(crossperf(*common), "expected one of --sacct")
    assert_one_sentence(crossperf(*common, "--sacct", "--jobcomp", "x"), "expected one of --sacct")
    assert_one_sentence(crossperf(*common, "--jobcomp", "nothing.log"), "nothing.log: cannot be read")
    assert not Path("r.jsonl").exists()


# A real Slurm


@pytest.fixture(scope="module")
def accounted() -> Iterator[Cluster]:
    """A cluster with slurmdbd and a database of its own."""
    need(*PROGRAMS, *ACCOUNTING)
    with Cluster(install, accounting=True) as started:
        yield started


@pytest.mark.slow
def test_a_real_slurm_teaches_by_sacct_and_by_jobcomp_and_the_table_follows(
    accounted: Cluster, crossperf: Crossperf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Predicted to be best in 'big', the application turns out to be slower there, and its jobs stay away."""
    speak_to(accounted, monkeypatch)
    same = ("-Jlmp", "--comment=input=melt")
    table, hold = accounted.etc / setup.TABLE, ("--hold", *same)
    assert accounted.facts(accounted.submit(*hold))["Partition"] == "big"
    seconds = {"cpu": 1, "big": 3}
    jobs = [accounted.submit(*same, f"-p{name}", wrap=f"sleep {seconds[name]}") for name in seconds for _ in range(2)]
    jobs.append(accounted.submit("-Jfails", wrap="sleep 1; exit 4"))
    accounted.finish(*jobs)
    until(lambda: len(history.from_sacct().jobs) >= len(jobs), "sacct to have all jobs")
    until(
        lambda: all(j.state not in ("RUNNING", "PENDING") for j in history.from_sacct().jobs if j.number in jobs),
        "ends",
    )
    learned = crossperf("slurm", "learn", "--sacct", *PARTITIONS, "-o", "runs.jsonl")
    assert learned.stdout.startswith(f"{len(jobs)} runs added"), learned
    again = crossperf("slurm", "learn", "--jobcomp", accounted.folder / "jobcomp.log", *PARTITIONS, "-o", "runs.jsonl")
    assert again.stdout == f"0 runs added, {len(jobs)} were there already\n"
    runs = jsonl.read("runs.jsonl")
    assert sorted((run.app, run.platform, run.status) for run in runs) == [
        ("fails", "epyc-2", "failed"),
        *[("lmp", "epyc-2", "ok")] * 2,
        *[("lmp", "genoa", "ok")] * 2,
    ]
    assert all((run.runtime_s or 0) >= 3 for run in runs if run.platform == "genoa")
    done = crossperf("slurm", "table", "--learned", "runs.jsonl", "--enough", "2", "-o", table, "--policy", "fastest")
    assert done.status == 0, done.stderr
    done2 = accounted.run("sbatch", *hold, "--wrap=true")
    assert "partition cpu (epyc-2)" in done2.stderr
    assert "measured 2 times" in done2.stderr
    assert accounted.facts(done2.stdout.split()[-1])["Partition"] == "cpu"
    assert json.loads(Path("runs.jsonl").read_text().splitlines()[0])["source_tool"] == "slurm"
