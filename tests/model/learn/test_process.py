"""The Gaussian process: its closed forms against plain refits, and what it predicts far from everything."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from crossperf.model.fitted.blend import GaussianProcess  # noqa: E402
from crossperf.model.learn import process  # noqa: E402
from crossperf.model.learn.process import LeftOut, fit_process  # noqa: E402
from crossperf.model.learn.together import together  # noqa: E402


def test_the_error_of_a_left_out_group_is_that_of_a_refit_without_it() -> None:
    rng = np.random.default_rng(0)
    places, targets = rng.standard_normal((30, 4)), rng.standard_normal((30, 2))
    groups = np.sort(rng.integers(0, 7, 30))
    apart = np.linalg.norm(places[:, None] - places[None], axis=2)
    matrix = np.exp(-apart) + 0.1 * np.eye(30)
    inverse = torch.from_numpy(np.linalg.inv(matrix))
    errors = process._left_out_errors(inverse, inverse @ torch.from_numpy(targets), groups).numpy()
    for group in np.unique(groups):
        own, others = groups == group, groups != group
        refit = matrix[np.ix_(own, others)] @ np.linalg.solve(matrix[np.ix_(others, others)], targets[others])
        np.testing.assert_allclose(errors[own], targets[own] - refit, atol=1e-9)


def fitted(rng: np.random.Generator, cells: int = 120) -> tuple[GaussianProcess, LeftOut, np.ndarray, np.ndarray]:
    places = rng.standard_normal((cells, 3))
    targets = np.stack([np.sin(places[:, 0]), places[:, 1]], axis=1)
    groups = np.arange(cells) // 4
    folds = np.stack([groups % 8, np.where(groups % 5 == 0, 0, -1)])
    made, left_out = fit_process(places, targets, groups, folds, seed=0)
    return made, left_out, places, targets


def test_it_follows_a_smooth_law_and_ignores_a_feature_without_meaning() -> None:
    made, _, _, targets = fitted(np.random.default_rng(1))
    new = np.random.default_rng(2).standard_normal((200, 3)).clip(-1.5, 1.5)
    predicted, _ = made.predict(new)
    truth = np.stack([np.sin(new[:, 0]), new[:, 1]], axis=1)
    assert np.abs(predicted - truth).mean() < 0.5 * np.abs(truth - targets.mean(axis=0)).mean()
    length_e = 1.0 / np.linalg.norm(made.axes_ek, axis=1)
    assert length_e[2] > 1.3 * max(length_e[:2])


def test_distances_are_those_between_the_cells_though_only_leading_directions_count() -> None:
    rng = np.random.default_rng(3)
    places = torch.from_numpy(rng.standard_normal((200, 5)) @ rng.standard_normal((5, 40)) + 3.0)
    axes = process._directions(places)
    assert axes.shape == (40, 5)
    before, after = (torch.cdist(own, own) for own in (places, places @ axes))
    assert float((after - before).abs().max()) < 0.05 * float(before.max())
    np.testing.assert_allclose((axes.T @ axes).numpy(), np.eye(5), atol=1e-9)


def test_no_direction_is_left_out_where_all_count_and_one_is_left_where_none_does() -> None:
    places = torch.from_numpy(np.random.default_rng(4).standard_normal((50, 6)))
    turned = places @ process._directions(places)
    np.testing.assert_allclose(torch.cdist(turned, turned), torch.cdist(places, places), atol=1e-6)
    assert process._directions(torch.ones(4, 3, dtype=torch.float64)).shape == (3, 1)


def test_far_from_everything_it_predicts_the_mean_and_its_gap_is_one() -> None:
    made, _, places, targets = fitted(np.random.default_rng(1))
    far, gap = made.predict(np.full((1, 3), 1e3))
    np.testing.assert_allclose(far[0], targets.mean(axis=0), atol=1e-6)
    assert gap[0] == pytest.approx(1.0)
    assert made.predict(places[:1])[1][0] < 0.02


def test_what_is_held_out_is_predicted_worse_than_what_is_known_and_cells_in_no_fold_are_left_open() -> None:
    made, left_out, places, targets = fitted(np.random.default_rng(1))
    known, _ = made.predict(places)
    assert np.abs(left_out.predicted_rnp[0] - targets).mean() > np.abs(known - targets).mean()
    np.testing.assert_array_equal(np.isnan(left_out.gap_rn[1]), np.arange(120) // 4 % 5 != 0)
    assert (left_out.gap_rn[0] > 0).all()


def test_where_some_targets_are_absent_cells_with_all_of_them_teach_the_scales() -> None:
    rng = np.random.default_rng(5)
    places, groups = torch.from_numpy(rng.standard_normal((80, 3))), np.arange(80) // 4
    targets = torch.from_numpy(rng.standard_normal((80, 3)))
    targets[groups % 5 == 0, 2] = torch.nan
    whole = groups % 5 != 0

    def scales(rows: np.ndarray) -> torch.Tensor:
        own = targets[rows]
        learned = process._learn_scales(
            places[rows], own, together(own.numpy()), groups[rows], np.random.default_rng(0)
        )
        return torch.cat([learned[0], learned[1][None]])

    assert len(together(targets.numpy())) == 2
    assert torch.equal(scales(np.ones(80, bool)), scales(whole))
    # Where fewer than half of the cells have all targets, those of the others count as well.
    targets[groups % 5 < 3, 2] = torch.nan
    assert not torch.equal(scales(np.ones(80, bool)), scales(groups % 5 >= 3))


def test_a_long_table_is_thinned_by_whole_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "MOST_CELLS", 50)
    groups = np.arange(200) // 5
    kept = process._thinned(groups, np.random.default_rng(0))
    assert 40 <= len(kept) <= 50
    assert all((groups[kept] == group).sum() == 5 for group in np.unique(groups[kept]))
