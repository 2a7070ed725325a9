"""Raw events of runs as named numbers."""

from __future__ import annotations

import json

import polars as pl
import pytest

from crossperf.records import Run
from crossperf.runs.events import distinct_events, events_of
from crossperf.runs.table import from_runs


def test_events_keep_their_tool_and_their_own_name() -> None:
    recorded = {"valgrind": {"Ir": 5, "note": "text", "sure": True, "lost": None}, "qemu": {"qemu.loads": 2.5}}
    assert events_of(recorded) == {"event.valgrind.Ir": 5.0, "event.qemu.loads": 2.5}
    assert events_of(json.dumps(recorded)) == events_of(recorded)


@pytest.mark.parametrize("recorded", [None, "", "{", "[1]", "7", '{"perf": 3}', {"perf": {"x": float("nan")}}])
def test_what_holds_no_events_gives_none(recorded: object) -> None:
    assert events_of(recorded) == {}


def test_each_different_text_is_read_once() -> None:
    texts = ['{"a": {"x": 1, "y": 2}}', None, '{"a": {"x": 3}}', '{"a": {"x": 1, "y": 2}}']
    frame = distinct_events(pl.Series("events", texts))
    assert frame.columns == ["events", "event.a.x", "event.a.y"]
    assert frame.drop("events").rows() == [(1.0, 2.0), (3.0, None)]


def test_a_table_without_events_has_no_column_of_them() -> None:
    assert from_runs([Run("a", "1", "p", 1.0, counters={"x": 1.0})]).events.columns == ["events"]


def test_other_events_are_another_fingerprint() -> None:
    tables = [
        from_runs([Run("a", "1", "p", 1.0, counters={"x": 1.0}, metadata={"events": {"perf": {"cycles": cycles}}})])
        for cycles in (1.0, 1.0, 2.0)
    ]
    assert tables[0].fingerprint == tables[1].fingerprint != tables[2].fingerprint
