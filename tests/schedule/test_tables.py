from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from crossperf.errors import SettingsError
from crossperf.records import Prediction, Run
from crossperf.runs.table import from_runs as table_of
from crossperf.schedule import tables
from crossperf.schedule.tables import Machines, TableError, read_machines, read_times
from tests.schedule.worlds import need_dr_evt, times

Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def to_file(name: str, text: str) -> Path:
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path / name

    return to_file


def test_cells_below_args_are_speedups_and_others_relative_times(write: Write) -> None:
    theirs = read_times(write("t.csv", "App,Args,Ranks,a,b-gpu\namg,-n8,32,2.0,\n"))
    assert theirs.workloads == (("amg", "-n8 ranks=32"),)
    assert theirs.group_w == ("amg 32",)
    assert theirs.relative_wm[0, 0] == 0.5
    assert np.isnan(theirs.relative_wm[0, 1])
    ours = read_times(write("u.csv", "app,input,a,a:low,a:high\namg,n8,2.0,1.5,3.0\n"))
    assert (ours.relative_wm[0, 0], ours.low_wm[0, 0], ours.high_wm[0, 0]) == (2.0, 1.5, 3.0)
    turned = read_times(write("v.csv", "app,input,a,a:low,a:high\namg,n8,2.0,1.0,4.0\n"), cells="speedup")
    assert (turned.relative_wm[0, 0], turned.low_wm[0, 0], turned.high_wm[0, 0]) == (0.5, 0.25, 1.0)


def test_a_table_survives_json(write: Write) -> None:
    table = times(["a", "b"], [1.0, 2.0], [3.0, np.nan])
    back = read_times(write("t.json", json.dumps(table.to_json())))
    assert (back.workloads, back.modes, back.group_w) == (table.workloads, table.modes, table.group_w)
    np.testing.assert_array_equal(back.relative_wm, table.relative_wm)


def test_a_runs_table_gives_the_medians_relative_to_the_platform_measured_most() -> None:
    def run(app: str, platform: str, seconds: float, status: str = "ok") -> Run:
        return Run(app, "n", platform, seconds, status=status, counters={"instructions": 1.0})

    on_a = [run("x", "a", seconds) for seconds in (10.0, 12.0, 30.0)]
    on_b = [run("x", "b", 6.0), run("x", "b", 1.0, "failed")]
    table = table_of([*on_a, *on_b, run("y", "a", 5.0), run("z", "b", 4.0)])
    found = tables.from_runs(table)
    assert found.workloads == (("x", "n"), ("y", "n"))
    np.testing.assert_allclose(found.relative_wm, [[1.0, 0.5], [1.0, np.nan]])
    assert "1 workloads" in found.notes[0]
    assert tables.from_runs(table, reference="b").workloads == (("x", "n"), ("z", "n"))
    with pytest.raises(SettingsError, match="expected a platform of"):
        tables.from_runs(table, reference="c")


def test_the_application_average_is_that_of_the_authors() -> None:
    folder = need_dr_evt()
    truth = read_times(folder / "ground_truth.csv")
    theirs = read_times(folder / "prediction.app_avg.csv")
    there = ~np.isnan(truth.relative_wm)
    ours = tables.app_average(truth)
    # The published truth is rounded to five decimals, the average was taken before.
    np.testing.assert_allclose(ours.relative_wm[there], theirs.relative_wm[there], rtol=1e-5)
    assert (np.isnan(theirs.relative_wm) == ~there).all()


def test_averages_are_worked_out_by_hand() -> None:
    truth = times(["a", "b"], [1.0, 0.5], [0.5, np.nan], [2.0, 1.0], apps=["x", "x", "y"])
    by_app = tables.app_average(truth)
    np.testing.assert_allclose(1 / by_app.relative_wm, [[1.5, 2.0], [1.5, 2.0], [0.5, 1.0]])
    assert (by_app.low_wm[0, 0], by_app.high_wm[0, 0]) == (pytest.approx(0.55), pytest.approx(0.95))
    by_machine = tables.machine_average(truth)
    np.testing.assert_allclose(1 / by_machine.relative_wm, [[3.5 / 3, 1.5]] * 3)
    assert (by_machine.low_wm <= by_machine.relative_wm).all()
    assert (by_machine.high_wm >= by_machine.relative_wm).all()


def test_tables_are_brought_to_the_workloads_they_share() -> None:
    truth, partial = times(["a", "b"], [1, 2], [3, 4], [5, 6]), times(["b"], [9], [8])
    first, second = tables.aligned(truth, partial)
    assert first.workloads == second.workloads == truth.workloads[:2]
    np.testing.assert_array_equal(second.relative_wm, [[np.nan, 9], [np.nan, 8]])
    assert "1 workloads of times have no prediction" in first.notes[0]
    with pytest.raises(TableError, match="found no workload of"):
        tables.aligned(truth, times(["a"], [1], apps=["other"]))


# Tables that cannot be used: what is in the file, and what the sentence must name.
BAD_TIMES = {
    "negative.csv": ("app,input,a\nx,n,-1\n", "row 2, column 'a': found '-1', expected a number above 0"),
    "word.csv": ("app,input,a\nx,n,fast\n", "found 'fast'"),
    "twice.csv": ("app,input,a\nx,n,1\nx,n,2\n", "row 3: found 'x n' a second time"),
    "columns.csv": ("program,a\nx,1\n", "expected 'app' and 'input'"),
    "ragged.csv": ("app,input,a\nx,n\n", "row 2: found 2 cells, expected 3"),
    "same.csv": ("app,input,a,a\nx,n,1,2\n", "the column 'a' more than once"),
    "empty.csv": ("", "found no rows"),
    "broken.json": ("{", "does not read as a table of times"),
    "cells.json": ('{"cells": "speedup", "modes": ["a"], "workloads": []}', "cells of 'speedup'"),
    "zero.json": ('{"modes": ["a"], "workloads": [{"app": "x", "input": "n", "times": {"a": 0}}]}', "times above 0"),
}


@pytest.mark.parametrize("name", BAD_TIMES)
def test_a_table_that_cannot_be_used_is_told_in_a_sentence(name: str, write: Write) -> None:
    text, words = BAD_TIMES[name]
    with pytest.raises(TableError) as caught:
        read_times(write(name, text))
    assert name in str(caught.value)
    assert words in str(caught.value)


BAD_MACHINES = {
    "columns.csv": ("name,nodes\na,1\n", "expected 'machine' and 'size'"),
    "zero.csv": ("machine,size\na,0\n", "found '0' nodes"),
    "word.csv": ("machine,size\na,many\n", "found 'many' nodes"),
    "twice.csv": ("machine,size\na,1\na,2\n", "found the machine 'a'"),
    "price.csv": ("machine,size,price_per_node_hour\na,1,-3\n", "price of '-3'"),
}


@pytest.mark.parametrize("name", BAD_MACHINES)
def test_machines_that_cannot_be_used_are_told_in_a_sentence(name: str, write: Write) -> None:
    text, words = BAD_MACHINES[name]
    with pytest.raises(TableError) as caught:
        read_machines(write(name, text))
    assert words in str(caught.value)


def test_machines_come_with_nodes_and_prices(write: Write) -> None:
    machines = read_machines(
        write("m.csv", "#machine,size,GPU,price_per_node_hour\ndane,256,CPU-only,1.5\ntioga,30,x,\n")
    )
    assert machines == Machines(("dane", "tioga"), (256, 30), (1.5, 0.0))


def test_a_mode_belongs_to_the_longest_name_that_it_begins_with() -> None:
    machines = Machines.of({"a": 1, "a-b": 1})
    assert [machines.cluster_of(mode) for mode in ("a", "a-cpu", "a-b", "a-b-gpu", "ab")] == [0, 0, 1, 1, None]
    assert machines.clusters_of(["a-x", "zebra"]).tolist() == [0, -1]
    with pytest.raises(TableError, match="expected at least one that is named as a machine"):
        machines.clusters_of(["zebra"])


def test_predictions_take_the_scale_of_what_was_measured_on_their_source() -> None:
    truth = tables.RelativeTimes.of(
        [("a", "1"), ("a", "2")], ["p", "q", "r"], np.array([[2.0, 3.0, 4.0], [1.0, 1.0, 1.0]])
    )
    said = Prediction("a", "1", "p", "source", {"p": 1.0, "q": 5.0}, low={"q": 4.0}, high={"q": 7.0})
    stranger = Prediction("b", "1", "p", "source", {"p": 1.0, "q": 9.0})
    found = tables.from_predictions([said, stranger], truth, "p", name="m")
    # a 1 takes 2 on p, so 5 times as long on q is 10, between 8 and 14; nothing is said of r.
    assert found.workloads == (("a", "1"),)
    np.testing.assert_array_equal(found.relative_wm, [[2.0, 10.0, np.nan]])
    np.testing.assert_array_equal(found.low_wm, [[2.0, 8.0, np.nan]])
    np.testing.assert_array_equal(found.high_wm, [[2.0, 14.0, np.nan]])
