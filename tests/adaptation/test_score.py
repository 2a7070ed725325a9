"""Platforms left out in turn: nothing of the scored workloads is seen, and more workloads bring more."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crossperf import dataset, model
from crossperf.adaptation import score as transfer
from crossperf.adaptation.result import WAYS, Transfer
from crossperf.arrays import Floats
from crossperf.dataset import Dataset, Features
from crossperf.datasets import toy
from crossperf.errors import DatasetError, SettingsError
from crossperf.model.base import Predictor


@dataclass
class Remembered:
    """The truth of each cell, looked up by its features."""

    kind = "remembered"
    truth: dict[bytes, Floats]
    width: int
    outputs: int

    def predict(self, features: Features) -> Floats:
        return np.stack([self.truth[row_f[: self.width].tobytes()][: self.outputs] for row_f in features.values_nf])


class Oracle(Predictor):
    """A model that answers with the truth of the cell with the same features; it learns the shapes alone."""

    name = "oracle"
    truth: dict[bytes, Floats]
    width: int
    fits: list[tuple[Floats, Floats]]

    def _learn(self, features: Features, target_np: Floats, *_: Any) -> Remembered:
        self.fits.append((features.values_nf, target_np))
        return Remembered(self.truth, self.width, target_np.shape[1])

    def fit(self, X: Any, y: Any, **groups: Any) -> Oracle:
        super().fit(X, y, **groups)
        self.fitted_ = replace(self.fitted_, limits=None)
        return self


@pytest.fixture(scope="module")
def data() -> Dataset:
    return dataset.build(toy.make_table(apps=8, inputs=3, platforms=4, repeats=2, noise=0.01, seed=1))


@pytest.fixture
def oracle(data: Dataset) -> type[Oracle]:
    """Return an oracle of the task without the last platform: it knows all columns, the new one last."""
    rest = data.without(data.platforms[-1])
    own_n = rest.log_time_wp[rest.workload_n, rest.source_n]
    truth_np = data.log_time_wp[rest.workload_n] - own_n[:, None]
    rows = zip(rest.features.values_nf, truth_np, strict=True)
    facts = {"truth": {f.tobytes(): t for f, t in rows}, "width": rest.features.values_nf.shape[1], "fits": []}
    return type("Oracle", (Oracle,), facts)


def test_a_model_that_knows_the_truth_scores_one_where_it_is_retrained(data: Dataset, oracle: type[Oracle]) -> None:
    last = data.platforms[-1]
    result = transfer.transfer(data, {"oracle": oracle}, shots=(4,), scored_folds=1, draws=2, left_out=[last])
    for way in ("scratch", "full"):
        score = result.of("oracle", "4", way)[last]
        assert (score.column, score.vector) == (pytest.approx(1.0), pytest.approx(1.0))
    adapted = result.of("oracle", "4", "adapted")[last]
    assert 1.0 < adapted.column < 2.0
    # Of the three platforms other than the source, two are exact.
    assert np.log(adapted.vector) == pytest.approx(np.log(adapted.column) / 3)


def test_the_base_never_sees_the_new_platform_and_scratch_sees_it_for_as_many_workloads_as_asked(
    data: Dataset, oracle: type[Oracle]
) -> None:
    transfer.transfer(
        data, {"oracle": oracle}, shots=(5,), scored_folds=1, draws=3, scratch_draws=2, left_out=[data.platforms[-1]]
    )
    base, full, *scratch = oracle.fits
    # The base is fitted first, then the model with all workloads, then those from scratch.
    assert base[1].shape[1] == 3
    assert full[1].shape[1] == 4
    assert not np.isnan(full[1]).any()
    assert len(scratch) == 2
    for features_nf, target_np in scratch:
        np.testing.assert_array_equal(features_nf, np.column_stack([base[0], np.zeros(len(base[0]))]))
        measured_n = ~np.isnan(target_np[:, -1])
        assert measured_n.sum() == 5 * 3
        np.testing.assert_array_equal(target_np[:, :-1], base[1])


def test_scored_workloads_are_never_among_the_training_ones(data: Dataset, oracle: type[Oracle]) -> None:
    transfer.transfer(data, {"oracle": oracle}, shots=(5,), n_folds=4, draws=1, left_out=[data.platforms[-1]])
    rest = data.without(data.platforms[-1])
    width = rest.features.values_nf.shape[1]
    seen = [{row_f[:width].tobytes() for row_f in features_nf} for features_nf, _ in oracle.fits]
    assert len(seen) == 3 * 4
    parts = dataset.folds(rest, "workload", 4, 0)
    for i, part in enumerate(parts):
        test = {row_f.tobytes() for row_f in rest.features.values_nf[part.test_n]}
        assert not any(test & fit for fit in seen[3 * i : 3 * i + 3])


def test_a_share_is_one_of_the_training_workloads_and_too_many_are_left_out_with_a_word(data: Dataset) -> None:
    result = transfer.transfer(data, ["ridge"], shots=(0.25, 100), n_folds=4, scored_folds=1, draws=1)
    assert result.shots == {"25%": round(18 * 0.25), "100": 100}
    assert result.of("ridge", "100", "full") == {}
    assert result.mean("ridge", "100", "adapted") is None
    assert any("Too few training workloads for 100" in caveat for caveat in result.caveats)


def test_the_head_beats_retraining_on_few_workloads(data: Dataset) -> None:
    result = transfer.transfer(data, ["ridge"], shots=(4,), scored_folds=2, draws=3)
    adapted, scratch, full = (result.mean("ridge", "4", way) for way in ("adapted", "scratch", "full"))
    assert adapted is not None
    assert scratch is not None
    assert full is not None
    assert adapted < scratch


def test_the_same_seed_gives_the_same_scores_and_json_holds_them(data: Dataset, tmp_path: Path) -> None:
    asked: dict[str, Any] = {"shots": (3,), "scored_folds": 1, "draws": 2}
    one, two = (transfer.transfer(data, ["ridge"], **asked) for _ in range(2))
    assert one == two
    one.write(tmp_path / "t.json")
    facts = json.loads((tmp_path / "t.json").read_text())
    assert Transfer.from_json(facts) == one
    assert facts["noise"] == pytest.approx(1.01, abs=0.01)


def test_the_noise_is_what_the_halves_of_the_repeats_differ_by(data: Dataset) -> None:
    first_wp, second_wp = data.log_time_halves_hwp
    errors = [
        abs((first_wp[w, 0] - first_wp[w, p]) - (second_wp[w, 0] - second_wp[w, p]))
        for w in range(len(data.workloads))
        for p in (1, 2, 3)
    ]
    result = transfer.transfer(data, ["median"], shots=(3,), scored_folds=1, draws=1, left_out=[data.platforms[0]])
    assert result.noise == pytest.approx(np.exp(np.mean(errors)))


@pytest.mark.parametrize("shots", [(), (0,), (1,), (2.5,), (-3,)])
def test_numbers_of_workloads_that_make_no_sense_are_refused(data: Dataset, shots: tuple[float, ...]) -> None:
    with pytest.raises(SettingsError, match="shots: found"):
        transfer.transfer(data, ["ridge"], shots=shots)


def test_two_platforms_are_too_few_to_leave_one_out() -> None:
    two = dataset.build(toy.make_table(apps=3, inputs=2, platforms=2, seed=1))
    with pytest.raises(DatasetError, match="three or more"):
        transfer.transfer(two, ["ridge"])


def test_a_peer_is_retrained_from_scratch_alone_on_the_same_workloads(data: Dataset) -> None:
    asked: dict[str, Any] = {"shots": (4,), "scored_folds": 1, "draws": 2}
    result = transfer.transfer(data, ["ridge", "median"], peers=["median"], **asked)
    assert {score.way for score in result.scores if score.model == "median"} == {"scratch"}
    both = transfer.transfer(data, ["median"], **asked)
    assert result.of("median", "4", "scratch") == both.of("median", "4", "scratch")


def test_every_model_can_be_the_base_of_one_that_is_adapted(data: Dataset) -> None:
    makers = {name: lambda name=name: model.make(name, n_estimators=5, n_jobs=1) for name in ("extra-trees",)}
    result = transfer.transfer(data, makers, shots=(3,), scored_folds=1, draws=1, left_out=[data.platforms[1]])
    assert {score.way for score in result.scores} == set(WAYS)
