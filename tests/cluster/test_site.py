from __future__ import annotations

from pathlib import Path

import pytest

from crossperf import cluster
from crossperf.cluster import Allocation, SiteFileError

SITE = """
folder = "shared"
poll_s = 2

[defaults]
account = "bio"
time = "30"

[platforms.epyc]
partition = "cpu"
cpus = 16
exclusive = true
launcher = "srun -n 4"
setup = ["module load gcc"]

[platforms.h200]
partition = "gpu"
gres = "gpu:1"
account = "ai"
at_once = 2
options = { reservation = "night" }

[workers]
partition = "cpu"
cpus = 1
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "site.toml"
    path.write_text(text)
    return path


def test_a_site_has_for_each_platform_what_a_job_asks_for_and_defaults_fill_up(tmp_path: Path) -> None:
    site = cluster.read(write(tmp_path, SITE))
    assert site.folder == tmp_path / "shared"
    assert site.poll_s == 2.0
    epyc, h200 = site.allocation("epyc"), site.allocation("h200")
    assert (epyc.account, h200.account) == ("bio", "ai")
    assert epyc.launcher == ("srun", "-n", "4")
    assert epyc.limit_s == 1800.0
    assert h200.sbatch() == {
        "partition": "gpu", "nodes": "1", "time": "30", "requeue": True, "gres": "gpu:1", "account": "ai",
        "reservation": "night",
    }  # fmt: skip
    assert site.for_workers() == Allocation("cpu", cpus=1, account="bio", time="30")


def test_a_job_is_told_in_time_of_its_limit(tmp_path: Path) -> None:
    assert Allocation("cpu", time="8:00:00").warning_s == 90
    assert Allocation("cpu", time="2").warning_s == 30
    assert Allocation("cpu", time="UNLIMITED").warning_s == 90
    assert Allocation("cpu", time="2", warn_s=60).warning_s == 60


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (('partition = "gpu"\n', ""), r"\[platforms.h200\] has no partition"),
        (("cpus = 16", "cpus = 0"), r"\[platforms.epyc\] cpus: found 0, expected 1 to 1e\+06"),
        (("cpus = 16", "cpu = 16"), r"\[platforms.epyc\] 'cpu' is no setting \(did you mean 'cpus'\?\)"),
        (('"cpu"\ncpus = 16', '"c pu"\ncpus = 16'), "partition is 'c pu', expected a word without blanks"),
        (('time = "30"', 'time = "soon"'), "time is 'soon', expected a limit as Slurm has it"),
        (('time = "30"', 'time = "0"'), "time is '0', expected a limit as Slurm has it"),
        (("poll_s = 2", "poll_s = 0"), "poll_s is 0, expected seconds"),
        (('folder = "shared"', "folder = 3"), "folder is 3, expected the path of a folder"),
        (('reservation = "night"', 'partition = "x"'), "options names 'partition', which another setting"),
        (('reservation = "night"', 'reservation = "a b"'), "reservation = 'a b', expected a long option"),
        (("exclusive = true", "exclusive = 1"), "exclusive: found 1, expected true or false"),
        (
            ('setup = ["module load gcc"]', 'setup = "module load gcc"'),
            "setup: found 'module load gcc', expected a list",
        ),
        (("[defaults]", "[default]"), r"'default' is no setting of a site \(did you mean 'defaults'\?\)"),
        (("[workers]", "workers = 3\n[other]"), "is not TOML|'other' is no setting"),
        (("[platforms.epyc]", "[platforms.epyc"), "is not TOML"),
    ],
)
def test_a_bad_site_is_refused_with_what_is_wrong(tmp_path: Path, change: tuple[str, str], sentence: str) -> None:
    assert change[0] in SITE
    with pytest.raises(SiteFileError, match=sentence):
        cluster.read(write(tmp_path, SITE.replace(*change)))


def test_all_problems_of_a_site_are_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(SiteFileError) as caught:
        cluster.read(write(tmp_path, SITE.replace("cpus = 16", "cpus = -1").replace("at_once = 2", "at_once = 'x'")))
    assert len(caught.value.facts["problems"]) == 2


def test_a_platform_or_workers_that_a_site_does_not_have_are_named(tmp_path: Path) -> None:
    site = cluster.read(write(tmp_path, '[platforms.epyc]\npartition = "cpu"\n'))
    with pytest.raises(SiteFileError, match=r"no platform 'epic' \(did you mean 'epyc'\?\).*\[platforms.epic\]"):
        site.allocation("epic")
    with pytest.raises(SiteFileError, match=r"no table \[workers\]"):
        site.for_workers()
    with pytest.raises(SiteFileError, match=r"no platforms, expected at least one table"):
        cluster.read(write(tmp_path, "poll_s = 5\n"))
    with pytest.raises(SiteFileError, match="cannot be read"):
        cluster.read(tmp_path / "none.toml")
