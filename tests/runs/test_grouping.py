"""Cells, visits and exact medians: the same numbers from memory and from files, as plain Python works them out."""

from __future__ import annotations

import random
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import polars as pl
import pytest

from crossperf import dataset, runs
from crossperf.dataset.measured import measured_table
from crossperf.datasets import toy
from crossperf.plain import to_json
from crossperf.records import Run
from crossperf.runs import formats, grouping, raw
from crossperf.runs.index import Coded
from crossperf.runs.table import RunsTable, from_runs


@pytest.fixture
def from_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every table be too large for memory, and be grouped a few cells at a time."""
    monkeypatch.setattr(raw, "HELD_BYTES", 0)
    monkeypatch.setattr(formats, "HELD_BYTES", 0)
    monkeypatch.setattr(formats, "_LINES_AT_ONCE", 7)
    monkeypatch.setattr(formats, "_PIECES_AT_ONCE", 2)
    monkeypatch.setattr(grouping, "_AT_ONCE", 11)


def scattered(seed: int = 1) -> list[Run]:
    """Return runs in random order: odd and even numbers of repeats, visits, failures, gaps in counters and events."""
    rng = random.Random(seed)  # noqa: S311
    made = []
    for app in ("b", "a", "ä"):
        for input_ in ("", "2", "10"):
            for platform in ("q", "p"):
                for repeat in range(rng.randint(1, 6)):
                    counters = {"instructions": rng.lognormvariate(20, 2), "x": rng.choice([None, rng.random()])}
                    made.append(
                        Run(
                            app,
                            input_,
                            platform,
                            rng.lognormvariate(0, 1),
                            platform_class={"p": "cpu", "q": "gpu"}[platform],
                            repeat=rng.choice([repeat, None]),
                            status=rng.choice(["ok", "ok", "ok", "timeout"]),
                            measured_in=rng.choice([None, "round 1", "round 2"]),
                            runnable="cpu gpu" if app == "a" else None,
                            counters=counters,
                            metadata={"events": {"t": {"e": rng.choice([1, 2, 3.5])}}},
                        )
                    )
    made += [Run("c", "1", p, 2.0, counters={"instructions": 1.0}) for p in "pq"]
    rng.shuffle(made)
    return made


def same(first: RunsTable, second: RunsTable) -> None:
    """Check that two tables give the same dataset and the same facts, bit for bit."""
    assert first.fingerprint == second.fingerprint
    facts = [to_json(runs.info(table)) | {"path": ""} for table in (first, second)]
    assert facts[0] == facts[1]
    one_, other = dataset.build(first), dataset.build(second)
    assert (one_.workloads, one_.runnable_w, one_.X.columns) == (other.workloads, other.runnable_w, other.X.columns)
    for name in ("log_time_wp", "log_time_halves_hwp", "workload_n", "source_n"):
        np.testing.assert_array_equal(getattr(one_, name), getattr(other, name))
    np.testing.assert_array_equal(one_.X.values_nf, other.X.values_nf)


@pytest.mark.parametrize("kind", ["parquet", "csv", "jsonl", "jsonl.gz", "csv.gz"])
def test_a_table_in_files_gives_the_numbers_of_the_same_table_in_memory(
    tmp_path: Path, kind: str, request: pytest.FixtureRequest
) -> None:
    held = from_runs(scattered())
    assert held.columns.raw.is_held
    held.write(tmp_path / f"runs.{kind}")
    expected = from_runs(scattered())
    same(expected, runs.read(tmp_path / f"runs.{kind}"))
    request.getfixturevalue("from_files")
    streamed = runs.read(tmp_path / f"runs.{kind}")
    assert not streamed.columns.raw.is_held
    same(expected, streamed)


def about(value: float) -> Any:
    """Return a number but for its last bit: Python halves a sum, and Polars adds half of a difference."""
    return pytest.approx(value, rel=3e-16)


@pytest.mark.usefixtures("from_files")
@pytest.mark.parametrize("seed", range(4))
def test_medians_from_files_are_those_that_plain_python_works_out(tmp_path: Path, seed: int) -> None:
    made = scattered(seed)
    from_runs(made).write(tmp_path / "runs.parquet")
    measured = measured_table(runs.read(tmp_path / "runs.parquet"))
    cells = list(zip(measured.app_n, measured.input_n, measured.platform_n, strict=True))
    assert cells == sorted({(run.app, run.input, run.platform) for run in made if run.status == "ok"})
    for number, cell in enumerate(cells):
        own = [run for run in made if (run.app, run.input, run.platform) == cell and run.status == "ok"]
        for name in ("instructions", "x"):
            known = [run.counters[name] for run in own if run.counters.get(name) is not None]
            value = measured.values_nc[number, measured.names.index(name)]
            assert value == about(median(known)) if known else np.isnan(value)
        visits: dict[str, list[float]] = {}
        ordered = sorted(own, key=lambda run: (run.repeat is None, run.repeat or 0))
        for place, run in enumerate(ordered):
            visits.setdefault(run.measured_in or f"{place:09d}", []).append(run.runtime_s or 0.0)
        times = [median(visits[name]) for name in sorted(visits)]
        middle = (len(times) + 1) // 2
        assert measured.runtime_s_n[number] == about(median(times))
        earlier, later = measured.runtime_s_halves_hn[:, number]
        assert earlier == about(median(times[:middle]))
        assert later == about(median(times[middle:])) if times[middle:] else np.isnan(later)


@pytest.mark.usefixtures("from_files")
def test_a_platform_alone_and_a_feature_set_are_read_from_files_too(tmp_path: Path) -> None:
    table = toy.make_table(apps=3, inputs=4, seed=2)
    table.write(tmp_path / "runs.parquet")
    chosen = {"platforms": ["gpu-a", "cpu-b"], "features": "table1"}
    held, streamed = dataset.build(table, **chosen), dataset.build(tmp_path / "runs.parquet", **chosen)
    assert streamed.platforms == ("gpu-a", "cpu-b")
    np.testing.assert_array_equal(held.X.values_nf, streamed.X.values_nf)
    np.testing.assert_array_equal(held.y, streamed.y)


def test_texts_become_numbers_in_their_order() -> None:
    coded = Coded.of(pl.Series(["b", "ä", None, "a", "b"]))
    assert coded.texts.to_list() == [None, "a", "b", "ä"]
    assert coded.code_r.tolist() == [2, 3, 0, 1, 2]
    assert (coded.number_of("b"), coded.number_of(None), coded.number_of("z")) == (2, 0, None)


@pytest.mark.parametrize("values", [[1.5, None, float("nan"), 4.0], [3, None, 1, 2], [None, None, None, None]])
def test_medians_of_one_value_each_are_those_of_a_query(values: list[float | None]) -> None:
    once = np.arange(7, 11, dtype=np.uint32)
    twice = np.repeat(once, 2)
    column = pl.Series(values, dtype=None if any(values) else pl.Float64)
    repeated = column.gather(pl.Series(twice - 7))
    alone = grouping._medians(once, column, range(7, 11))
    np.testing.assert_array_equal(alone, grouping._medians(twice, repeated, range(7, 11)))
    assert alone.flags.writeable
