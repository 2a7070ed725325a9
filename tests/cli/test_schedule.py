"""Simulating schedules from the command line: what it says, what it writes, and one sentence for what goes wrong."""

from __future__ import annotations

import json
import time
from pathlib import Path

import polars as pl
import pytest

from crossperf import model
from crossperf.datasets import toy
from crossperf.runs.table import from_frame
from crossperf.schedule import policies
from crossperf.schedule.traces.swf import write_swf
from tests.cli.test_cli import Crossperf, Done, assert_one_sentence, contents, crossperf
from tests.schedule.worlds import need_dr_evt, random_jobs

__all__ = ["crossperf"]  # the fixture that runs the command line

TIMES = """app,input,slow,fast-cpu,fast-gpu
x,small,1.0,0.8,0.1
x,large,1.0,0.7,0.05
y,small,1.0,0.9,
y,large,1.0,0.5,
"""
MACHINES = "machine,size,price_per_node_hour\nslow,32,1.0\nfast,8,4.0\n"


@pytest.fixture
def world(tmp_path: Path) -> list[str]:
    """The options that name a truth, machines and jobs."""
    (tmp_path / "times.csv").write_text(TIMES)
    (tmp_path / "machines.csv").write_text(MACHINES)
    return ["schedule", "simulate", "--truth", "times.csv", "--machines", "machines.csv"]


def test_policies_stand_side_by_side_and_the_json_tells_all(crossperf: Crossperf, world: list[str]) -> None:
    done = crossperf(*world, "--jobs", "300", "--policy", "random,considerate", "--json", "out.json")
    assert done.status == 0, done.stderr
    assert "300 jobs drawn with seed 0 on 2 clusters of 40 nodes" in done.stdout
    for word in ("random", "considerate", "turnaround", "slowdown", "makespan", "cost", "slow", "fast"):
        assert word in done.stdout
    assert "wrote out.json" in done.stderr
    facts = json.loads(Path("out.json").read_text())
    assert [each["policy"] for each in facts["simulations"]] == ["random", "considerate"]
    first = facts["simulations"][0]
    assert first["counts"]["placed"] + first["counts"]["unplaceable"] == 300
    assert len(first["jobs"]["start_s"]) == 300
    assert set(first["clusters"]) == {"slow", "fast"}


def test_all_policies_run_and_the_same_seed_says_the_same(crossperf: Crossperf, world: list[str]) -> None:
    arguments = [*world, "--jobs", "100", "--policy", ",".join(policies.POLICIES), "--seed", "7", "--deadline", "4"]
    first, second = crossperf(*arguments), crossperf(*arguments)
    assert first.status == 0, first.stderr
    assert first == second
    assert all(name in first.stdout for name in policies.POLICIES)


def test_a_trace_is_simulated_and_what_was_left_out_is_reported(
    crossperf: Crossperf, world: list[str], tmp_path: Path
) -> None:
    write_swf(tmp_path / "trace.swf.gz", random_jobs(1, 80, 40))
    done = crossperf(*world, "--jobs", "trace.swf.gz", "--backfill", "none")
    assert done.status == 0, done.stderr
    assert "trace.swf.gz on 2 clusters" in done.stdout
    lines = ["1 0 -1 -1 4 -1 -1 4 600 -1 5 1 1 1 1 1 -1 -1", "2 5 -1 60 4 -1 -1 4 600 -1 1 1 1 1 1 1 -1 -1"]
    (tmp_path / "few.swf").write_text("\n".join([*lines, lines[1].replace(" 4 ", " 4000 ")]) + "\n")
    done = crossperf(*world, "--jobs", "few.swf")
    assert "few.swf: 1 lines were left out: cancelled before they started." in done.stderr
    assert "1 of 2 jobs could go nowhere: larger than every cluster that can run it." in done.stderr


def test_comparing_gives_intervals_and_says_what_is_real(crossperf: Crossperf, world: list[str]) -> None:
    arguments = [*world, "--jobs", "200", "--policy", "random,turnaround", "--predictions", "ideal,machine-average"]
    done = crossperf(*arguments, "--compare", "--seeds", "6", "--json", "out.json")
    assert done.status == 0, done.stderr
    assert "mean over 6 seeds (0 to 5)" in done.stdout
    assert "differences in mean turnaround are real" in done.stdout
    assert "less than random with ideal" in done.stdout
    assert "simulating: 24/24" in done.stderr
    facts = json.loads(Path("out.json").read_text())
    assert facts["seeds"] == list(range(6))
    assert len(facts["cells"]) == 4
    assert any(each["real"] for each in facts["differences"])


def test_predictions_of_one_name_and_policies_named_twice_are_not_mixed_up(
    crossperf: Crossperf, world: list[str], tmp_path: Path
) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "p.csv").write_text(TIMES if folder == "a" else TIMES.replace("1.0", "9.0"))
    arguments = [*world, "--jobs", "50", "--policy", "fastest,fastest", "--predictions", "a/p.csv,ideal,b/p.csv,ideal"]
    done = crossperf(*arguments, "--compare", "--seeds", "3", "--json", "out.json")
    assert done.status == 0, done.stderr
    cells = json.loads(Path("out.json").read_text())["cells"]
    assert [each["predictor"] for each in cells] == ["a/p.csv", "ideal", "b/p.csv"]
    assert [len(each["metrics"]["mean_turnaround_s"]) for each in cells] == [3, 3, 3]


def test_comparing_tells_what_a_trace_left_out_and_which_jobs_were_ended(
    crossperf: Crossperf, world: list[str], tmp_path: Path
) -> None:
    ran, cancelled = "1 0 -1 60 4 -1 -1 4 60 -1 1 1 1 1 1 1 -1 -1\n", "2 0 -1 -1 4 -1 -1 4 60 -1 5 1 1 1 1 1 -1 -1\n"
    (tmp_path / "t.swf").write_text(ran * 20 + cancelled)
    asked = ("--jobs", "t.swf", "--policy", "fastest", "--predictions", "machine-average", "--limits", "strict")
    done = crossperf(*world, *asked, "--compare", "--seeds", "4")
    assert done.status == 0, done.stderr
    assert "t.swf: 1 lines were left out: cancelled before they started." in done.stderr
    assert "jobs were ended at their limit" in done.stderr


def test_predictors_that_let_different_numbers_of_jobs_run_are_a_doubt(
    crossperf: Crossperf, world: list[str], tmp_path: Path
) -> None:
    (tmp_path / "long.csv").write_text(TIMES.replace("1.0", "100.0").replace("0.", "90."))
    asked = [*world, "--jobs", "50", "--predictions", "ideal,long.csv", "--limits", "strict", "--policy", "fastest"]
    for more in ([], ["--compare", "--seeds", "2"]):
        done = crossperf(*asked, *more)
        assert done.status == 0, done.stderr
        assert "caveat: the predictors let different numbers of jobs run" in done.stderr
    assert "could go nowhere with long.csv: longer than the wall-time limit." in crossperf(*asked).stderr


def test_a_figure_is_drawn_of_few_jobs_and_of_many(crossperf: Crossperf, world: list[str]) -> None:
    for count, name in (("50", "few.svg"), ("500", "many.png")):
        done = crossperf(*world, "--jobs", count, "--policy", "turnaround", "--figure", name)
        assert done.status == 0, done.stderr
        assert f"wrote {name}" in done.stderr
        assert Path(name).stat().st_size > 1000


def test_a_policy_of_ones_own_is_named_by_file_and_function(
    crossperf: Crossperf, world: list[str], tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text("def first(ask, options, rng):\n    return 0\n")
    done = crossperf(*world, "--jobs", "50", "--policy", "mine.py:first", "--json", "out.json")
    assert done.status == 0, done.stderr
    assert json.loads(Path("out.json").read_text())["simulations"][0]["clusters"]["slow"]["jobs"] == 50


def test_strict_limits_end_jobs_and_that_is_a_doubt(crossperf: Crossperf, world: list[str]) -> None:
    done = crossperf(*world, "--jobs", "300", "--predictions", "machine-average", "--limits", "strict")
    assert done.status == 0, done.stderr
    assert "were ended at their limit and count as run until then" in done.stderr


def test_a_model_predicts_from_runs_and_the_truth_is_what_was_measured(crossperf: Crossperf, tmp_path: Path) -> None:
    frame = toy.make_table(apps=8, inputs=3, platforms=3, repeats=2, seed=3).frame
    known, new = frame.filter(pl.col("app") != "app7"), frame.filter(pl.col("app") == "app7")
    model.train(known, "ridge").save(tmp_path / "model")
    for name, rows in (("new.parquet", new), ("all.parquet", frame)):
        from_frame(rows, name=name).write(tmp_path / name)
    names = sorted(frame["platform"].unique())
    (tmp_path / "machines.csv").write_text("machine,size\n" + "".join(f"{name},16\n" for name in names))
    asked = ["schedule", "simulate", "--machines", "machines.csv", "--jobs", "200", "--policy", "turnaround"]
    done = crossperf(
        *asked, "--truth", "new.parquet", "--predictions", "ideal,model", "--runs", "new.parquet", "--json", "o.json"
    )
    assert done.status == 0, done.stderr
    assert "doubt" not in done.stderr
    ideal, predicted = json.loads(Path("o.json").read_text())["simulations"]
    assert (ideal["predictor"], predicted["predictor"]) == ("ideal", "model")
    assert predicted["jobs"]["expected_run_s"] != ideal["jobs"]["expected_run_s"]
    done = crossperf(*asked, "--truth", "all.parquet", "--predictions", "model", "--runs", "all.parquet")
    assert "was trained on 21 of these 24 workloads" in done.stderr
    assert_one_sentence(crossperf(*asked, "--truth", "new.parquet", "--predictions", "model"), "--runs TABLE")
    unknown = ("--predictions", "model", "--runs", "new.parquet", "--source", "nowhere")
    assert_one_sentence(crossperf(*asked, "--truth", "new.parquet", *unknown), "--source", "'nowhere'", names[0])


def test_the_authors_tables_load_as_they_are(crossperf: Crossperf) -> None:
    folder = need_dr_evt()
    tables = ["--truth", folder / "ground_truth.csv", "--machines", folder / "machines.csv"]
    predictions = f"ideal,app-average,{folder / 'prediction.rajaperf.csv'}"
    done = crossperf("schedule", "simulate", *tables, "--jobs", "500", "--predictions", predictions)
    assert done.status == 0, done.stderr
    assert "500 jobs drawn with seed 0 on 5 clusters of 632 nodes" in done.stdout
    assert "prediction.rajaperf.csv" in done.stdout


def refused(crossperf: Crossperf, folder: Path, *arguments: str) -> Done:
    """Run a command that must leave everything as it was."""
    before = contents(folder)
    done = crossperf(*arguments)
    assert contents(folder) == before
    return done


# What is asked for besides the truth and the machines, and what the sentence must name.
BAD = {
    "no-trace": (["--jobs", "none.swf"], ["--jobs", "none.swf", "no such file"]),
    "no-jobs": (["--jobs", "0"], ["--jobs", "expected 1 to 100,000,000"]),
    "line": (["--jobs", "bad.swf"], ["bad.swf, line 2", "found 3 columns, expected 18"]),
    "negative": (["--jobs", "negative.swf"], ["negative.swf: found no job that ran", "1 with a run time below 0"]),
    "policy": (["--jobs", "5", "--policy", "fastst"], ["--policy", "did you mean 'fastest'"]),
    "policy-file": (["--jobs", "5", "--policy", "broken.py:f"], ["--policy", "broken.py", "SyntaxError"]),
    "policy-answer": (["--jobs", "5", "--policy", "mute.py:f"], ["--policy", "mute.py:f answered None"]),
    "predictor": (["--jobs", "5", "--predictions", "idael"], ["--predictions", "did you mean 'ideal'"]),
    "limits": (["--jobs", "5", "--limits", "soft"], ["--limits", "'soft'", "double or strict"]),
    "wall": (["--jobs", "5", "--wall-limit", "0"], ["--wall-limit", "above 0"]),
    "load": (["--jobs", "5", "--utilisation", "0"], ["--utilisation", "above 0"]),
    "cells": (["--jobs", "5", "--cells", "ratio"], ["--cells", "'ratio'"]),
    "figure": (["--jobs", "5", "--figure", "f.gif"], ["f.gif: found the suffix '.gif'", ".svg, .png, .pdf"]),
    "both": (["--jobs", "5", "--figure", "f.png", "--compare"], ["--figure", "--compare"]),
    "seeds": (["--jobs", "5", "--seeds", "3"], ["--seeds", "--compare"]),
    "nothing": (["--jobs", "5", "--policy", ","], ["--policy", "at least one"]),
    "other": (["--jobs", "5", "--predictions", "other.csv"], ["other.csv", "no workload of times.csv"]),
}


@pytest.mark.parametrize("case", BAD)
def test_errors_are_one_sentence_and_leave_nothing_behind(
    case: str, crossperf: Crossperf, world: list[str], tmp_path: Path
) -> None:
    good = "1 0 -1 60 4 -1 -1 4 600 -1 1 1 1 1 1 1 -1 -1\n"
    (tmp_path / "bad.swf").write_text(good + "2 5 -1\n")
    (tmp_path / "negative.swf").write_text(good.replace(" 60 ", " -5 "))
    (tmp_path / "broken.py").write_text("def (\n")
    (tmp_path / "mute.py").write_text("def f(ask, options, rng):\n    pass\n")
    (tmp_path / "other.csv").write_text("app,input,slow\nz,z,1.0\n")
    arguments, words = BAD[case]
    assert_one_sentence(refused(crossperf, tmp_path, *world, *arguments), *words)


def test_a_truth_that_no_machine_knows_and_jobs_that_fit_nowhere_are_reported(
    crossperf: Crossperf, world: list[str], tmp_path: Path
) -> None:
    (tmp_path / "machines.csv").write_text("machine,size\nelsewhere,4\n")
    assert_one_sentence(crossperf(*world, "--jobs", "5"), "times.csv", "elsewhere")
    (tmp_path / "machines.csv").write_text(MACHINES)
    (tmp_path / "huge.swf").write_text("1 0 -1 60 999 -1 -1 999 600 -1 1 1 1 1 1 1 -1 -1\n")
    done = crossperf(*world, "--jobs", "huge.swf", "--json", "out.json")
    assert done.status == 1
    assert "no job can be placed" in done.stderr.splitlines()[-1]
    first = json.loads(Path("out.json").read_text())["simulations"][0]
    assert first["unplaceable"] == {"larger than every cluster that can run it": 1}


SWF = "; MaxProcs: 1,024\n; MaxNodes: 128\n" + "".join(
    f"{i} {10 * i} 0 {60 + i} 8 -1 2048 8 {limit} 4096 1 {i % 3} 1 {i % 2 + 1} {i % 2} -1 {after} {think}\n"
    for i, limit, after, think in ((1, 600, -1, -1), (2, -1, 1, 30), (3, 600, -1, -1), (4, 600, 3, -1))
)


def test_a_trace_says_what_it_tells_and_nobody_uses(crossperf: Crossperf, world: list[str], tmp_path: Path) -> None:
    (tmp_path / "t.swf").write_text(SWF)
    done = crossperf(*world, "--jobs", "t.swf")
    assert done.status == 0, done.stderr
    assert "1 of 4 jobs have no limit" in done.stderr
    assert "clairvoyant" in done.stderr
    assert (
        "note: t.swf: ignored, though the trace tells them: preceding jobs and think times (--feedback jobs), "
        "memory (memory_gb of --machines), queues (--map)." in done.stderr
    )


def test_what_a_trace_tells_is_used_where_it_is_asked_for(
    crossperf: Crossperf, world: list[str], tmp_path: Path
) -> None:
    (tmp_path / "t.swf").write_text(SWF)
    (tmp_path / "machines.csv").write_text("machine,size,memory_gb,power_w\nslow,32,64,400\nfast,8,64,900\n")
    (tmp_path / "map.csv").write_text("queue,app,input,priority\n0,x,small,1\n1,y,large,\n")
    asked = ("--feedback", "jobs", "--map", "map.csv", "--backfill", "conservative", "--ageing-hours", "2")
    done = crossperf(*world, "--jobs", "t.swf", *asked, "--utilisation", "0.5", "--json", "out.json")
    assert done.status == 0, done.stderr
    assert "ignored" not in done.stderr
    assert "2 of 4 jobs arrive after another has ended" in done.stderr
    assert "for a load of 0.5 instead of" in done.stderr
    assert "kWh" in done.stdout
    fates = json.loads(Path("out.json").read_text())["simulations"][0]["jobs"]
    assert fates["submit_s"][1] == pytest.approx(fates["start_s"][0] + fates["run_s"][0] + 30)


def test_jobs_share_nodes_where_processors_are_counted(crossperf: Crossperf, world: list[str], tmp_path: Path) -> None:
    (tmp_path / "t.swf").write_text(SWF)
    done = crossperf(*world, "--jobs", "t.swf", "--share-nodes", "--processors-per-node", "8")
    assert "t.swf on 2 clusters of 320 nodes" in done.stdout
    done = crossperf(*world, "--jobs", "t.swf", "--share-nodes")
    assert_one_sentence(done, "--share-nodes: expected --processors-per-node")


def test_outages_and_failures_are_told(crossperf: Crossperf, world: list[str], tmp_path: Path) -> None:
    (tmp_path / "windows.csv").write_text("machine,start_s,end_s\nslow,1000,90000\n")
    asked = ("--maintenance", "windows.csv", "--node-mtbf-hours", "20", "--policy", "turnaround")
    done = crossperf(*world, "--jobs", "200", *asked)
    assert done.status == 0, done.stderr
    assert "nodes failed under jobs" in done.stderr


OPTIONS = {
    ("--jobs", "50", "--map", "map.csv"): "--map: found with jobs that are drawn",
    ("--jobs", "50", "--feedback", "jobs"): "--feedback: found with jobs that are drawn",
    ("--jobs", "50", "--backfill", "some"): "backfill: found 'some', expected none, easy, shortest or conservative",
    ("--jobs", "50", "--node-mtbf-hours", "1e-320"): "expected 0.017 or more",
    ("--jobs", "50", "--ageing-hours", "0"): "--ageing-hours: found 0, expected hours above 0",
    ("--jobs", "50", "--maintenance", "gone.csv"): "gone.csv: no such file",
    ("--jobs", "times.csv"): "times.csv: found no trace that is known",
}


@pytest.mark.parametrize("asked", OPTIONS, ids=" ".join)
def test_options_that_cannot_be_met_are_one_sentence(
    crossperf: Crossperf, world: list[str], asked: tuple[str, ...]
) -> None:
    assert_one_sentence(crossperf(*world, *asked), OPTIONS[asked])


def test_compiling_is_announced_where_it_takes_long(
    crossperf: Crossperf, world: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crossperf.schedule.simulate.prepare", lambda _: time.sleep(2.5))
    done = crossperf(*world, "--jobs", "50")
    assert done.stderr.startswith("compiling the simulator for this machine, once")
    monkeypatch.setattr("crossperf.schedule.simulate.prepare", lambda _: None)
    assert "compiling" not in crossperf(*world, "--jobs", "50").stderr
