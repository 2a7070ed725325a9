"""Folds: every row held out once, groups whole, draws by the seed."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest

from crossperf import dataset
from crossperf.dataset import SPLITS, Dataset, Split
from crossperf.errors import DatasetError


@pytest.mark.parametrize("split", SPLITS)
def test_every_row_is_held_out_exactly_once_and_never_trained_on_at_that_time(toy_data: Dataset, split: Split) -> None:
    parts = dataset.folds(toy_data, split, n_folds=4, seed=3)
    held_out_n = np.concatenate([part.test_n for part in parts])
    np.testing.assert_array_equal(np.sort(held_out_n), np.arange(len(toy_data)))
    for part in parts:
        np.testing.assert_array_equal(np.sort(np.r_[part.train_n, part.test_n]), np.arange(len(toy_data)))


@pytest.mark.parametrize(
    ("split", "of"),
    [
        ("workload", lambda data, n: data.workloads[data.workload_n[n]]),
        ("app", lambda data, n: data.workloads[data.workload_n[n]][0]),
    ],
)
def test_a_workload_or_an_application_is_never_on_both_sides(
    toy_data: Dataset, split: Split, of: Callable[[Dataset, int], object]
) -> None:
    for part in dataset.folds(toy_data, split, n_folds=4):
        assert not {of(toy_data, n) for n in part.train_n} & {of(toy_data, n) for n in part.test_n}


def test_the_row_split_does_put_siblings_on_both_sides(toy_data: Dataset) -> None:
    (part, *_) = dataset.folds(toy_data, "row", n_folds=4)
    assert set(toy_data.workload_n[part.train_n]) & set(toy_data.workload_n[part.test_n])


@pytest.mark.parametrize("split", SPLITS)
def test_the_same_seed_gives_the_same_folds_and_another_seed_others(toy_data: Dataset, split: Split) -> None:
    first, again, *others = (
        [part.test_n.tolist() for part in dataset.folds(toy_data, split, n_folds=2, seed=seed)]
        for seed in (0, 0, 1, 2, 3, 4)
    )
    assert first == again
    assert any(part != other for part, other in pairwise([first, *others]))


@pytest.mark.parametrize(("split", "n_folds"), [("app", 5), ("workload", 13), ("row", 49), ("row", 1)])
def test_more_folds_than_groups_are_refused_with_the_range_to_choose_from(
    toy_data: Dataset, split: Split, n_folds: int
) -> None:
    n_groups = {"app": 4, "workload": 12, "row": 48}[split]
    with pytest.raises(DatasetError, match=f"^folds: found {n_folds} .* expected between 2 and {n_groups}") as caught:
        dataset.folds(toy_data, split, n_folds)
    assert caught.value.facts == {"argument": "folds", "split": split, "groups": n_groups}


def test_a_single_group_is_refused_with_what_is_missing(toy_data: Dataset) -> None:
    single = toy_data.take(np.flatnonzero(toy_data.app_n == 0))
    with pytest.raises(DatasetError, match="found 1 application, expected at least 2 applications for the split 'app'"):
        dataset.folds(single, "app", 5)
