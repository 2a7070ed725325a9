from __future__ import annotations

from pathlib import Path

import click
import polars as pl
import pytest

from crossperf.cli import demo
from crossperf.datasets import testbed
from crossperf.runs.table import read
from tests.cli.test_cli import Crossperf, crossperf

__all__ = ["crossperf"]


def test_the_input_that_the_demo_predicts_is_not_in_the_table_it_learns_from(tmp_path: Path) -> None:
    truth = demo.write_runs(tmp_path / "runs.parquet", tmp_path / "new.jsonl")
    (new,) = read(tmp_path / "new.jsonl").runs()
    learned = read(tmp_path / "runs.parquet").frame
    same = learned.filter((pl.col("app") == new.app) & (pl.col("input") == new.input))
    assert same.height == 0
    assert learned.filter(pl.col("app") == new.app).height > 0
    assert (new.app, new.platform) == (demo.NEW_APP, demo.NEW_PLATFORM)
    assert set(truth) == set(learned["platform"])
    visits = testbed.load().frame.filter(app=new.app, input=new.input, platform=new.platform)["runtime_s"]
    assert new.runtime_s in visits
    assert truth[demo.NEW_PLATFORM] == visits.median()


def test_the_demo_runs_the_commands_that_it_shows(crossperf: Crossperf, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []

    def stand_in(command: click.Command, context: click.Context) -> object:
        if isinstance(command, click.Group) or context.info_name == "demo":
            return invoke(command, context)
        ran.append(context.command_path)
        return None

    invoke = click.Command.invoke
    monkeypatch.setattr(click.Command, "invoke", stand_in)
    done = crossperf("demo")
    assert done.status == 0, done.stderr
    assert ran == [
        "crossperf runs info",
        *["crossperf evaluate"] * 3,
        "crossperf train",
        "crossperf predict",
        "crossperf report",
    ]
    shown = [line.removeprefix("$ ") for line in done.stdout.splitlines() if line.startswith("$ ")]
    assert [line for line, command in zip(shown, ran, strict=True) if not line.startswith(command)] == []
