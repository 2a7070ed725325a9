"""What the shell offers, asked for as click's own completion scripts ask."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from crossperf import cli
from crossperf.datasets import toy
from crossperf.model import MODELS
from crossperf.platforms import Platform, add
from crossperf.report.figures import FIGURES


def offered(*words: str) -> list[str]:
    """Return what is offered for the last word after the ones before it."""
    complete = ShellComplete(cli.commands, {}, "crossperf", "_CROSSPERF_COMPLETE")
    return [item.value for item in complete.get_completions(list(words[:-1]), words[-1])]


def test_commands_are_completed() -> None:
    assert offered("pr") == ["profile", "predict"]
    assert offered("runs", "") == ["append", "check", "compare", "convert", "info", "rename"]


def test_models_are_completed_alone_and_in_a_list() -> None:
    assert offered("train", "t.csv", "--model", "") == sorted(MODELS)
    assert offered("evaluate", "t.csv", "--models", "ri") == ["ridge"]
    assert offered("evaluate", "t.csv", "--models", "ridge,cr") == ["ridge,crossperf"]
    assert "ridge,ridge" not in offered("evaluate", "t.csv", "--models", "ridge,")


def test_figures_and_formats_are_completed() -> None:
    assert offered("plot", "") == sorted(FIGURES)
    assert {"auto", "perf", "caliper"} <= set(offered("import", ""))
    assert offered("import", "hp") == ["hpctoolkit"]


def test_policies_are_completed() -> None:
    assert "turnaround" in offered("schedule", "simulate", "--policy", "")
    assert offered("schedule", "simulate", "--policy", "turnaround,cons") == ["turnaround,considerate"]
    assert offered("slurm", "table", "--policy", "turn") == ["turnaround"]


def test_platforms_that_are_kept_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert offered("platforms", "show", "") == []
    (tmp_path / "crossperf").mkdir()
    for path, name in ((tmp_path / "crossperf" / "platforms.json", "epyc-2"), (tmp_path / "mine.json", "h200")):
        add(path, Platform(name, "cpu"))
    assert offered("platforms", "compare", "") == offered("profile", "--platform", "ep") == ["epyc-2"]
    assert offered("platforms", "--file", str(tmp_path / "mine.json"), "show", "") == ["h200"]


def test_the_platforms_of_a_model_and_of_a_table_are_completed(tmp_path: Path) -> None:
    (tmp_path / "model.json").write_text(json.dumps({"platforms": ["cpu-a", "gpu-b"]}))
    assert offered("predict", str(tmp_path), "--relative-to", "") == ["cpu-a", "fastest", "gpu-b", "slowest", "source"]
    assert offered("predict", str(tmp_path), "--explain-platform", "g") == ["gpu-b"]
    toy.make_table(apps=2, inputs=2, platforms=3, seed=1).write(tmp_path / "runs.csv")
    assert offered("train", str(tmp_path / "runs.csv"), "--platforms", "cpu-a,") == ["cpu-a,cpu-b", "cpu-a,gpu-a"]


def test_what_cannot_be_read_offers_nothing() -> None:
    assert offered("predict", "gone", "--explain-platform", "") == []
    assert offered("train", "gone.csv", "--platforms", "") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_source_that_switches_completion_on_is_printed(shell: str) -> None:
    environment = {**os.environ, "_CROSSPERF_COMPLETE": f"{shell}_source"}
    command = [sys.executable, "-m", "crossperf"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert "_CROSSPERF_COMPLETE" in done.stdout
    assert "crossperf" in done.stdout
