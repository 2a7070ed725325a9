from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from crossperf.dataset import build
from crossperf.records import Run
from crossperf.runs import table

Csv = Callable[..., Path]


def test_a_fingerprint_changes_with_any_value_that_can_change_an_answer(csv: Csv) -> None:
    header = "app,input,platform,runtime_s,status,host,counter.x"
    lines = ["a,1,p,1.0,ok,h,5"]
    changes = ["b,1,p,1.0,ok,h,5", "a,1,p,1.1,ok,h,5", "a,1,p,1.0,oom,h,5", "a,1,p,1.0,ok,h,", "a,1,p,1.0,ok,h,0"]
    prints = [table.read(csv(line, header=header)).fingerprint for line in lines + changes]
    assert len(set(prints)) == 1 + len(changes)
    assert table.read(csv("a,1,p,1.0,ok,other,5", header=header)).fingerprint == prints[0]


def test_which_runs_were_one_visit_changes_the_fingerprint_as_it_changes_the_time(csv: Csv) -> None:
    lines = [f"a,1,{platform},{seconds},5" for platform in "pq" for seconds in (1, 1, 1, 2)]
    header = "app,input,platform,runtime_s,counter.x,measured_in"
    apart, together = (
        build(table.read(csv(*(f"{line},{name}" for line, name in zip(lines, names, strict=True)), header=header)))
        for names in (("v1", "v2", "v3", "v4") * 2, ("v1", "v1", "v1", "v2") * 2)
    )
    assert np.exp(apart.log_time_wp).tolist() == [[1.0, 1.0]]
    assert np.exp(together.log_time_wp).tolist() == [[pytest.approx(1.5)] * 2]
    assert apart.table.fingerprint != together.table.fingerprint


def test_a_column_without_any_value_leaves_the_fingerprint_as_it_is(csv: Csv) -> None:
    plain = table.read(csv("a,1,p,1.0,5"))
    wide = table.read(
        csv("a,1,p,1.0,5,,", header="app,input,platform,runtime_s,counter.instructions,platform_class,repeat")
    )
    assert wide.fingerprint == plain.fingerprint


def test_failed_runs_are_kept_and_counted_and_their_values_are_not_judged(csv: Csv) -> None:
    header = "app,input,platform,runtime_s,counter.instructions,status"
    read = table.read(csv("a,1,p,1,5,ok", "a,1,p,,,timeout", "a,1,p,-1,x,oom", "a,2,p,2,6,", header=header))
    assert (read.frame.height, read.n_failed, read.succeeded.height) == (4, 2, 2)
    assert read.frame["status"].to_list() == ["ok", "timeout", "oom", "ok"]


def test_what_else_a_file_holds_is_kept_and_is_no_counter(csv: Csv) -> None:
    read = table.read(csv("a,1,p,1,5,red", header="app,input,platform,runtime_s,counter.x,colour"))
    assert read.frame["colour"].to_list() == ["red"]
    assert read.counters == ["counter.x"]
    assert read.runs()[0].metadata == {"colour": "red"}


def test_runs_without_a_runtime_are_sound_for_predicting_alone(csv: Csv) -> None:
    path = csv("a,1,p,5", header="app,input,platform,counter.x")
    assert table.read(path, need_runtime=False).frame["runtime_s"].to_list() == [None]
    assert table.check(path, need_runtime=False) == []
    assert [(problem.row, problem.column) for problem in table.check(path)] == [(None, "runtime_s")]


def test_a_table_prints_in_ten_lines_however_wide_it_is() -> None:
    counters = {f"counter_{i}": 1.0 for i in range(300)}
    wide = table.from_runs([Run("a", str(i), f"platform-{i}", 1.0, counters=counters) for i in range(50)], name="wide")
    assert repr(wide).splitlines()[0] == "RunsTable 'wide': 50 runs of 50 workloads on 50 platforms, 300 counters"
    assert len(repr(wide).splitlines()) <= 10
    assert max(map(len, repr(wide).splitlines())) <= 120
    assert len(wide) == 50


def test_a_notebook_shows_the_first_rows_and_escapes_the_name() -> None:
    shown = table.from_runs(
        [Run("<b>", str(i), "p", 1.0, counters={"x": i}) for i in range(50)], name="<i>"
    )._repr_html_()
    assert "<b>" not in shown
    assert "<i>" not in shown
    assert shown.count("&lt;b&gt;") == 5


def test_the_number_of_failed_runs_is_in_the_print() -> None:
    runs = [Run("a", "1", "p", 1.0, counters={"x": 1.0}), Run("a", "1", "p", None, status="oom")]
    assert "2 runs (1 failed)" in repr(table.from_runs(runs))
