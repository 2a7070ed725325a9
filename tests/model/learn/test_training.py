"""Batches, early stopping and the loss over platforms."""

import numpy as np
import pytest
import torch
from torch import nn

from crossperf.errors import SettingsError
from crossperf.model.learn import training

CPU = torch.device("cpu")


def test_batches_show_each_cell_once_a_pass() -> None:
    torch.manual_seed(0)
    rows = torch.cat(list(training.batches(cells=12, size=4, steps=6, device=CPU)))
    assert sorted(rows[:12].tolist()) == list(range(12))
    assert sorted(rows[12:].tolist()) == list(range(12))
    assert rows[:12].tolist() != rows[12:].tolist()


def test_a_batch_larger_than_the_table_is_the_table() -> None:
    assert [len(rows) for rows in training.batches(cells=3, size=128, steps=2, device=CPU)] == [3, 3]


def test_watching_stops_when_the_loss_rises_and_leaves_the_best_weights() -> None:
    network = nn.Linear(1, 1)
    losses = iter([3.0, 1.0, 2.0, 2.0, 2.0, 0.5])
    seen = []
    for step, _ in enumerate(training.watched([torch.zeros(1)] * 100, network, lambda: next(losses), 3, every=1)):
        nn.init.constant_(network.weight, float(step))
        seen.append(step)
    assert len(seen) == 5
    assert network.weight.item() == 1.0


def cells(target: list[list[float]], weights: list[float]) -> training.Batch:
    return training.Batch.of(np.zeros((len(target), 1)), np.array(target), CPU, np.array(weights))


def test_the_loss_is_half_the_square_near_zero_and_linear_beyond_worked_by_hand() -> None:
    near = training.robust_loss(torch.tensor([[0.2, 0.0]]), cells([[0.0, 0.0]], [1.0, 1.0])).item()
    far = training.robust_loss(torch.tensor([[2.0, 0.0]]), cells([[0.0, 0.0]], [1.0, 1.0])).item()
    assert near == pytest.approx(0.5 * 0.2**2 / 2)
    assert far == pytest.approx(0.3 * (2.0 - 0.15) / 2)


def test_a_platform_whose_times_vary_more_costs_more() -> None:
    first, second = (
        training.robust_loss(torch.tensor([error]), cells([[0.0, 0.0]], [1.5, 0.5])).item()
        for error in ([0.1, 0.0], [0.0, 0.1])
    )
    assert first == pytest.approx(9 * second)


def test_platforms_that_were_not_measured_cost_nothing() -> None:
    two = training.robust_loss(torch.tensor([[0.4, -0.4]]), cells([[0.0, 0.0]], [1.0, 1.0])).item()
    third = cells([[0.0, 0.0, np.nan]], [1.0, 1.0, 1.0])
    assert training.robust_loss(torch.tensor([[0.4, -0.4, 100.0]]), third).item() == pytest.approx(two)


def test_filled_puts_zeros_where_nothing_was_seen() -> None:
    values, seen = training.filled(np.array([[1.0, np.nan]]), CPU)
    assert values.tolist() == [[1.0, 0.0]]
    assert seen.tolist() == [[1.0, 0.0]]


def test_seeded_draws_repeat_and_leave_the_callers_random_state_alone() -> None:
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    with training.seeded(7, CPU):
        first = torch.rand(4)
    assert torch.equal(torch.rand(1), expected)
    with training.seeded(7, CPU):
        assert torch.equal(torch.rand(4), first)


def test_a_device_that_is_not_there_is_named() -> None:
    with pytest.raises(SettingsError, match=r"'warp9'.*expected 'auto'"):
        training.device_for("warp9")
