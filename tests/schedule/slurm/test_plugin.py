"""The plugin inside a real controller: where jobs land, what their users read, and that none is ever lost."""

from __future__ import annotations

import os
import statistics
import time
from dataclasses import replace
from pathlib import Path

import pytest

from crossperf.schedule.slurm import setup
from tests.schedule.slurm.cluster import Cluster, until
from tests.schedule.slurm.conftest import SITE, TABLE, need_another_user, spoiled

pytestmark = pytest.mark.slow

#: Held jobs stay in the queue, so that a test can look at them.
HOLD = "--hold"


def partition(slurm: Cluster, *options: str, wrap: str = "true") -> str:
    """Submit a job that is held, and return the partition that it is in."""
    return slurm.facts(slurm.submit(HOLD, *options, wrap=wrap))["Partition"]


def test_a_job_lands_where_it_is_predicted_to_run_best_by_the_most_special_key_that_is_known(slurm: Cluster) -> None:
    assert partition(slurm, "-Jlmp") == "big"
    assert partition(slurm, "-Jlmp", "--comment=input=melt") == "big", "the user's own runs come first"
    assert partition(slurm, "--comment=app=solve") == "gpu"
    assert partition(slurm, "--comment=app=solve input=unheard-of") == "gpu"
    assert partition(slurm, "--comment=app=solve", "-N2") == "cpu", "two nodes are a class of input of their own"


def test_a_job_really_runs_where_it_was_sent(slurm: Cluster) -> None:
    out = slurm.folder / "where"
    job = slurm.output("sbatch", "--parsable", "-Jlmp", f"-o{out}", "--wrap=echo $SLURM_JOB_PARTITION $SLURMD_NODENAME")
    slurm.finish(job.strip())
    assert out.read_text().split() == ["big", "big1"]


def test_the_program_of_the_script_names_a_job_whose_name_is_unknown(slurm: Cluster, tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text("#!/bin/bash\n#SBATCH -n 1\nmodule load mpi\nsrun -n 1 /opt/bin/lmp -in in.melt\n")
    job = slurm.output("sbatch", "--parsable", HOLD, str(script)).strip()
    assert slurm.facts(job)["Partition"] == "big"


def test_interactive_jobs_are_placed_as_well(slurm: Cluster) -> None:
    done = slurm.run("srun", "-Jlmp", "printenv", "SLURM_JOB_PARTITION")
    assert done.stdout.strip() == "big"
    assert "srun: crossperf: partition big" in done.stderr


def test_an_explicit_partition_is_honoured(slurm: Cluster) -> None:
    assert partition(slurm, "-Jlmp", "-pgpu") == "gpu"
    assert partition(slurm, "-Jlmp", "-pcpu,gpu") == "cpu,gpu"
    done = slurm.run("sbatch", HOLD, "-Jlmp", "--wrap=true", env={"SBATCH_PARTITION": "cpu"})
    assert slurm.facts(done.stdout.split()[-1])["Partition"] == "cpu"
    assert "crossperf" not in done.stderr


def test_a_user_can_do_without_advice(slurm: Cluster) -> None:
    done = slurm.run("sbatch", HOLD, "-Jlmp", "--comment=crossperf=off", "--wrap=true")
    assert slurm.facts(done.stdout.split()[-1])["Partition"] == "cpu"
    assert "crossperf" not in done.stderr


def test_an_unknown_application_falls_to_the_default_without_a_word(slurm: Cluster) -> None:
    done = slurm.run("sbatch", HOLD, "-Jnobody-knows", "--wrap=./nothing")
    assert slurm.facts(done.stdout.split()[-1])["Partition"] == "cpu"
    assert done.stderr == ""


def test_the_user_reads_what_was_chosen_and_why_in_one_line(slurm: Cluster) -> None:
    done = slurm.run("sbatch", HOLD, "-Jlmp", "--wrap=true")
    assert done.stderr == (
        "sbatch: crossperf: partition big (genoa) by policy 'fastest': lmp takes about 2.5 min, 0.25 times as long as "
        "on cpu (range 0.2 to 0.312; predicted). Your own choice: -p PARTITION.\n"
    )
    done = slurm.run("sbatch", HOLD, "-Jlmp", "--comment=input=melt", "--wrap=true")
    assert "5 min, 0.5 times as long as on cpu (range 0.4 to 0.625; measured 5 times)" in done.stderr
    done = slurm.run("sbatch", HOLD, "-Jhpcc", "--wrap=true")
    assert "partition cpu (epyc-2) by policy 'fastest': hpcc takes about 10 min there (predicted)" in done.stderr


@pytest.mark.parametrize(
    ("options", "expected", "why"),
    [
        (("-N2",), "cpu", "big has one node"),
        (("--mem=10000",), "big", "only big has that much memory, and it is the best anyway"),
        (("--mem=10000", "-N2"), "cpu", "nobody can take this: Slurm's own default, to refuse or to hold"),
        (("--gres=gpu:1",), "gpu", "GPUs are there alone"),
        (("--gres=gpu:fake:2",), "gpu", "by their type, too"),
        (("--gpus=2",), "gpu", "GPUs of the whole job"),
        (("-Ccascade",), "cpu", "only the nodes of cpu have this feature"),
        (("-Cx86&genoa",), "big", "both features"),
        (("-n3",), "cpu", "three processors are more than big has"),
        (("-t2-0",), "gpu", "big ends jobs after a day"),
        (("-wcpu1",), "cpu", "named nodes are an explicit choice"),
    ],
)
def test_a_job_goes_only_where_it_can_run(slurm: Cluster, options: tuple[str, ...], expected: str, why: str) -> None:
    done = slurm.run("sbatch", HOLD, "--parsable", "-Jlmp", *options, "--wrap=true")
    if "nobody" in why:
        assert "crossperf" not in done.stderr
    else:
        assert slurm.facts(done.stdout.strip())["Partition"] == expected, why


def test_a_job_that_slurm_takes_without_the_plugin_it_takes_with_the_plugin(slurm: Cluster) -> None:
    """The same submissions with an explicit default partition show what Slurm takes by itself."""
    cases = [["-N2"], ["-n4"], ["-c2"], ["--mem=3000"], ["--mem-per-cpu=1500", "-n2"], ["--exclusive"], ["-a1-3"]]
    cases += [["-Cx86"], ["-Ccascade"], ["--ntasks-per-node=2", "-N2"], ["-t5:00:00"], ["-N1-2"], ["-C[x86|gpu]"]]
    for case in cases:
        alone = slurm.run("sbatch", HOLD, "-pcpu", *case, "--wrap=true").returncode
        advised = slurm.run("sbatch", HOLD, "-Jwide", *case, "--wrap=true").returncode
        assert alone == 0 == advised, case


@pytest.mark.parametrize(("how", "data"), list(spoiled().items()), ids=list(spoiled()))
def test_a_table_that_is_not_sound_changes_nothing(slurm: Cluster, how: str, data: bytes | None) -> None:
    path = slurm.etc / setup.TABLE
    path.unlink()
    if data is not None:
        path.write_bytes(data)
    if how == "huge":
        os.truncate(path, 9999999999)  # sparse, and far beyond what may be read
    start = time.perf_counter()
    done = slurm.run("sbatch", HOLD, "-Jlmp", "--wrap=true")
    assert time.perf_counter() - start < 20.0  # on a busy machine; ten gigabytes take longer
    assert done.returncode == 0
    assert slurm.facts(done.stdout.split()[-1])["Partition"] == "cpu"
    assert "crossperf" not in done.stderr


def test_a_new_table_is_taken_up_with_the_next_job_and_a_stale_one_gives_lists(slurm: Cluster) -> None:
    path = slurm.etc / setup.TABLE
    assert partition(slurm, "-Jhpcc") == "cpu"
    replace(TABLE, rows={("hpcc", "", ""): TABLE.rows["lmp", "", ""]}, expires=int(time.time()) + 600).write(path)
    assert partition(slurm, "-Jhpcc") == "big"
    replace(TABLE, rows={("hpcc", "", ""): TABLE.rows["lmp", "", ""]}, expires=int(time.time()) - 1).write(path)
    assert partition(slurm, "-Jhpcc") == "big,gpu,cpu"


def test_what_a_job_was_known_as_is_noted_for_later(slurm: Cluster) -> None:
    job = slurm.submit(HOLD, "-Janything", wrap="./never-seen --fast")
    assert "AdminComment=crossperf app=never-seen input=nodes-1" in slurm.output("scontrol", "show", "job", job)


def test_a_new_version_of_the_plugin_is_taken_up_with_the_next_job(slurm: Cluster) -> None:
    """Slurm reads job_submit.lua again when it changes, and what it loads only with it."""
    try:
        for shadow in (True, False, True, False):  # within one second
            setup.write(slurm.etc, setup.files(slurm.etc, SITE, shadow=shadow), overwrite=True)
            assert partition(slurm, "-Jlmp") == ("cpu" if shadow else "big")
    finally:
        setup.write(slurm.etc, setup.files(slurm.etc, SITE), overwrite=True)


def test_in_shadow_mode_a_real_job_is_noted_and_left(slurm: Cluster) -> None:
    setup.write(slurm.etc, setup.files(slurm.etc, SITE, shadow=True), overwrite=True)
    try:
        done = slurm.run("sbatch", HOLD, "--parsable", "-Jlmp", "-t5", "--wrap=true")
        assert done.stderr == ""
        text = slurm.output("scontrol", "show", "job", done.stdout.strip())
        assert "AdminComment=crossperf app=lmp input=nodes-1" in text
        assert "would=big there=0.25,0.2,0.3125 here=1,0.8,1.25" in text
        assert "Partition=cpu" in text
    finally:
        setup.write(slurm.etc, setup.files(slurm.etc, SITE), overwrite=True)


def test_a_pipe_in_the_place_of_the_table_keeps_no_job_waiting(slurm: Cluster) -> None:
    path = slurm.etc / setup.TABLE
    path.unlink()
    os.mkfifo(path)
    try:
        assert partition(slurm, "-Jlmp") == "cpu"
        assert slurm.output("scontrol", "ping").count("UP") == 1
    finally:
        path.unlink()


def test_jobs_with_a_list_spread_over_what_is_free(slurm: Cluster) -> None:
    """All went to the one node of the fastest partition, and waited for each other, while others stood idle."""
    replace(TABLE, policy="list").write(slurm.etc / setup.TABLE)
    jobs = [slurm.submit("-Jlmp", "-n2", "--mem=100", wrap="sleep 30") for _ in range(4)]
    until(lambda: all(slurm.facts(job)["JobState"] == "RUNNING" for job in jobs), "all four to run at once", 30.0)
    assert sorted(slurm.facts(job)["NodeList"] for job in jobs) == ["big1", "cpu1", "cpu2", "gpu1"]


def test_no_job_of_an_ordinary_user_is_lost_while_tables_come_and_go(slurm: Cluster) -> None:
    """Rewritten, missing, torn and blocked tables, and reconfigurations; benchmarks/slurm.py does it 1,000 times."""
    need_another_user()
    path = slurm.etc / setup.TABLE
    jobs = []
    for number in range(60):
        if number % 20 == 0:
            slurm.output("scontrol", "reconfigure")
        if number % 5 == 0:
            path.unlink(missing_ok=True)
            kind = number // 5 % 4
            if kind == 0:
                TABLE.write(path)
            elif kind == 1:
                os.mkfifo(path)
            elif kind == 2:
                path.write_bytes(TABLE.to_bytes()[:400])
        options = ("--parsable", HOLD, "-o/dev/null", "-Jlmp", "-t5")
        done = slurm.run("sbatch", *options, "--wrap=true", user="nobody")
        assert done.returncode == 0, done.stderr
        jobs.append(done.stdout.strip())
    path.unlink(missing_ok=True)
    queued = dict(line.split() for line in slurm.output("squeue", "-h", "-o%i %P").splitlines())
    expected = {job: "big" if number // 5 % 4 == 0 else "cpu" for number, job in enumerate(jobs)}
    assert {job: queued.get(job) for job in jobs} == expected


@pytest.mark.slow
def test_200_submissions_in_a_row_lose_no_job_and_cost_little(slurm: Cluster) -> None:
    """The same controller without the plugin stands beside it, and the two take turns."""
    with Cluster(nodes=()) as bare:
        ours, theirs, jobs = [], [], []
        for number in range(200):
            for cluster, times in ((slurm, ours), (bare, theirs)) if number % 2 else ((bare, theirs), (slurm, ours)):
                place = [] if cluster is slurm else ["-pbig"]
                start = time.perf_counter()
                job = cluster.submit(HOLD, "-Jlmp", *place)
                times.append(time.perf_counter() - start)
                if cluster is slurm:
                    jobs.append(job)
        assert len(bare.output("squeue", "-h").splitlines()) == 200
    queued = dict(line.split() for line in slurm.output("squeue", "-h", "-o%i %P").splitlines())
    assert {job: queued.get(job) for job in jobs} == dict.fromkeys(jobs, "big")
    assert len(set(jobs)) == 200
    added_s = statistics.median(mine - other for mine, other in zip(ours, theirs, strict=True))
    assert added_s < 0.010, f"{added_s * 1e3:.1f} ms more than {statistics.median(theirs) * 1e3:.1f} ms"
