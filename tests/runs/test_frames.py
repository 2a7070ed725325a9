from __future__ import annotations

import builtins
import sys
from typing import Any

import polars as pl
import pytest

from crossperf import runs
from crossperf.errors import RunsTableError
from crossperf.records import Run
from crossperf.runs import frames, table

COLUMNS: dict[str, list[Any]] = {
    "app": ["a", "a", "b"],
    "input": ["1", "2", "1"],
    "platform": ["p", "p", "q"],
    "runtime_s": [1.5, 2.0, None],
    "status": ["ok", None, "timeout"],
    "repeat": [0, None, 2],
    "counter.x": [1, 2, 3],
    "counter.y": [0.5, None, None],
    "colour": ["red", None, "blue"],
}


@pytest.fixture
def pandas(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Pandas, with pyarrow out of reach whether it is installed or not."""
    pandas = pytest.importorskip("pandas")
    real = builtins.__import__

    def hidden(name: str, *arguments: Any, **others: Any) -> Any:
        if name.partition(".")[0] == "pyarrow":
            raise ImportError("pyarrow is hidden")
        return real(name, *arguments, **others)

    for name in [name for name in sys.modules if name.partition(".")[0] == "pyarrow"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr(builtins, "__import__", hidden)
    return pandas


def expected() -> runs.RunsTable:
    return table.from_frame(pl.DataFrame(COLUMNS))


def test_a_frame_of_pandas_is_read_without_pyarrow(pandas: Any) -> None:
    read = runs.read_runs(pandas.DataFrame(COLUMNS))
    assert read.frame.equals(expected().frame)
    assert read.fingerprint == expected().fingerprint


@pytest.mark.parametrize("kind", ["object", "string", "category"])
def test_the_texts_of_pandas_may_be_of_any_kind(pandas: Any, kind: str) -> None:
    texts = ["app", "input", "platform", "status", "colour"]
    frame = pandas.DataFrame(COLUMNS).astype(dict.fromkeys(texts, kind))
    assert runs.read_runs(frame).frame.equals(expected().frame)


def test_nullable_numbers_texts_of_numbers_and_dates_of_pandas_are_read(pandas: Any) -> None:
    frame = pandas.DataFrame(COLUMNS).astype({"repeat": "Int64", "counter.x": "Int32", "counter.y": "Float64"})
    frame["counter.z"] = ["1", None, " 2.5 "]
    frame["started"] = pandas.to_datetime(["2026-01-02 03:04:05", None, "2026-01-02 00:00:00"])
    read = runs.read_runs(frame).frame
    assert read["counter.z"].to_list() == [1.0, None, 2.5]
    assert read["started"].to_list() == ["2026-01-02 03:04:05", None, "2026-01-02 00:00:00"]
    assert read.select(expected().frame.columns).equals(expected().frame)


def test_a_slice_of_a_frame_with_another_index_is_read_in_its_order(pandas: Any) -> None:
    frame = pandas.DataFrame(COLUMNS).iloc[::-1].set_index(pandas.Index([7, 7, 9]))
    assert runs.read_runs(frame).frame["app"].to_list() == ["b", "a", "a"]


@pytest.mark.parametrize("values", [[True, False, True], [[1], [2], [3]], ["fast", "slow", None]])
def test_a_counter_that_is_no_number_is_one_clear_sentence(pandas: Any, values: list[Any]) -> None:
    with pytest.raises(RunsTableError, match=r"frame: row 1, column 'counter.x': found .*, expected a number"):
        runs.read_runs(pandas.DataFrame({**COLUMNS, "counter.x": values}))


def test_two_columns_of_one_name_are_refused(pandas: Any) -> None:
    frame = pandas.DataFrame([["a", "1", "p", 1.0, 2.0, 3.0]])
    frame.columns = ["app", "input", "platform", "runtime_s", "counter.x", "counter.x"]
    with pytest.raises(RunsTableError, match=r"frame: found the column 'counter.x' more than once"):
        runs.read_runs(frame)


def test_frames_of_polars_eager_and_lazy_and_arrow_streams_are_read() -> None:
    class Stream:
        def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
            return pl.DataFrame(COLUMNS).__arrow_c_stream__(requested_schema)

    for frame in (pl.DataFrame(COLUMNS), pl.LazyFrame(COLUMNS), Stream()):
        assert runs.read_runs(frame).frame.equals(expected().frame)


def test_a_table_of_pyarrow_is_read() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    assert runs.read_runs(pyarrow.table(COLUMNS)).frame.equals(expected().frame)


def test_a_frame_that_fails_to_export_its_columns_is_one_clear_sentence() -> None:
    class Broken:
        def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
            raise ImportError("pyarrow is required\nfor this")

    with pytest.raises(RunsTableError) as caught:
        runs.read_runs(Broken())
    assert str(caught.value).startswith("frame: found a Broken that cannot be read as columns (ImportError: pyarrow")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("source", [None, 7, b"runs.csv"])
def test_what_holds_no_runs_is_refused_by_the_name_of_the_argument(source: Any) -> None:
    with pytest.raises(RunsTableError, match=r"^source: found \w+, expected a path, a runs table") as caught:
        runs.read_runs(source)
    assert caught.value.facts["argument"] == "source"


def test_a_table_and_records_are_sources_too() -> None:
    records = [Run("a", "1", "p", 1.0, counters={"x": 1.0})]
    read = runs.read_runs(records)
    assert runs.read_runs(read) is read
    assert runs.read_runs(iter(records)).fingerprint == runs.read_runs(records[0]).fingerprint == read.fingerprint
    assert runs.read_runs(records[0].to_json()).runs() == records


def test_to_frame_gives_pandas_without_pyarrow_and_comes_back_as_it_was(pandas: Any) -> None:
    frame = expected().to_frame()
    assert isinstance(frame, pandas.DataFrame)
    assert frame["repeat"].tolist() == [0, pandas.NA, 2]
    assert frame["runtime_s"].isna().tolist() == [False, False, True]
    assert runs.read_runs(frame).frame.equals(expected().frame)


def test_to_frame_gives_polars_where_pandas_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    frame = frames.to_frame({"a": [1, None], "b": ["x", None]})
    assert isinstance(frame, pl.DataFrame)
    assert frame.rows() == [(1, "x"), (None, None)]
