"""Shapley values: the axioms, the sum over all subsets, and the cells that a run is compared with."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from crossperf import model
from crossperf.dataset import Dataset, Features
from crossperf.errors import SettingsError
from crossperf.prediction import shapley
from crossperf.prediction.explain import Explanation
from crossperf.prediction.shapley import Attribution, attribute

Floats = NDArray[np.float64]
RNG = np.random.default_rng(5)
BACKGROUND_BF = RNG.normal(size=(6, 4))
CELL_F = np.array([1.0, -2.0, 0.5, 3.0])
PLAYERS = {"a": (0,), "b": (1,), "c": (2,), "d": (3,)}


def tangled(rows_nf: Floats) -> Floats:
    """A function in which every feature meets every other one."""
    a, b, c, d = rows_nf.T
    return np.asarray(np.sin(a * b) + np.maximum(c, d) * a + b * c * d + a**2)


def exactly(value: Callable[[Floats], Floats], cell_f: Floats, background_bf: Floats) -> Floats:
    """Return Shapley values by the definition: over all subsets of features, with their weights."""
    size = len(cell_f)

    def worth(subset: tuple[int, ...]) -> float:
        rows_bf = background_bf.copy()
        rows_bf[:, list(subset)] = cell_f[list(subset)]
        return float(value(rows_bf).mean())

    shapley_f = np.zeros(size)
    for feature in range(size):
        others = [i for i in range(size) if i != feature]
        for count in range(size):
            weight = math.factorial(count) * math.factorial(size - count - 1) / math.factorial(size)
            for subset in itertools.combinations(others, count):
                shapley_f[feature] += weight * (worth((*subset, feature)) - worth(subset))
    return shapley_f


def sampled(
    value: Callable[[Floats], Floats],
    cell_f: Floats = CELL_F,
    background_bf: Floats = BACKGROUND_BF,
    players: dict[str, tuple[int, ...]] = PLAYERS,
    samples: int = 240,
    seed: int = 0,
) -> Attribution:
    return shapley.shapley(value, cell_f, background_bf, players, samples=samples, rng=np.random.default_rng(seed))


def by_feature(attribution: Attribution) -> dict[str, float]:
    return {part.feature: part.contribution for part in attribution.contributions}


def in_order(attribution: Attribution, what: str = "contribution") -> Floats:
    by_name = {part.feature: getattr(part, what) for part in attribution.contributions}
    return np.array([by_name[name] for name in PLAYERS])


def test_a_linear_function_gets_weight_times_distance_from_the_mean_without_error() -> None:
    weight_f = np.array([2.0, -1.0, 0.5, 0.0])
    result = sampled(lambda rows_nf: rows_nf @ weight_f + 7.0)
    np.testing.assert_allclose(in_order(result), weight_f * (CELL_F - BACKGROUND_BF.mean(axis=0)), atol=1e-12)
    np.testing.assert_allclose(in_order(result, "standard_error"), 0.0, atol=1e-12)


def test_an_additive_function_gets_each_part_minus_its_mean() -> None:
    parts = (np.exp, np.abs, np.square, np.tanh)

    def additive(rows_nf: Floats) -> Floats:
        return np.asarray(sum(part(column_n) for part, column_n in zip(parts, rows_nf.T, strict=True)))

    expected_f = [float(part(CELL_F[i]) - part(BACKGROUND_BF[:, i]).mean()) for i, part in enumerate(parts)]
    np.testing.assert_allclose(in_order(sampled(additive)), expected_f, atol=1e-12)


def test_features_with_the_same_effect_share_it_equally() -> None:
    result = by_feature(
        sampled(lambda x: x[:, 0] * x[:, 1], np.array([3.0, 3.0]), np.ones((1, 2)), {"a": (0,), "b": (1,)})
    )
    assert result == {"a": 4.0, "b": 4.0}  # 9 - 1 in two halves


def test_a_feature_without_effect_gets_nothing() -> None:
    result = sampled(lambda rows_nf: tangled(np.column_stack([rows_nf[:, :3], np.ones(len(rows_nf))])))
    assert by_feature(result)["d"] == 0.0
    assert result.contributions[-1].feature == "d"


def test_sampling_meets_the_sum_over_all_subsets() -> None:
    expected_f = exactly(tangled, CELL_F, BACKGROUND_BF)
    result = sampled(tangled, samples=12_000)
    error_f = in_order(result, "standard_error")
    assert (np.abs(in_order(result) - expected_f) < 4.0 * error_f).all()
    assert error_f.max() < 0.02 * np.abs(expected_f).max()


def test_the_standard_error_is_how_far_off_a_draw_is() -> None:
    expected_f = exactly(tangled, CELL_F, BACKGROUND_BF)
    draws = [sampled(tangled, samples=48, seed=seed) for seed in range(200)]
    off_f = np.sqrt(np.mean([(in_order(draw) - expected_f) ** 2 for draw in draws], axis=0))
    expected_error_f = np.sqrt(np.mean([in_order(draw, "standard_error") ** 2 for draw in draws], axis=0))
    np.testing.assert_allclose(expected_error_f, off_f, rtol=0.25)


@pytest.mark.parametrize("samples", [4, 30, 256])
def test_contributions_sum_to_the_prediction_minus_the_mean_of_the_background_used(samples: int) -> None:
    result = sampled(tangled, samples=samples)
    assert result.walks <= samples
    assert result.background == min(6, samples // 4)
    assert result.prediction == tangled(CELL_F[None])[0]
    assert sum(by_feature(result).values()) == pytest.approx(result.prediction - result.base, abs=1e-12)
    if result.background == len(BACKGROUND_BF):
        assert result.base == pytest.approx(float(tangled(BACKGROUND_BF).mean()), abs=1e-12)


def test_columns_of_one_player_change_together_and_columns_of_none_stay() -> None:
    seen = []

    def value(rows_nf: Floats) -> Floats:
        seen.append(rows_nf)
        return rows_nf.sum(axis=1)

    sampled(value, CELL_F, BACKGROUND_BF, {"together": (0, 1), "alone": (2,)})
    rows_nf = np.vstack(seen)
    assert (rows_nf[:, 3] == CELL_F[3]).all()
    np.testing.assert_array_equal(rows_nf[:, 0] == CELL_F[0], rows_nf[:, 1] == CELL_F[1])


def test_a_feature_missing_in_the_run_and_in_the_background_gets_nothing() -> None:
    def value(rows_nf: Floats) -> Floats:
        return np.asarray(np.where(np.isnan(rows_nf), [10.0, 20.0], rows_nf).prod(axis=1))

    players = {"a": (0,), "b": (1,)}
    result = sampled(value, np.array([2.0, np.nan]), np.array([[1.0, np.nan], [3.0, np.nan]]), players)
    assert by_feature(result) == {"a": 0.0, "b": 0.0}  # a: 2 x 20 against the mean of 20 and 60
    result = sampled(value, np.array([2.0, np.nan]), np.array([[2.0, 5.0]]), players)
    assert by_feature(result) == {"a": 0.0, "b": 30.0}  # the lack of b counts as 20, not as 5
    missing = next(part for part in result.contributions if part.feature == "b")
    assert (missing.value, missing.median) == (None, 5.0)


def test_many_rows_are_predicted_in_parts_with_the_same_result(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = sampled(tangled)
    monkeypatch.setattr(shapley, "_ROWS", 7)
    assert sampled(tangled) == whole


def test_settings_without_sense_are_refused() -> None:
    with pytest.raises(SettingsError, match="samples: found 3, expected 4 or more"):
        sampled(tangled, samples=3)
    with pytest.raises(SettingsError, match="background: found no cell"):
        sampled(tangled, background_bf=np.empty((0, 4)))


def test_a_cell_is_compared_with_cells_of_its_own_source(toy_data: Dataset) -> None:
    ridge = model.make("ridge").learn(toy_data)
    cell, target = int(np.flatnonzero(toy_data.source_n == 2)[0]), 1
    result = attribute(
        ridge.fitted_,
        toy_data.X[cell],
        toy_data.X,
        target=target,
        rng=np.random.default_rng(0),
    )
    log_np = ridge.predict(toy_data.X)
    log_relative_n = log_np[:, target] - log_np[:, 2]
    same_n = toy_data.source_n == 2
    assert result.background == same_n.sum()
    assert result.base == pytest.approx(float(log_relative_n[same_n].mean()))
    assert result.prediction == pytest.approx(float(log_relative_n[cell]))
    assert {part.feature for part in result.contributions} == {*toy_data.counters, "runtime_s"}
    median = float(np.median(toy_data.X.column("runtime_s")[same_n]))
    (runtime,) = (part for part in result.contributions if part.feature == "runtime_s")
    assert (runtime.value, runtime.median) == (toy_data.X.column("runtime_s")[cell], pytest.approx(median))


def test_a_source_without_known_cells_is_compared_with_all_as_if_they_came_from_it(toy_data: Dataset) -> None:
    ridge = model.make("ridge").learn(toy_data)
    others = toy_data.X[toy_data.source_n != 0]
    result = attribute(
        ridge.fitted_,
        toy_data.X[0],
        others,
        target=1,
        samples=2_000,
        rng=np.random.default_rng(0),
    )
    as_if_bf = others.values_nf.copy()
    as_if_bf[:, others.columns.mask("source")] = [1.0, 0.0, 0.0, 0.0]
    log_np = ridge.predict(Features(as_if_bf, others.columns))
    assert toy_data.source_n[0] == 0
    assert result.base == pytest.approx(float((log_np[:, 1] - log_np[:, 0]).mean()))


def test_an_attribution_turns_to_json() -> None:
    result = sampled(lambda rows_nf: np.nansum(rows_nf, axis=1), np.array([1.0, np.nan, 0.5, 3.0]))
    facts = json.loads(json.dumps(Explanation("a", "1", "p", "q", result).to_json(), allow_nan=False))["attribution"]
    assert [part["feature"] for part in facts["contributions"]] == [part.feature for part in result.contributions]
    assert {part["feature"] for part in facts["contributions"] if part["value"] is None} == {"b"}
    assert facts["contributions"][0]["factor"] == pytest.approx(math.exp(result.contributions[0].contribution))
