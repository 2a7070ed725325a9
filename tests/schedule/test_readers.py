from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from crossperf.errors import SettingsError
from crossperf.records import Run
from crossperf.runs.table import from_runs as table_of
from crossperf.schedule.machines import Machines
from crossperf.schedule.readers import from_runs, read_machines, read_maintenance, read_times
from crossperf.schedule.rules import Maintenance
from crossperf.schedule.times import ScheduleTableError
from tests.schedule.worlds import times

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
    medians = from_runs(table)
    assert medians.workloads == (("x", "n"), ("y", "n"))
    np.testing.assert_allclose(medians.relative_wm, [[1.0, 0.5], [1.0, np.nan]])
    assert "1 workloads" in medians.notes[0]
    assert from_runs(table, reference="b").workloads == (("x", "n"), ("z", "n"))
    with pytest.raises(SettingsError, match="expected a platform of"):
        from_runs(table, reference="c")


# Tables that cannot be used: what is in the file, and what the sentence must name.
BAD_TIMES = {
    "negative.csv": ("app,input,a\nx,n,-1\n", "row 2, column 'a': found '-1', expected a number from 1e-12 to 1e+12"),
    "word.csv": ("app,input,a\nx,n,fast\n", "found 'fast'"),
    "twice.csv": ("app,input,a\nx,n,1\nx,n,2\n", "row 3: found 'x n' a second time"),
    "columns.csv": ("program,a\nx,1\n", "expected 'app' and 'input'"),
    "ragged.csv": ("app,input,a\nx,n\n", "row 2: found 2 cells, expected 3"),
    "same.csv": ("app,input,a,a\nx,n,1,2\n", "the column 'a' more than once"),
    "empty.csv": ("", "found no rows"),
    "broken.json": ("{", "does not read as a table of times"),
    "cells.json": ('{"cells": "speedup", "modes": ["a"], "workloads": []}', "cells of 'speedup'"),
    "tiny.csv": ("app,input,a\nx,n,5e-324\n", "row 2, column 'a': found '5e-324'"),
    "huge.csv": ("app,input,a\nx,n,1e300\n", "row 2, column 'a': found '1e300'"),
    "nan.csv": ("app,input,a\nx,n,nan\n", "row 2, column 'a': found 'nan'"),
    **{
        f"{name}.json": (
            '{"modes": ["a"], "workloads": [{"app": "x", "input": "n", "times": {"a": ' + cell + "}}]}",
            words,
        )
        for name, cell, words in (
            ("zero", "0", "a relative time of 0 for 'x n' in 'a'"),
            ("tiny", "5e-324", "a relative time of 4.94066e-324 for 'x n'"),
            ("negative", "-1", "a relative time of -1"),
            ("nan", "NaN", "NaN is no number of JSON"),
            ("infinite", "1e999", "a relative time of inf"),
            ("text", '"1"', "found '1' in 'a', expected a number"),
            ("null", "null", "found None in 'a', expected a number"),
            ("yes", "true", "found True in 'a', expected a number"),
            ("digits", "1" + "0" * 400, "does not read as a table of times"),
        )
    },
    "low.json": (
        '{"modes": ["a"], "workloads": [{"app": "x", "input": "n", "times": {"a": 1}, "low": {"a": -1}}]}',
        "a relative low end of -1 for 'x n'",
    ),
}


@pytest.mark.parametrize("name", BAD_TIMES)
def test_a_table_that_cannot_be_used_raises_one_sentence(name: str, write: Write) -> None:
    text, words = BAD_TIMES[name]
    with pytest.raises(ScheduleTableError) as caught:
        read_times(write(name, text))
    assert name in str(caught.value)
    assert words in str(caught.value)


BAD_MACHINES = {
    "columns.csv": ("name,nodes\na,1\n", "expected 'machine' and 'size'"),
    "zero.csv": ("machine,size\na,0\n", "found '0' nodes"),
    "word.csv": ("machine,size\na,many\n", "found 'many' nodes"),
    "twice.csv": ("machine,size\na,1\na,2\n", "found the machine 'a'"),
    "price.csv": ("machine,size,price_per_node_hour\na,1,-3\n", "price of '-3'"),
    "power.csv": ("machine,size,power_w\na,1,much\n", "found a power_w of 'much', expected 0 or more"),
}


@pytest.mark.parametrize("name", BAD_MACHINES)
def test_machines_that_cannot_be_used_raise_one_sentence(name: str, write: Write) -> None:
    text, words = BAD_MACHINES[name]
    with pytest.raises(ScheduleTableError) as caught:
        read_machines(write(name, text))
    assert words in str(caught.value)


def test_machines_come_with_nodes_and_prices(write: Write) -> None:
    machines = read_machines(
        write("m.csv", "#machine,size,GPU,price_per_node_hour\ndane,256,CPU-only,1.5\ntioga,30,x,\n")
    )
    assert machines == Machines(("dane", "tioga"), (256, 30), (1.5, 0.0))


def test_machines_come_with_power_and_memory(write: Write) -> None:
    machines = read_machines(write("m.csv", "machine,size,power_w,idle_w,memory_gb\na,2,500,80,256\nb,1,,,\n"))
    assert (machines.power_w, machines.idle_w, machines.memory_gb) == ((500, 0), (80, 0), (256, 0))


def test_nodes_by_platform_are_a_column_of_the_truth_and_survive_json(write: Write) -> None:
    table = read_times(write("t.csv", "app,input,cpu,gpu,gpu:nodes\nx,n,1.0,0.5,0.125\ny,n,1.0,0.5,\n"))
    assert table.modes == ("cpu", "gpu")
    assert table.nodes_wm is not None
    np.testing.assert_array_equal(table.nodes_wm, [[1.0, 0.125], [1.0, 1.0]])
    back = read_times(write("t.json", json.dumps(table.to_json())))
    assert back.nodes_wm is not None
    np.testing.assert_array_equal(back.nodes_wm, table.nodes_wm)
    with pytest.raises(ScheduleTableError, match="column 'gpu:nodes': found '0'"):
        read_times(write("u.csv", "app,input,gpu,gpu:nodes\nx,n,1.0,0\n"))


def test_planned_outages_are_read_or_refused_in_one_sentence(write: Write) -> None:
    windows = read_maintenance(write("m.csv", "machine,start_s,end_s,nodes\na,10,20,3\nb,0,5,\n"))
    assert windows == (Maintenance("a", 10.0, 20.0, 3), Maintenance("b", 0.0, 5.0, None))
    bad = {
        "machine,start_s\na,1\n": "expected 'machine', 'start_s', 'end_s'",
        "machine,start_s,end_s\na,1,soon\n": "row 2: found a cell that is no number",
        "machine,start_s,end_s\na,9,1\n": "row 2: found 9 s to 1 s",
    }
    for text, words in bad.items():
        with pytest.raises(ScheduleTableError, match=words):
            read_maintenance(write("b.csv", text))
