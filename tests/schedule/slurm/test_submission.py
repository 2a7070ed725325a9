"""What an sbatch command line asks for, against sbatch itself where it can tell."""

from __future__ import annotations

from pathlib import Path

import pytest

from crossperf.schedule.slurm.advise import _FLAGS, _SHORT_VALUES, _VALUED, parse
from tests.collect.real import need
from tests.schedule.slurm.cluster import Cluster

SCRIPT = """#!/bin/bash
#SBATCH --job-name=melt -N 4
#SBATCH --comment="app=lammps input=in melt" # a remark
#SBATCH -t 1:00:00
##SBATCH --partition=never

srun ./lmp
#SBATCH --partition=too-late
"""


@pytest.fixture
def script(tmp_path: Path) -> str:
    (tmp_path / "run.sh").write_text(SCRIPT)
    return str(tmp_path / "run.sh")


def test_options_are_read_from_the_script_until_its_first_command(script: str) -> None:
    submission = parse([script, "-p", "an argument of the script"], {})
    assert (submission.job_name, submission.nodes, submission.limit_s, submission.fixed) == ("melt", 4, 3600.0, None)
    assert submission.named("ann").apps == ("lammps",)
    assert submission.n_options == 0


def test_the_command_line_wins_over_variables_and_these_over_the_script(script: str) -> None:
    variables = {"SBATCH_JOB_NAME": "variable", "SBATCH_TIMELIMIT": "5"}
    assert parse([script], variables).job_name == "variable"
    assert parse(["-J", "line", script], variables).job_name == "line"
    assert parse([script], variables).limit_s == 300.0
    assert parse([script], {"SBATCH_PARTITION": "gpu"}).fixed == "partition gpu was asked for"


@pytest.mark.parametrize(
    "arguments",
    [
        ["-pgpu"],
        ["-p", "gpu"],
        ["--partition", "gpu"],
        ["--partition=gpu"],
        ["--part=gpu"],
        ["-Hpgpu"],
        ["-N2", "--exclusive", "-p", "gpu"],
        ["--nice", "--hold", "-Qp", "gpu"],
        ["-J", "--partition=not-me", "-p", "gpu"],
    ],
)
def test_a_partition_is_found_however_it_is_written(arguments: list[str], script: str) -> None:
    assert parse([*arguments, script], {}).options["partition"] == "gpu"


@pytest.mark.parametrize("option", ["-wcpu1", "--reservation=x", "-Mother", "--nodefile=f"])
def test_places_by_name_fix_a_job(option: str, script: str) -> None:
    assert parse([option, script], {}).fixed is not None


def test_heterogeneous_jobs_are_recognised(tmp_path: Path) -> None:
    assert parse(["-n1", ":", "-n2", "--wrap=x"], {}).fixed == "the job is heterogeneous"
    (tmp_path / "het.sh").write_text("#!/bin/sh\n#SBATCH -n1\n#SBATCH hetjob\n#SBATCH -n2\n./x\n")
    assert parse([str(tmp_path / "het.sh")], {}).fixed == "the job is heterogeneous"


def test_the_script_may_come_from_standard_input_or_from_wrap() -> None:
    assert parse(["-N2"], {}).takes_stdin
    submission = parse(["-N2"], {}, b"#!/bin/sh\n#SBATCH -J piped\n./x\n")
    assert (submission.job_name, submission.script.splitlines()[-1]) == ("piped", "./x")
    wrapped = parse(["--wrap", "srun ./x"], {})
    assert (wrapped.job_name, wrapped.named("ann").apps, wrapped.takes_stdin) == ("wrap", ("x",), False)


@pytest.mark.parametrize("option", ["--help", "-h", "--usage", "--vers", "-V", "-vV"])
def test_what_sbatch_answers_at_once_waits_for_no_script(option: str) -> None:
    assert not parse([option], {}).takes_stdin


def test_what_is_wrong_is_left_for_sbatch_to_say() -> None:
    for arguments in (["no-such-file"], ["-N", "many", "x"], ["-J"], ["--unknown", "x"], ["-t", "soon", "x"], ["--"]):
        submission = parse(arguments, {})
        assert (submission.nodes, submission.limit_s) == (1, None)


def test_the_options_that_take_a_value_are_those_of_sbatch(slurm: Cluster) -> None:
    """sbatch complains of a missing value where a long option that needs one stands last."""
    need("sbatch")
    for option in sorted(_VALUED):
        printed = slurm.run("sbatch", f"--{option}").stderr
        assert "requires an argument" in printed, option
    for option in sorted(_FLAGS - {"help", "usage", "version"}):
        printed = slurm.run("sbatch", f"--{option}", "--no-such-option").stderr
        assert "requires an argument" not in printed, option
        assert "unrecognized option '--no-such-option'" in printed, option


def test_short_options_that_take_a_value_are_those_of_sbatch(slurm: Cluster) -> None:
    for letter in _SHORT_VALUES:
        assert f"option requires an argument -- '{letter}'" in slurm.run("sbatch", f"-{letter}").stderr, letter
