"""Times of workloads from predictions and measured runs, with numbers worked out by hand."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crossperf.errors import PredictError
from crossperf.records import Prediction
from crossperf.schedule.slurm import ranking
from crossperf.schedule.slurm.ranking import Span, WorkloadTimes
from crossperf.schedule.times import RelativeTimes
from tests.cli.test_cli import Crossperf, assert_one_sentence, crossperf

__all__ = ["crossperf"]


def prediction(**times: float) -> Prediction:
    seconds = {name: 100.0 * value for name, value in times.items()}
    low, high = ({name: value * factor for name, value in times.items()} for factor in (0.5, 2.0))
    return Prediction("lmp", "melt", "epyc-2", "epyc-2", times, seconds, low=low, high=high)


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
