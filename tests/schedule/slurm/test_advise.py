"""`crossperf slurm advise` before a real sbatch: what it chooses, and that it never stands in the way."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from crossperf.schedule.slurm import setup, table
from crossperf.schedule.slurm.table import KeyRow, PartitionChoice
from tests.cli.test_cli import Crossperf, assert_one_sentence, crossperf
from tests.schedule.slurm.cluster import Cluster, until
from tests.schedule.slurm.conftest import TABLE

pytestmark = pytest.mark.slow

__all__ = ["crossperf"]

HOLD = "--hold"


def advise(
    slurm: Cluster, *arguments: str | Path, table_file: Path | None = None, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run the command as a shell does, so that what sbatch prints is seen where it arrives."""
    own = [sys.executable, "-m", "crossperf", "slurm", "advise", "--table", str(table_file or slurm.etc / setup.TABLE)]
    return subprocess.run(
        [*own, *map(str, arguments)],
        env=slurm.environment | {"PYTHONPATH": os.pathsep.join(sys.path)},
        input=stdin,
        text=True,
        capture_output=True,
        check=False,
        timeout=60,
    )


@pytest.fixture
def bare(slurm: Cluster) -> Cluster:
    """The cluster with a plugin that does nothing: what advice does, it does by itself."""
    (slurm.etc / setup.TABLE).rename(slurm.etc / "advice.table")
    return slurm


def own(bare: Cluster, *arguments: str | Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return advise(bare, *arguments, table_file=bare.etc / "advice.table", stdin=stdin)


def test_a_job_is_submitted_where_it_should_run_and_what_sbatch_prints_comes_through(bare: Cluster) -> None:
    done = own(bare, "--", "sbatch", "--parsable", HOLD, "-Jlmp", "--wrap=true")
    assert done.returncode == 0
    assert bare.facts(done.stdout.strip())["Partition"] == "big"
    words = (
        "crossperf: partition big (genoa): lmp takes about 2.5 min, 0.25 times as long as on cpu (range 0.2 to 0.312"
    )
    assert done.stderr.startswith(f"{words}; predicted); predicted waits: ")
    assert len(done.stderr.splitlines()) == 1


def test_a_script_from_a_file_or_from_standard_input_is_read_for_what_it_asks(bare: Cluster, tmp_path: Path) -> None:
    text = "#!/bin/bash\n#SBATCH --hold\n#SBATCH -o /dev/null\nsrun ./lmp\n"
    (tmp_path / "run.sh").write_text(text)
    done = own(bare, "--", "sbatch", "--parsable", tmp_path / "run.sh", "argument")
    assert bare.facts(done.stdout.strip())["Partition"] == "big"
    done = own(bare, "--", "sbatch", "--parsable", stdin=text)
    assert bare.facts(done.stdout.strip())["Partition"] == "big"
    assert "srun ./lmp" in bare.output("scontrol", "write", "batch_script", done.stdout.strip(), "-")


def test_an_explicit_partition_and_unknown_jobs_are_left_as_they_are(bare: Cluster) -> None:
    done = own(bare, "--", "sbatch", "--parsable", HOLD, "-pgpu", "-Jlmp", "--wrap=true")
    assert bare.facts(done.stdout.strip())["Partition"] == "gpu"
    assert done.stderr == "crossperf: partition gpu was asked for; submitted as it is.\n"
    done = own(bare, "--", "sbatch", "--parsable", HOLD, "-Jnobody", "--wrap=./knows")
    assert bare.facts(done.stdout.strip())["Partition"] == "cpu"
    assert done.stderr == "crossperf: the table knows nothing of 'knows' or 'nobody'; submitted as it is.\n"
    done = own(bare, "--", "sbatch", "--parsable", HOLD, "-Jlmp", "--comment=crossperf=off", "--wrap=true")
    assert bare.facts(done.stdout.strip())["Partition"] == "cpu"


def test_a_job_that_is_sent_to_a_gpu_asks_for_one_unless_it_does_already(bare: Cluster) -> None:
    fast = KeyRow((PartitionChoice("gpu", 0.1, 0.1, 0.1), PartitionChoice("cpu", 1.0, 1.0, 1.0)), 600.0)
    partitions = (*TABLE.partitions[:2], replace(TABLE.partitions[2], adds="gpu:1"))
    replace(TABLE, partitions=partitions, rows={("lmp", "", ""): fast}).write(bare.etc / "advice.table")
    job = own(bare, "--", "sbatch", "--parsable", HOLD, "-t5", "-Jlmp", "--wrap=true").stdout.strip()
    assert (bare.facts(job)["Partition"], bare.facts(job)["TresPerNode"]) == ("gpu", "gres:gpu:1")
    done = own(bare, "--dry-run", "--", "sbatch", "-t5", "-Jlmp", "--gpus=2", "--wrap=true")
    assert done.stdout == "sbatch --partition=gpu -t5 -Jlmp --gpus=2 --wrap=true\n"


def test_the_controller_itself_says_where_a_job_can_run(bare: Cluster) -> None:
    done = own(bare, "--dry-run", "--", "sbatch", "-Jlmp", "--gres=gpu:1", "--wrap=true")
    assert done.stdout == "sbatch --partition=gpu --time=60 -Jlmp --gres=gpu:1 --wrap=true\n"
    done = own(bare, "--dry-run", "--", "sbatch", "-t5", "-Jlmp", "--gres=gpu:1", "--wrap=true")
    assert done.stdout == "sbatch --partition=gpu -t5 -Jlmp --gres=gpu:1 --wrap=true\n"
    done = own(bare, "--dry-run", "--", "sbatch", "-Jlmp", "-N2", "--wrap=true")
    assert done.stdout == "sbatch --partition=cpu -Jlmp -N2 --wrap=true\n"
    done = own(bare, "--dry-run", "--", "sbatch", "-Jlmp", "-N9", "--wrap=true")
    assert done.stdout == "sbatch -Jlmp -N9 --wrap=true\n"
    assert "no partition of the table can take it" in done.stderr


def test_the_queues_are_seen_as_they_are(bare: Cluster) -> None:
    """Two jobs of an hour in the best partition: who asks for the shortest turnaround goes elsewhere."""
    jobs = [bare.submit("-pbig", "--exclusive", "-t60", wrap="sleep 60") for _ in range(2)]
    until(lambda: bare.facts(jobs[0])["JobState"] == "RUNNING", "the first job")
    command = ("--", "sbatch", "-Jlmp", "-t10", "--wrap=true")
    patient = own(bare, "--policy", "fastest", "--dry-run", *command)
    hasty = own(bare, "--policy", "turnaround", "--dry-run", *command)
    assert "--partition=big" in patient.stdout
    assert "--partition=gpu" in hasty.stdout
    wait = next(word for word in hasty.stderr.split("waits: ")[1].split(", ") if word.startswith("big"))
    assert wait in ("big 2 h", "big 120 min"), wait


def test_limits_are_scaled_where_that_is_asked_for(bare: Cluster) -> None:
    done = own(bare, "--scale-limits", "--dry-run", "--", "sbatch", "-Jlmp", "-t100", "--wrap=true")
    assert done.stdout == "sbatch --partition=big -Jlmp -t100 --wrap=true --time=32\n"


def test_a_scaled_limit_is_no_longer_than_the_partition_grants(bare: Cluster) -> None:
    unsure = KeyRow((PartitionChoice("big", 0.5, 0.1, 3.0), PartitionChoice("cpu", 1.0, 1.0, 1.0)), 60.0)
    replace(TABLE, rows={("lmp", "", ""): unsure}).write(bare.etc / "advice.table")
    asked = ("--policy", "fastest", "--scale-limits", "--dry-run", "--", "sbatch", "-Jlmp", "-t1200", "--wrap=true")
    assert own(bare, *asked).stdout == "sbatch --partition=big -Jlmp -t1200 --wrap=true --time=1440\n"


def test_the_exit_status_is_that_of_sbatch(bare: Cluster) -> None:
    done = own(bare, "--", "sbatch", "--no-such-option", "--wrap=true")
    alone = bare.run("sbatch", "--no-such-option", "--wrap=true")
    assert done.returncode == alone.returncode != 0
    assert alone.stderr.strip() in done.stderr


@pytest.mark.parametrize("how", ["missing", "torn"])
def test_without_a_sound_table_a_job_is_submitted_as_it_is(slurm: Cluster, how: str, tmp_path: Path) -> None:
    path = tmp_path / "t"
    if how == "torn":
        path.write_bytes(TABLE.to_bytes()[:200])
    (slurm.etc / setup.TABLE).unlink()
    done = advise(slurm, "--", "sbatch", "--parsable", HOLD, "-Jlmp", "--wrap=true", table_file=path)
    assert done.returncode == 0
    assert slurm.facts(done.stdout.strip())["Partition"] == "cpu"
    assert done.stderr.endswith("Submitted as it is.\n")
    assert len(done.stderr.splitlines()) == 1


def test_a_policy_that_fails_loses_no_job(bare: Cluster, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def bad(ask, options, rng):\n    return options.nothing\n")
    policy = f"{tmp_path}/mine.py:bad"
    done = own(bare, "--policy", policy, "--", "sbatch", "--parsable", HOLD, "-Jlmp", "--wrap=true")
    assert done.returncode == 0
    assert bare.facts(done.stdout.strip())["Partition"] == "cpu"
    assert "no advice (AttributeError" in done.stderr


def test_a_program_that_the_table_alone_names_is_not_run(bare: Cluster, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("raise SystemExit('ran')\n")
    replace(TABLE, policy=f"{tmp_path}/mine.py:first").write(bare.etc / "advice.table")
    done = own(bare, "--dry-run", "--", "sbatch", "-Jlmp", "--wrap=true")
    assert done.stdout == "sbatch -Jlmp --wrap=true\n"
    assert "expected --policy to name it" in done.stderr


def test_with_the_controller_down_it_says_so_and_the_exit_status_is_that_of_sbatch(slurm: Cluster) -> None:
    slurm.stop_controller()
    try:
        done = advise(slurm, "--", "sbatch", HOLD, "-Jlmp", "--wrap=true")
    finally:
        slurm.start_controller()
    first, *rest = done.stderr.splitlines()
    assert first.startswith("crossperf: the Slurm controller cannot be reached")
    assert first.endswith("Submitted as it is.")
    assert rest == ["sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)"]
    assert done.returncode == 1


def test_only_sbatch_is_advised(crossperf: Crossperf) -> None:
    assert_one_sentence(crossperf("slurm", "advise", "--", "srun", "x"), "found 'srun'", "expected sbatch")


# The table from the command line, with the controller at hand

TIMES = """app,input,epyc-2,genoa,h200
lmp,melt,1,0.5,0.1
lmp,small,1,0.5,2
hpcc,n100,1,2,
"""


def test_a_table_from_relative_times_places_real_jobs(crossperf: Crossperf, slurm: Cluster) -> None:
    Path("times.csv").write_text(TIMES)
    done = crossperf("slurm", "table", "--times", "times.csv", "-o", slurm.etc / setup.TABLE, "--policy", "fastest")
    assert done.status == 0, done.stderr
    assert done.stdout.startswith("5 keys by policy 'fastest', first choices: cpu 2, big 1, gpu 2\n")
    jobs = {"melt": "gpu", "small": "big", "unknown": "gpu"}
    for input_, partition in jobs.items():
        job = slurm.submit(HOLD, "-Jlmp", f"--comment=input={input_}")
        assert slurm.facts(job)["Partition"] == partition
    assert slurm.facts(slurm.submit(HOLD, "-Jhpcc"))["Partition"] == "cpu"
    assert slurm.facts(slurm.submit(HOLD, "-Jlmp", "--mem=10000"))["Partition"] == "big", "memory as sinfo gives it"


def test_a_live_table_sees_the_queues_and_expires(crossperf: Crossperf, slurm: Cluster) -> None:
    slurm.submit("-pgpu", "--exclusive", "-t600", wrap="sleep 60")
    until(lambda: "RUNNING" in slurm.output("squeue", "-h", "-o%T"), "a running job")
    Path("times.csv").write_text(TIMES)
    command = ("slurm", "table", "--times", "times.csv", "-o", slurm.etc / setup.TABLE, "--policy", "turnaround")
    assert crossperf(*command, "--live", "--good-for", "600").status == 0
    assert slurm.facts(slurm.submit(HOLD, "-Jlmp", "--comment=input=melt"))["Partition"] == "big"
    made = table.read(slurm.etc / setup.TABLE)
    assert made.expires == made.made + 600
    assert abs(made.made - time.time()) < 60


def test_a_live_table_needs_the_controller_and_a_plain_one_does_not(crossperf: Crossperf, no_slurm: None) -> None:
    Path("times.csv").write_text(TIMES)
    command = ("slurm", "table", "--times", "times.csv", "-o", "t", "--partitions", "cpu=epyc-2,big=genoa,gpu=h200")
    assert_one_sentence(crossperf(*command, "--live"), "cannot be reached")
    assert not Path("t").exists()
    done = crossperf(*command)
    assert done.status == 0
    assert "Jobs that ask for processors, memory, features or GPUs will not be moved" in done.stderr


def test_what_a_table_lacks_is_one_sentence_and_nothing_is_written(crossperf: Crossperf, no_slurm: None) -> None:
    Path("times.csv").write_text(TIMES)
    Path("p.json").write_text('{"predictions": [{}]}')
    common = ("slurm", "table", "-o", "t", "--partitions", "cpu=epyc-2,big=genoa")
    assert_one_sentence(crossperf(*common), "found nothing to go by")
    assert_one_sentence(crossperf(*common, "model"), "MODEL without RUNS")
    assert_one_sentence(crossperf(*common, "--predictions", "p.json"), "found no format")
    assert_one_sentence(crossperf(*common, "--times", "times.csv", "--policy", "fastets"), "did you mean 'fastest'")
    other = ("slurm", "table", "-o", "t", "--partitions", "cpu=epyc-2,x=never", "--times", "times.csv")
    assert_one_sentence(crossperf(*other), "no key with two partitions")
    assert not Path("t").exists()


def test_a_model_and_its_runs_make_a_table(crossperf: Crossperf, no_slurm: None) -> None:
    from crossperf import dataset, model
    from crossperf.datasets import toy
    from crossperf.model import TrainedModel, load, save
    from crossperf.prediction.answer import predict
    from crossperf.runs.table import from_frame

    runs = toy.make_table(apps=4, inputs=3, platforms=3, repeats=1, seed=1)
    data = dataset.build(runs)
    save(TrainedModel.of(model.make("ridge").learn(data), data), "model")
    source_runs = runs.frame.filter(runs.frame["platform"] == data.platforms[0])
    from_frame(source_runs).write("new.csv")
    names = dict(zip(("cpu", "big", "gpu"), data.platforms, strict=True))
    mapping = ",".join(f"{partition}={platform}" for partition, platform in names.items())
    done = crossperf("slurm", "table", "model", "new.csv", "-o", "t", "--partitions", mapping, "--policy", "fastest")
    assert done.status == 0, done.stderr
    made = table.read("t")
    for expected in predict(load("model"), "new.csv", relative_to=names["cpu"]).predictions:
        row = made.row((expected.app, "", expected.input))
        assert row is not None
        assert names[row.choices[0].partition] == expected.fastest
        assert row.seconds == pytest.approx(expected.seconds[names["cpu"]], rel=1e-5)
