"""What `crossperf slurm setup` writes, and what it never overwrites."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_cli import Crossperf, assert_one_sentence, contents, crossperf
from tests.schedule.slurm.cluster import Cluster

__all__ = ["crossperf"]

PARTITIONS = ("--partitions", "cpu=epyc-2,big=genoa,gpu=h200")


def test_a_site_gets_its_files_and_words_on_what_to_do(crossperf: Crossperf, no_slurm: None) -> None:
    done = crossperf("slurm", "setup", "-o", "etc", *PARTITIONS)
    assert done.status == 0
    assert set(contents(Path("etc"))) == {"job_submit.lua", "crossperf.lua", "crossperf-partitions.json"}
    assert "JobSubmitPlugins=lua" in done.stdout
    assert "scontrol reconfigure" in done.stdout
    assert json.loads(Path("etc/crossperf-partitions.json").read_text())["default"] == "cpu"
    assert "cannot be reached" in done.stderr
    assert done.stderr.count("warning:") == 1


def test_the_same_again_changes_nothing_and_another_content_is_never_overwritten_unasked(
    crossperf: Crossperf, no_slurm: None
) -> None:
    crossperf("slurm", "setup", "-o", "etc", *PARTITIONS)
    before = contents(Path("etc"))
    assert "holds the same files already" in crossperf("slurm", "setup", "-o", "etc", *PARTITIONS).stderr
    Path("etc/job_submit.lua").write_text("-- the site's own\n")
    done = crossperf("slurm", "setup", "-o", "etc", "--partitions", "cpu=other")
    assert_one_sentence(done, "exists already with other content", "nothing was written")
    assert contents(Path("etc")) == before | {"job_submit.lua": b"-- the site's own\n"}
    assert crossperf("slurm", "setup", "-o", "etc", *PARTITIONS, "--overwrite").status == 0
    assert contents(Path("etc")) == before


def test_a_site_with_a_plugin_of_its_own_gets_the_lines_to_add(crossperf: Crossperf, no_slurm: None) -> None:
    done = crossperf("slurm", "setup", "-o", "etc", *PARTITIONS, "--module-only")
    assert "job_submit.lua" not in contents(Path("etc"))
    assert "crossperf.place(job_desc, part_list)" in done.stdout


def test_partitions_are_checked_against_the_live_controller(crossperf: Crossperf, slurm: Cluster) -> None:
    done = crossperf("slurm", "setup", "-o", "a", *PARTITIONS)
    assert "warning" not in done.stderr
    done = crossperf("slurm", "setup", "-o", "b", "--partitions", "gpu=h200,cpus=epyc-2,cpu=epyc-2")
    assert "warning: the controller has no partition cpus; it has cpu, big, gpu." in done.stderr
    assert json.loads(Path("b/crossperf-partitions.json").read_text())["default"] == "cpu", "as Slurm has it"
    done = crossperf("slurm", "setup", "-o", "c", "--partitions", "gpu=h200,cpu=epyc-2", "--default", "gpu")
    assert "the default partition of the controller is cpu, not gpu" in done.stderr


@pytest.mark.parametrize("arguments", [(), ("--partitions", "cpu"), ("--partitions", "cpu=a", "--default", "gpu")])
def test_what_is_missing_is_one_sentence_and_nothing_is_written(
    crossperf: Crossperf, no_slurm: None, arguments: tuple[str, ...]
) -> None:
    assert_one_sentence(crossperf("slurm", "setup", "-o", "etc", *arguments), "partition")
    assert not Path("etc").exists()
