"""Raw events from the table to the answer: learned from, saved, and done without."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from crossperf.dataset import build
from crossperf.datasets import toy
from crossperf.errors import DatasetError, SettingsError
from crossperf.model import load, train
from crossperf.records import Run


@pytest.fixture(scope="module")
def runs() -> list[Run]:
    """Runs on CPUs with one event that is new, one that repeats a counter, and one that is constant."""
    made = []
    for run in toy.make_runs(apps=3, inputs=3, seed=1):
        work = run.counters["instructions"] or 0.0
        own = {"new": work ** (0.5 + 0.05 * len(made) % 0.3), "same": 4.0 * work, "constant": 64.0}
        events = {"events": {"perf": own}} if run.platform_class == "cpu" else {}
        made.append(replace(run, metadata=events))
    return made


def test_a_model_keeps_the_events_that_tell_something_and_is_saved_with_them(runs: list[Run], tmp_path: Path) -> None:
    model = train(runs, "extra-trees", n_estimators=10, n_jobs=1)
    assert model.columns.events == ("event.perf.new",)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.columns == model.columns
    assert again.predict(runs[:6]).predictions == model.predict(runs[:6]).predictions


def test_a_run_without_events_is_predicted_with_a_note(runs: list[Run]) -> None:
    model = train(runs, "extra-trees", n_estimators=10, n_jobs=1)
    answer = model.predict([replace(runs[0], metadata={})])
    assert len(answer.predictions) == 1
    assert any("lacks 1 of the 1 events it was trained on (event.perf.new)" in note for note in answer.notes)


def test_a_choice_of_features_says_what_a_model_sees(runs: list[Run]) -> None:
    assert build(runs, features="counters").events == ()
    assert train(runs, "ridge", features="counters").columns.events == ()
    table1 = build([replace(run, counters={**run.counters, "mine": 1.0}) for run in runs], features="table1")
    assert "mine" not in table1.counters
    assert "instructions" in table1.counters


def test_features_that_do_not_exist_are_refused(runs: list[Run]) -> None:
    with pytest.raises(SettingsError, match=r"^features: found 'tabel1' \(did you mean 'table1'\?\), expected"):
        build(runs, features="tabel1")  # type: ignore[arg-type]
    with pytest.raises(DatasetError, match=r"found none of the 21 counters of Table I"):
        build([replace(run, counters={"mine": 1.0}) for run in runs], features="table1")
