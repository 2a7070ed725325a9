from __future__ import annotations

from pathlib import Path

import polars as pl

from crossperf.cli import demo
from crossperf.runs.table import read


def test_the_input_that_the_demo_predicts_is_not_in_the_table_it_learns_from(tmp_path: Path) -> None:
    truth = demo.write_runs(tmp_path / "runs.parquet", tmp_path / "new.jsonl")
    (new,) = read(tmp_path / "new.jsonl").runs()
    learned = read(tmp_path / "runs.parquet").frame
    same = learned.filter((pl.col("app") == new.app) & (pl.col("input") == new.input))
    assert same.height == 0
    assert learned.filter(pl.col("app") == new.app).height > 0
    assert (new.app, new.platform) == (demo.NEW_APP, demo.NEW_PLATFORM)
    assert set(truth) == set(learned["platform"])
    assert truth[demo.NEW_PLATFORM] == new.runtime_s
