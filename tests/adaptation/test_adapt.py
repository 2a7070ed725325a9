"""Adding a platform from Python: what is used, what is noted, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from crossperf import dataset, model
from crossperf.adaptation.adapt import LEAST, adapt, suggest
from crossperf.datasets import toy
from crossperf.errors import DatasetError, ModelFolderError, SettingsError
from crossperf.model import TrainedModel
from crossperf.prediction.answer import predict

TABLE = toy.make_table(apps=8, inputs=3, platforms=6, repeats=2, noise=0.01, seed=3).frame
PLATFORMS = sorted(TABLE["platform"].unique())
NEW, OTHER = PLATFORMS[-1], PLATFORMS[2]
KNOWN = [name for name in PLATFORMS if name not in (NEW, OTHER)]
SHOTS = ["app0", "app2", "app5"]
ON_KNOWN, ON_NEW = pl.col("platform").is_in(KNOWN), pl.col("platform") == NEW
FEW = TABLE.filter(ON_NEW & pl.col("app").is_in(SHOTS))


@pytest.fixture(scope="module")
def trained() -> TrainedModel:
    """A model of the known platforms, trained on all but the last application."""
    return model.train(TABLE.filter(ON_KNOWN & (pl.col("app") != "app7")), "ridge")


def test_the_new_column_stands_last_and_the_others_stay_as_they_were(trained: TrainedModel) -> None:
    made = adapt(trained, FEW)
    assert made.model.platforms == (*KNOWN, NEW)
    assert made.model.sources == tuple(KNOWN)
    assert made.workloads == tuple((app, f"n{i}") for app in SHOTS for i in range(3))
    assert made.notes == ()
    held_out = TABLE.filter(ON_KNOWN & (pl.col("app") == "app7"))
    for old, new in zip(predict(trained, held_out).predictions, predict(made.model, held_out).predictions, strict=True):
        assert list(new.relative_time) == [*KNOWN, NEW]
        assert {name: new.relative_time[name] for name in KNOWN} == old.relative_time


def test_the_cells_know_the_times_that_were_measured_and_no_others(trained: TrainedModel) -> None:
    cells = adapt(trained, FEW).model.cells
    truth = dataset.build(TABLE)
    for (app, input_), log_time_p in zip(cells.workloads, cells.log_time_wp, strict=True):
        expected = truth.log_time_wp[truth.workloads.index((app, input_)), truth.platforms.index(NEW)]
        assert (log_time_p[-1] == expected) if app in SHOTS else np.isnan(log_time_p[-1])


def test_the_left_out_factor_estimates_the_error_on_other_workloads(trained: TrainedModel) -> None:
    made = adapt(trained, FEW)
    truth = dataset.build(TABLE.filter(pl.col("platform").is_in([*KNOWN, NEW])))
    seconds = {
        (prediction.app, prediction.input): prediction.seconds[NEW]
        for prediction in predict(made.model, TABLE.filter(ON_KNOWN & ~pl.col("app").is_in(SHOTS))).predictions
    }
    column = truth.platforms.index(NEW)
    errors = [
        abs(np.log(time) - truth.log_time_wp[truth.workloads.index(workload), column])
        for workload, time in seconds.items()
    ]
    assert made.left_out_factor >= 1.0
    assert np.log(made.left_out_factor) == pytest.approx(np.mean(errors), abs=0.25)


def test_workloads_that_the_model_does_not_know_are_used_with_the_tables_own_times(trained: TrainedModel) -> None:
    runs = TABLE.filter((ON_NEW | ON_KNOWN) & (pl.col("app") == "app7"))
    made = adapt(trained, runs)
    assert made.workloads == tuple(("app7", f"n{i}") for i in range(3))
    assert made.notes == ("3 workloads that the model did not know were used with the table's own times.",)
    assert made.model.workloads[-3:] == made.workloads
    assert len(made.model.features) == len(made.model.cells) == len(trained.cells) + 3 * len(KNOWN)
    np.testing.assert_array_equal(made.model.features.source_n, made.model.cells.source_n)


def test_what_is_not_used_is_noted(trained: TrainedModel) -> None:
    with_strange = pl.concat([FEW, TABLE.filter(ON_NEW & (pl.col("app") == "app7"))])
    (note,) = adapt(trained, with_strange).notes
    assert note.startswith(f"3 workloads on {NEW!r} were not used (app7 n0, app7 n1, app7 n2)")
    with_known = pl.concat([FEW, TABLE.filter(ON_KNOWN & (pl.col("app") == "app0"))])
    (note,) = adapt(trained, with_known).notes
    assert note.startswith("12 cells on known platforms were not used")
    with_other = pl.concat([FEW, TABLE.filter(pl.col("platform") == OTHER)])
    (note,) = adapt(trained, with_other, platform=NEW).notes
    assert note == f"runs on {OTHER} were not used; add one platform at a time."


def test_two_platforms_are_added_in_turn_and_the_first_stays_as_it_was(trained: TrainedModel, tmp_path: Path) -> None:
    once = adapt(trained, FEW).model
    twice = adapt(once, TABLE.filter((pl.col("platform") == OTHER) & pl.col("app").is_in(SHOTS))).model
    assert twice.platforms == (*KNOWN, NEW, OTHER)
    assert twice.sources == tuple(KNOWN)
    assert [added["platform"] for added in twice.summary["added"]] == [NEW, OTHER]
    np.testing.assert_array_equal(twice.fitted.predict(trained.features)[:, :-1], once.fitted.predict(trained.features))
    twice.save(tmp_path / "model")
    loaded = model.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.fitted.predict(trained.features), twice.fitted.predict(trained.features))


def test_an_adaptation_turns_to_json(trained: TrainedModel) -> None:
    made = adapt(trained, FEW)
    facts = made.to_json()
    assert (facts["platform"], facts["known_platforms"]) == (NEW, KNOWN)
    assert facts["left_out_factor"] == made.left_out_factor
    assert [(part["app"], part["input"]) for part in facts["workloads"]] == list(made.workloads)


@pytest.mark.parametrize(
    ("runs", "platform", "message"),
    [
        (FEW.head(1), None, f"expected at least {LEAST}"),
        (TABLE.filter(ON_KNOWN), None, "alone, which the model knows, expected runs on exactly one"),
        (TABLE.filter(~ON_KNOWN), None, "^platform: none was named, and .* 2 platforms"),
        (FEW, KNOWN[0], r"^platform: found '.*', which the model knows already"),
        (FEW, NEW.replace("-", "_"), "^platform: found .*did you mean"),
    ],
)
def test_a_platform_that_cannot_be_added_is_refused(
    trained: TrainedModel, runs: pl.DataFrame, platform: str | None, message: str
) -> None:
    with pytest.raises(DatasetError, match=message):
        adapt(trained, runs, platform=platform)


def test_suggestions_are_known_workloads_and_pass_over_what_was_measured(trained: TrainedModel) -> None:
    first = suggest(trained, 4)
    assert len({(choice.app, choice.input) for choice in first}) == 4
    assert first[0].why == "ordinary, so it sets the general level"
    assert {(choice.app, choice.input) for choice in first} <= set(trained.workloads)
    further = suggest(trained, 100, FEW)
    assert {(choice.app, choice.input) for choice in further} == {w for w in trained.workloads if w[0] not in SHOTS}
    assert further[0].to_json().keys() == {"app", "input", "gain", "why"}
    with pytest.raises(SettingsError, match=r"^count: found 0, expected 1 or more"):
        suggest(trained, 0)


def test_a_model_saved_without_its_cells_is_refused(trained: TrainedModel) -> None:
    from dataclasses import replace

    rows = np.empty(0, np.int64)
    forgetful = replace(trained, cells=trained.cells.take(rows).compact(), features=trained.features[rows])
    with pytest.raises(ModelFolderError, match="Train it again"):
        adapt(forgetful, FEW)
    with pytest.raises(ModelFolderError, match="Train it again"):
        suggest(forgetful, 3)
