"""Times of workloads from predictions and measured runs, with numbers worked out by hand."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crossperf.errors import PredictError
from crossperf.records import Prediction, Run
from crossperf.schedule import policies
from crossperf.schedule.slurm import ranking
from crossperf.schedule.slurm.ranking import Span, WorkloadTimes
from crossperf.schedule.times import RelativeTimes
from tests.cli.test_cli import Crossperf, assert_one_sentence, crossperf
from tests.schedule.slurm.conftest import FACTS, SITE, order, table_of

__all__ = ["crossperf"]


def prediction(**times: float) -> Prediction:
    seconds = {name: 100.0 * value for name, value in times.items()}
    low, high = ({name: value * factor for name, value in times.items()} for factor in (0.5, 2.0))
    return Prediction("lmp", "melt", "epyc-2", "epyc-2", times, seconds, low=low, high=high)


def runs(platform: str, *seconds: float, user: str = "ann", input_: str = "melt", status: str = "ok") -> Iterable[Run]:
    for number, value in enumerate(seconds):
        facts = {"user": user, "nodes": 2}
        yield Run("lmp", input_, platform, value, run_id=f"{platform}{number}", status=status, metadata=facts)


def test_predictions_are_taken_relative_to_the_default_partition() -> None:
    known = ranking.from_predictions([prediction(**{"epyc-2": 1.0, "genoa": 0.5, "h200": 0.1})], "epyc-2")
    assert known["lmp", "", "melt"].spans["h200"] == Span(0.1, 0.05, 0.2)
    assert known["lmp", "", "melt"].seconds == 100.0
    other = ranking.from_predictions([prediction(**{"epyc-2": 1.0, "genoa": 0.5, "h200": 0.1})], "genoa")
    assert other["lmp", "", "melt"].spans["h200"] == Span(0.2, 0.2, 0.2), "ranges hold for their own reference alone"
    assert other["lmp", "", "melt"].seconds == 50.0
    assert ranking.from_predictions([prediction(genoa=1.0)], "epyc-2") == {}


def test_several_predictions_of_a_workload_are_combined_by_their_mean_log() -> None:
    two = [prediction(**{"epyc-2": 1.0, "h200": 0.1}), prediction(**{"epyc-2": 1.0, "h200": 0.4})]
    known = ranking.from_predictions(two, "epyc-2")
    assert known["lmp", "", "melt"].spans["h200"].relative == pytest.approx(0.2)


def test_a_table_of_relative_times_is_taken_as_it_is_and_gaps_stay_gaps() -> None:
    relative = np.array([[2.0, 1.0, np.nan], [np.nan, 1.0, 3.0]])
    times = RelativeTimes.of([("lmp", "melt"), ("lmp", "other")], ["epyc-2", "genoa", "h200"], relative)
    known = ranking.from_times(times, "epyc-2")
    assert known == {("lmp", "", "melt"): WorkloadTimes({"epyc-2": Span(1.0, 1.0, 1.0), "genoa": Span(0.5, 0.5, 0.5)})}
    assert ranking.from_times(times, "not-there") == {}


def test_an_application_is_known_by_the_mean_over_its_inputs_with_a_range_that_spans_them() -> None:
    known = {
        ("lmp", "", "a"): WorkloadTimes({"epyc-2": Span(1, 1, 1), "h200": Span(0.1, 0.05, 0.2)}, 10.0),
        ("lmp", "", "b"): WorkloadTimes({"epyc-2": Span(1, 1, 1), "h200": Span(0.4, 0.3, 0.8)}, 1000.0),
        ("lmp", "ann", "b"): WorkloadTimes({"epyc-2": Span(1, 1, 1), "h200": Span(9.0, 9.0, 9.0)}),
    }
    general = ranking.with_apps(known)["lmp", "", ""]
    h200 = general.spans["h200"]
    # Half of ln(0.4 / 0.1) between the inputs; ln 4 and ln(8 / 3) over 2.563 within them; 1.2816 of that to each side.
    between = (0.5 * math.log(4.0)) ** 2
    within = 0.5 * ((math.log(4.0) / 2.5631) ** 2 + (math.log(8.0 / 3.0) / 2.5631) ** 2)
    half = math.exp(1.28155 * math.sqrt(between + within))
    assert (h200.relative, h200.low, h200.high) == pytest.approx((0.2, 0.2 / half, 0.2 * half), rel=1e-4)
    assert general.spans["epyc-2"] == Span(1.0, 1.0, 1.0)
    assert general.seconds is None, "inputs differ in their times, so there is no one time"


def test_measured_medians_take_the_place_of_predictions_where_there_are_enough() -> None:
    known = ranking.from_predictions([prediction(**{"epyc-2": 1.0, "genoa": 0.5, "h200": 0.1})], "epyc-2")
    measured = [*runs("epyc-2", 90, 100, 110), *runs("genoa", 150, 160, 200, 170), *runs("h200", 1.0, 1.0)]
    learned = ranking.with_learned(known, measured, "epyc-2")
    for user in ("ann", ""):
        spans = learned["lmp", user, "melt"].spans
        assert spans["genoa"].relative == pytest.approx(1.65)
        assert spans["genoa"].runs == 4
        assert spans["h200"] == Span(0.1, 0.05, 0.2), "two runs are not enough"
        assert learned["lmp", user, "melt"].seconds == 100.0
        assert learned["lmp", user, "melt"].nodes == 2
    table = table_of(learned)
    assert order(table, ("lmp", "ann", "melt")) == ["gpu", "cpu", "big"]
    assert table.rows["lmp", "ann", "melt"].choices[2].runs == 4


def test_a_user_whose_jobs_behave_otherwise_gets_another_answer_than_all_others() -> None:
    known = ranking.from_predictions([prediction(**{"epyc-2": 1.0, "genoa": 0.5})], "epyc-2")
    slow = [*runs("epyc-2", 10, 10, 10, user="bob"), *runs("genoa", 40, 40, 40, user="bob")]
    fast = [*runs("epyc-2", *[10] * 9, user="ann"), *runs("genoa", *[4] * 9, user="ann")]
    table = table_of(ranking.with_learned(known, [*slow, *fast], "epyc-2"))
    assert order(table, ("lmp", "bob", "melt")) == ["cpu", "big"]
    assert order(table, ("lmp", "ann", "melt")) == ["big", "cpu"]
    assert order(table, ("lmp", "", "melt")) == ["big", "cpu"]


def test_runs_where_the_default_was_not_measured_are_scaled_by_what_is_predicted_there() -> None:
    known = ranking.from_predictions([prediction(**{"epyc-2": 1.0, "genoa": 0.5, "h200": 0.1})], "epyc-2")
    learned = ranking.with_learned(known, [*runs("genoa", 30, 30, 30), *runs("h200", 60, 60, 60)], "epyc-2")
    melt = learned["lmp", "ann", "melt"]
    scale_s = math.sqrt(30 / 0.5 * 60 / 0.1)  # the mean log of what each says of the default
    assert melt.seconds == pytest.approx(scale_s)
    assert melt.spans["h200"].relative == pytest.approx(60 / scale_s)
    assert melt.spans["h200"].relative / melt.spans["genoa"].relative == pytest.approx(2.0)
    assert melt.spans["epyc-2"].relative == 1.0


def test_an_input_that_was_never_predicted_borrows_what_is_known_of_the_application() -> None:
    known = ranking.from_predictions([prediction(**{"epyc-2": 1.0, "genoa": 0.5})], "epyc-2")
    learned = ranking.with_learned(known, runs("epyc-2", 40, 40, 40, input_="nodes-2"), "epyc-2")
    assert learned["lmp", "ann", "nodes-2"].spans["genoa"].relative == 0.5
    assert learned["lmp", "ann", "nodes-2"].seconds == 40.0


def test_failed_runs_teach_no_times() -> None:
    measured = [*runs("epyc-2", 5, 5, 5, status="timeout"), *runs("genoa", 5, 5, 5)]
    learned = ranking.with_learned({}, measured, "epyc-2")
    assert set(learned["lmp", "ann", "melt"].spans) == {"genoa"}
    table, left_out = ranking.table(learned, SITE, FACTS, policies.make("fastest"), "fastest")
    assert (len(table.rows), left_out) == (0, 3), "one partition alone is no choice"


def test_measured_runs_alone_make_a_table_without_any_model() -> None:
    learned = ranking.with_learned({}, [*runs("epyc-2", 10, 10, 10), *runs("h200", 2, 2, 2)], "epyc-2")
    table = table_of(learned)
    assert order(table, ("lmp", "", "")) == ["gpu", "cpu"]
    assert table.rows["lmp", "ann", "melt"].seconds == 10.0


ODD: list[tuple[str, Any]] = [
    ("relative_time", math.nan),
    ("relative_time", math.inf),
    ("relative_time", 0.0),
    ("relative_time", -0.1),
    ("relative_time", "fast"),
    ("relative_time", None),
    ("relative_time", 1e300),
    ("low", math.nan),
    ("high", -1.0),
    ("high", math.inf),
    ("seconds", math.nan),
    ("seconds", 0.0),
]


@pytest.mark.parametrize(("field", "value"), ODD)
def test_a_number_that_is_no_time_never_reaches_a_table(
    crossperf: Crossperf, no_slurm: None, field: str, value: Any
) -> None:
    """A NaN was the first choice of every policy: it is the smallest of any numbers to NumPy."""
    facts = prediction(**{"epyc-2": 1.0, "genoa": 0.5, "h200": 0.1}).to_json()
    facts[field]["h200"] = value
    Path("predictions.json").write_text(json.dumps({"predictions": [facts]}))
    partitions = ("--partitions", "cpu=epyc-2,big=genoa,gpu=h200")
    done = crossperf("slurm", "table", "--predictions", "predictions.json", *partitions, "-o", "t")
    assert_one_sentence(done, "predictions")
    assert not Path("t").exists()


def test_the_odd_numbers_of_a_prediction_are_named() -> None:
    odd = prediction(**{"epyc-2": 1.0, "genoa": math.nan, "h200": -1.0})
    with pytest.raises(PredictError, match=r"lmp melt: time of genoa nan, time of h200 -1.0, low of genoa nan and"):
        ranking.from_predictions([odd], "epyc-2")


def test_a_prediction_that_has_nothing_to_be_relative_to_is_named() -> None:
    nowhere = replace(prediction(**{"epyc-2": math.nan, "genoa": 1.0}), source="p", cannot={"epyc-2": "cannot run"})
    with pytest.raises(PredictError, match="lmp melt: no time on p"):
        ranking.from_predictions([nowhere], "epyc-2")


def test_runs_without_a_real_time_teach_nothing() -> None:
    for value in (math.nan, math.inf, -5.0, 0.0, "9"):
        assert ranking.with_learned({}, runs("epyc-2", *[value] * 3), "epyc-2") == {}  # type: ignore[list-item]
