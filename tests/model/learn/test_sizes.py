"""Settings that follow from the size of a table: within their limits, and never against the user's choice."""

from dataclasses import asdict
from typing import Any

import pytest

from crossperf.model.learn.sizes import BATCHES, BINS, EPOCHS, HIGHEST_RATE, LATENT, MOST_SEEN, Sized

SEED: dict[str, Any] = {}


@pytest.mark.parametrize("cells", [2, 100, 1_500, 10_000, 1_000_000])
@pytest.mark.parametrize("features", [1, 50, 5_000])
def test_every_setting_stays_within_its_limits(cells: int, features: int) -> None:
    sized = Sized.of(cells, features, SEED)
    epochs = (min(EPOCHS[0], MOST_SEEN / cells), EPOCHS[1])  # of a long table each cell is seen less often
    pairs = ((sized.epochs, epochs), (sized.batch_size, BATCHES), (sized.bins, BINS), (sized.latent_dim, LATENT))
    assert all(low <= value <= high for value, (low, high) in pairs)
    assert sized.steps(cells) >= 1


def test_a_longer_table_is_seen_less_often_in_more_steps() -> None:
    sizes = [1_000, 3_000, 10_000, 100_000]
    epochs = [Sized.of(cells, 50, SEED).epochs for cells in sizes]
    steps = [Sized.of(cells, 50, SEED).steps(cells) for cells in sizes]
    assert epochs == sorted(epochs, reverse=True)
    assert steps[-1] > 5 * steps[-2]


def test_wider_layers_learn_at_a_lower_rate() -> None:
    sized = Sized.of(1_000, 50, SEED)
    assert sized.rate_of(64) == sized.rate_of(256) == HIGHEST_RATE
    assert sized.rate_of(2048) == sized.rate_of(1024) / 2 == 1 / 2048


def test_a_wide_table_gets_fewer_bins() -> None:
    assert Sized.of(10_000, 500, SEED).bins < Sized.of(10_000, 50, SEED).bins


@pytest.mark.parametrize("chosen", [{"epochs": 7.5}, {"bins": 1}, {"mask_share": 0.3}, {"learning_rate": 0.5}], ids=str)
def test_what_was_chosen_stays(chosen: dict[str, Any]) -> None:
    ((name, value),) = chosen.items()
    assert asdict(Sized.of(1_000, 50, SEED | chosen))[name] == value
