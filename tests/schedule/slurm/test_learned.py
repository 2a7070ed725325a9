"""What finished jobs teach, with numbers worked out by hand: of the same work alone, and for all where users agree."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from crossperf.records import Run
from crossperf.runs import jsonl
from crossperf.schedule.slurm.learned import Trust, with_learned
from crossperf.schedule.slurm.ranking import Span, WorkloadTimes
from crossperf.schedule.slurm.table import Key
from tests.cli.test_cli import Crossperf, crossperf
from tests.schedule.slurm.conftest import SITE, order, table_of

__all__ = ["crossperf"]

NOW = "2026-11-16T12:00:00"
NOW_S = datetime.fromisoformat(NOW).timestamp()
USERS = ("ann", "bob", "eve")


def predicted(**times: float) -> dict[Key, WorkloadTimes]:
    spans = {name: Span(time, 0.5 * time, 2.0 * time) for name, time in times.items()}
    return {("lmp", "", "melt"): WorkloadTimes(spans, 100.0)}


KNOWN = predicted(**{"epyc-2": 1.0, "genoa": 0.5, "h200": 0.1})


def runs(
    platform: str, *seconds: Any, user: str = "ann", input_: str = "melt", status: str = "ok", **metadata: Any
) -> list[Run]:
    facts = {"user": user, "nodes": 2, **metadata}
    return [Run("lmp", input_, platform, value, status=status, started=NOW, metadata=facts) for value in seconds]


def learn(known: Mapping[Key, WorkloadTimes], *several: Iterable[Run], **trust: Any) -> dict[Key, WorkloadTimes]:
    return with_learned(known, [run for some in several for run in some], "epyc-2", Trust(**trust), NOW_S)[0]


def test_measured_ratios_take_the_place_of_predicted_ones_where_there_are_enough_runs() -> None:
    learned = learn(KNOWN, runs("epyc-2", 90, 100, 110), runs("genoa", 150, 160, 200, 170), runs("h200", 1.0, 1.0))
    melt = learned["lmp", "ann", "melt"]
    assert melt.spans["genoa"].relative == pytest.approx(1.65)
    assert melt.spans["genoa"].runs == 4
    assert melt.spans["h200"] == Span(0.1, 0.05, 0.2), "two runs are not enough"
    assert melt.seconds == pytest.approx(100.0)
    assert melt.nodes == 2
    table = table_of(learned)
    assert order(table, ("lmp", "ann", "melt")) == ["gpu", "cpu", "big"]
    assert table.rows["lmp", "ann", "melt"].choices[2].runs == 4


def test_one_user_teaches_nobody_else() -> None:
    """Six jobs with a chosen comment moved everybody's jobs to another partition."""
    steering = runs("epyc-2", 1, 1, 1, user="eve"), runs("genoa", 900, 900, 900, user="eve")
    learned = learn(KNOWN, *steering)
    assert learned["lmp", "eve", "melt"].spans["genoa"].relative == pytest.approx(900)
    assert learned["lmp", "", "melt"] == KNOWN["lmp", "", "melt"]
    assert set(learned) == {("lmp", "", "melt"), ("lmp", "eve", "melt")}


def test_what_several_users_agree_on_holds_for_all_and_one_among_them_does_not_move_it() -> None:
    honest = [runs(p, s, s, s, user=user) for user in ("ann", "bob") for p, s in (("epyc-2", 10), ("genoa", 20))]
    two = learn(KNOWN, *honest)
    assert two["lmp", "", "melt"] == KNOWN["lmp", "", "melt"]
    third = runs("epyc-2", 100, 100, 100, user="cat"), runs("genoa", 220, 220, 220, user="cat")
    three = learn(KNOWN, *honest, *third)
    assert three["lmp", "", "melt"].spans["genoa"].relative == pytest.approx(2.0)
    assert three["lmp", "", "melt"].spans["genoa"].runs == 9
    assert three["lmp", "", "melt"].spans["h200"] == KNOWN["lmp", "", "melt"].spans["h200"]
    steering = runs("epyc-2", 1, 1, 1, user="eve"), runs("genoa", 0.001, 0.001, 0.001, user="eve")
    steered = learn(KNOWN, *honest, *third, *steering)
    assert steered["lmp", "", "melt"].spans["genoa"].relative == pytest.approx(2.0)


def test_users_who_contradict_each_other_leave_the_prediction_as_it_is() -> None:
    several = [
        runs(p, s, s, s, user=user)
        for user, slow in zip(USERS, (1, 10, 100), strict=True)
        for p, s in (("epyc-2", 10), ("genoa", 10 * slow))
    ]
    assert learn(KNOWN, *several)["lmp", "", "melt"] == KNOWN["lmp", "", "melt"]


def test_small_tests_on_one_platform_and_long_runs_on_another_say_nothing_of_the_platforms() -> None:
    """Three tests of 1 s on cpu and three runs of 9 s on gpu moved a job that is 10 times as fast on gpu."""
    small = runs("epyc-2", 1, 1, 1, input_="nodes-2", work="a")
    long = runs("h200", 9, 9, 9, input_="nodes-2", work="b")
    nodes2 = learn(KNOWN, small, long)["lmp", "ann", "nodes-2"]
    assert nodes2.spans["h200"].relative == pytest.approx(0.1), "as predicted"
    assert nodes2.spans["h200"].runs == 0
    untold = learn(KNOWN, runs("epyc-2", 1, 1, 1, input_="nodes-2"), runs("h200", 9, 9, 9, input_="nodes-2"))
    assert untold["lmp", "ann", "nodes-2"].spans["h200"].relative == pytest.approx(0.1)


def test_the_same_work_on_two_platforms_tells_their_ratio_whatever_else_ran() -> None:
    both = [runs(p, s, s, s, input_="nodes-2", work="a") for p, s in (("epyc-2", 10), ("h200", 2))]
    other = runs("h200", 5000, 5000, 5000, input_="nodes-2", work="b")
    nodes2 = learn(KNOWN, *both, other)["lmp", "ann", "nodes-2"]
    assert nodes2.spans["h200"].relative == pytest.approx(0.2)
    assert nodes2.spans["h200"].runs == 3


def test_the_same_work_on_other_nodes_is_other_work() -> None:
    one = runs("epyc-2", 10, 10, 10, input_="nodes-2", work="a", nodes=1)
    two = runs("h200", 20, 20, 20, input_="nodes-2", work="a", nodes=2)
    assert learn(KNOWN, one, two)["lmp", "ann", "nodes-2"].spans["h200"].relative == pytest.approx(0.1)


def test_old_runs_fade() -> None:
    old = [
        Run(
            "lmp", "melt", platform, s, run_id=f"{platform}{n}", started="2025-11-16T12:00:00", metadata={"user": "ann"}
        )
        for platform, s in (("epyc-2", 10.0), ("genoa", 90.0))
        for n in range(3)
    ]
    assert ("lmp", "ann", "melt") not in learn(KNOWN, old), "of a year ago: an eighth and a half of a run each"
    learned = learn(KNOWN, old, half_life_days=3650)
    assert learned["lmp", "ann", "melt"].spans["genoa"].relative == pytest.approx(9.0)
    fresh = [runs(platform, 10, 10, 10, user="ann") for platform in ("epyc-2", "genoa")]
    assert learn(KNOWN, old, *fresh)["lmp", "ann", "melt"].spans["genoa"].relative == pytest.approx(1.0, rel=0.2)


def test_runs_where_the_default_was_not_measured_are_scaled_by_what_is_predicted_there() -> None:
    melt = learn(KNOWN, runs("genoa", 30, 30, 30), runs("h200", 60, 60, 60))["lmp", "ann", "melt"]
    assert melt.spans["h200"].relative / melt.spans["genoa"].relative == pytest.approx(2.0)
    assert melt.spans["genoa"].relative == pytest.approx(0.5), "as predicted: the scale of the measured ones"
    assert melt.spans["epyc-2"].relative == 1.0
    assert melt.seconds == pytest.approx(60.0)


def test_an_input_that_was_never_predicted_borrows_what_is_known_of_the_application() -> None:
    learned = learn(KNOWN, runs("epyc-2", 40, 40, 40, input_="nodes-2"))
    assert learned["lmp", "ann", "nodes-2"].spans["genoa"].relative == 0.5
    assert learned["lmp", "ann", "nodes-2"].seconds == pytest.approx(40.0)


def test_failed_runs_and_runs_without_a_real_time_teach_nothing() -> None:
    assert learn({}, runs("epyc-2", 5, 5, 5, status="timeout"), runs("genoa", 5, 5, 5)) == {}
    for value in (math.nan, math.inf, -5.0, 0.0, "9"):
        assert learn({}, runs("epyc-2", *[value] * 3), runs("genoa", *[value] * 3)) == {}


def test_measured_runs_alone_make_a_table_without_any_model() -> None:
    several = [runs(p, s, s, s, user=user) for user in USERS for p, s in (("epyc-2", 10), ("h200", 2))]
    table = table_of(learn({}, *several))
    assert order(table, ("lmp", "", "")) == ["gpu", "cpu"]
    assert table.rows["lmp", "ann", "melt"].seconds == pytest.approx(10.0)


def test_what_was_not_learned_is_told() -> None:
    small, long = runs("epyc-2", 1, 1, 1, input_="nodes-2"), runs("h200", 9, 9, 9, input_="nodes-2")
    both = [runs(p, 5, 5, 5) for p in ("epyc-2", "genoa")]
    notes = with_learned(KNOWN, [*small, *long, *both[0], *both[1]], "epyc-2", now_s=NOW_S)[1]
    assert notes == [
        "the ratios of 1 key were not learned: no work ran often enough on two platforms.",
        "the ratios of 1 key were not learned: fewer than 3 users agree, so it holds for the users alone who ran it.",
    ]


def test_a_name_that_is_no_utf8_is_learned_and_half_a_letter_is_refused(crossperf: Crossperf, no_slurm: None) -> None:
    line = (
        b"JobId=%d UserId=ann(1001) GroupId=x(1) Name=caf\xe9 JobState=COMPLETED Partition=%s TimeLimit=60 "
        b"StartTime=2026-07-01T10:00:00 EndTime=2026-07-01T10:0%d:00 NodeList=n1 NodeCnt=1 ProcCnt=4 WorkDir=/ \n"
    )
    several = [(b"cpu", 1)] * 3 + [(b"big", 4)] * 3
    Path("log").write_bytes(b"".join(line % (n, *where) for n, where in enumerate(several)))
    partitions = ("--partitions", ",".join(f"{place.partition}={place.platform}" for place in SITE.places))
    done = crossperf("slurm", "learn", "--jobcomp", "log", *partitions, "-o", "runs.jsonl")
    assert done.stdout == "6 runs added, 0 were there already\n"
    assert {run.app for run in jsonl.read("runs.jsonl")} == {"caf\\xe9"}
    assert "found no counter" in crossperf("runs", "check", "runs.jsonl").stdout, (
        "Slurm counts nothing; no more is wrong"
    )
    lone = json.dumps({"app": "\ud800", "input": "x", "platform": "epyc-2", "runtime_s": 5.0, "user": "ann"})
    other = lone.replace("epyc-2", "genoa")
    Path("runs.jsonl").write_text("".join(f"{text}\n" for text in [lone, other] * 3))
    made = crossperf("slurm", "table", "--learned", "runs.jsonl", *partitions, "-o", "t")
    assert made.status == 1
    assert made.stderr.startswith("error: runs.jsonl: row 1: found text that is not JSON"), "a sentence, no traceback"
    assert not Path("t").exists()
