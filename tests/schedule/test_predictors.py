from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from crossperf.records import Familiarity, Prediction
from crossperf.schedule import predictors
from crossperf.schedule.readers import read_times
from crossperf.schedule.times import RelativeTimes
from tests.schedule.worlds import need_dr_evt, times


def test_the_application_average_is_that_of_the_authors() -> None:
    folder = need_dr_evt()
    truth = read_times(folder / "ground_truth.csv")
    theirs = read_times(folder / "prediction.app_avg.csv")
    runs = ~np.isnan(truth.relative_wm)
    ours = predictors.app_average(truth)
    # The published truth is rounded to five decimals, the average was taken before.
    np.testing.assert_allclose(ours.relative_wm[runs], theirs.relative_wm[runs], rtol=1e-5)
    assert (np.isnan(theirs.relative_wm) == ~runs).all()


def test_averages_are_worked_out_by_hand() -> None:
    truth = times(["a", "b"], [1.0, 0.5], [0.5, np.nan], [2.0, 1.0], apps=["x", "x", "y"])
    by_app = predictors.app_average(truth)
    np.testing.assert_allclose(1 / by_app.relative_wm, [[1.5, 2.0], [1.5, 2.0], [0.5, 1.0]])
    assert (by_app.low_wm[0, 0], by_app.high_wm[0, 0]) == (pytest.approx(0.55), pytest.approx(0.95))
    by_machine = predictors.machine_average(truth)
    np.testing.assert_allclose(1 / by_machine.relative_wm, [[3.5 / 3, 1.5]] * 3)
    assert (by_machine.low_wm <= by_machine.relative_wm).all()
    assert (by_machine.high_wm >= by_machine.relative_wm).all()


def test_predictions_take_the_scale_of_what_was_measured_on_their_source() -> None:
    truth = RelativeTimes.of([("a", "1"), ("a", "2")], ["p", "q", "r"], np.array([[2.0, 3.0, 4.0], [1.0, 1.0, 1.0]]))
    known = Prediction("a", "1", "p", "source", {"p": 1.0, "q": 5.0}, low={"q": 4.0}, high={"q": 7.0})
    stranger = Prediction("b", "1", "p", "source", {"p": 1.0, "q": 9.0})
    table = predictors.from_predictions([known, stranger], truth, "p", name="m")
    # a 1 takes 2 on p, so 5 times as long on q is 10, between 8 and 14; nothing is predicted for r.
    assert table.workloads == (("a", "1"),)
    np.testing.assert_array_equal(table.relative_wm, [[2.0, 10.0, np.nan]])
    np.testing.assert_array_equal(table.low_wm, [[2.0, 8.0, np.nan]])
    np.testing.assert_array_equal(table.high_wm, [[2.0, 14.0, np.nan]])


def test_a_run_that_looks_unknown_stays_where_it_was_profiled_and_none_goes_where_it_cannot_run() -> None:
    truth = RelativeTimes.of([("a", "1"), ("b", "1"), ("c", "1")], ["cpu", "gpu"], np.array([[1.0, 0.5]] * 3))
    relative, words = {"cpu": 1.0, "gpu": 0.25}, ("familiar", "unknown", "familiar")
    predictions = [
        Prediction(app, "1", "cpu", "source", relative, familiarity=Familiarity(word, 1.0))
        for app, word in zip("abc", words, strict=True)
    ]
    predictions[2] = replace(predictions[2], relative_time=relative | {"gpu": math.nan}, cannot={"gpu": "cannot run"})
    predicted = predictors.from_predictions(predictions, truth, "cpu")
    np.testing.assert_array_equal(predicted.relative_wm, [[1.0, 0.25], [1.0, np.nan], [1.0, np.nan]])
    np.testing.assert_array_equal(predicted.high_wm, predicted.relative_wm)
