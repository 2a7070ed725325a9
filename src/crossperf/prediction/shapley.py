"""Shapley values of features by sampling: how much each contributed to a prediction.

A walk starts at a known (background) cell and takes over the features of the cell in question one by one, in random
order; the step that a feature causes is its contribution on this walk. The mean over all orders and background cells
is its Shapley value: the only attribution under which contributions sum to the difference to be explained, features
with the same effect share it equally, and one without effect gets nothing (Shapley 1953; Strumbelj and Kononenko,
JMLR 2010).
"""

# N cells, F features, B background cells, K players, P platforms, W walks, S states of a walk, R pairs of walks

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from crossperf.arrays import Floats, Integers
from crossperf.dataset.features import SOURCE, Features
from crossperf.errors import SettingsError
from crossperf.model.fitted.model import FittedModel

#: From cells to one number each: what is to be explained.
Value = Callable[[Floats], Floats]
#: The columns that change together, by name.
Players = Mapping[str, Sequence[int]]

#: Rows that are predicted at once; more are predicted in several calls.
_ROWS = 65_536
#: Walks come in pairs, and two pairs from one background cell tell how far orders differ.
_LEAST_WALKS = 4


@dataclass(frozen=True)
class Contribution:
    """What one feature contributed to a log relative time; above 0 towards slower.

    `value` is the feature in this run, `median` in the background; ``None`` is not measured.
    """

    feature: str
    contribution: float
    standard_error: float
    value: float | None = None
    median: float | None = None

    @property
    def factor(self) -> float:
        """The contribution as a factor on the relative time: 2.0 made the prediction twice as slow."""
        return math.exp(self.contribution)


@dataclass(frozen=True)
class Attribution:
    """What took one prediction from the background's mean to where it is, strongest first.

    The contributions sum to ``prediction - base``; all are logs of relative times. `background` and `walks` are how
    many known cells were walked from, and how often in all.
    """

    prediction: float
    base: float
    contributions: tuple[Contribution, ...]
    background: int
    walks: int


def attribute(
    model: FittedModel, cell: Features, background: Features, *, target: int, samples: int = 256, rng: Generator
) -> Attribution:
    """Return what contributed to log(time on `target` / time on the source platform) of one cell.

    Background cells of the same source platform are used where there are any, and the source stays the cell's own:
    what is explained is how this run differs from known runs on its platform. A feature that was not measured is a
    value like any other, so that a counter which the run lacks shows what the lack of it did.

    ``cell`` is one run and ``background`` known runs, in the columns of the model.
    """
    columns, source = cell.columns, int(cell.source_n[0])
    same_b = background.source_n == source
    known = background[same_b] if same_b.any() else background

    def value(rows_nf: Floats) -> Floats:
        predicted_np = model.predict(Features(rows_nf, columns))
        return np.asarray(predicted_np[:, target] - predicted_np[:, source])

    fixed_f = columns.mask(SOURCE)
    players = {name: (column,) for column, name in enumerate(columns.names) if not fixed_f[column]}
    return shapley(value, cell.values_nf[0], known.values_nf, players, samples=samples, rng=rng)


def shapley(
    value: Value, cell_f: Floats, background_bf: Floats, players: Players, *, samples: int = 256, rng: Generator
) -> Attribution:
    """Return the Shapley values of players, each some columns that change together; other columns stay the cell's.

    Every order is walked in both directions (antithetic), from each background cell equally often, so contributions
    sum to the value of the cell minus the mean over the background to the last digit. The standard error is that of
    the draw of orders, given the background. ``samples`` is the most walks; where they are fewer than four for each
    background cell, some of it is drawn.

    >>> cells_bf = np.array([[0.0, 1.0], [2.0, 3.0]])
    >>> players = {"a": (0,), "b": (1,)}
    >>> product = shapley(lambda x: x[:, 0] * x[:, 1], np.array([4.0, 5.0]), cells_bf, players,
    ...                   rng=np.random.default_rng(0))
    >>> product.prediction, product.base, [(part.feature, part.contribution) for part in product.contributions]
    (20.0, 3.0, [('a', 10.0), ('b', 7.0)])
    """
    if samples < _LEAST_WALKS:
        raise SettingsError(f"samples: found {samples}, expected {_LEAST_WALKS} or more.")
    if not len(background_bf):
        raise SettingsError("background: found no cell, expected at least one to compare with.")
    most = samples // _LEAST_WALKS
    if len(background_bf) > most:
        background_bf = background_bf[np.sort(rng.choice(len(background_bf), most, replace=False))]
    count = len(background_bf)
    rounds = samples // (2 * count)
    player_f = np.full(len(cell_f), -1)
    for number, columns in enumerate(players.values()):
        player_f[list(columns)] = number
    fixed_bf = np.where(player_f < 0, cell_f, background_bf)
    ends_n = np.asarray(value(np.vstack([cell_f[None], fixed_bf])), np.float64)
    order_rbk = rng.permuted(np.broadcast_to(np.arange(len(players)), (rounds, count, len(players))), axis=2)
    order_wk = np.concatenate([order_rbk, order_rbk[:, :, ::-1]]).reshape(-1, len(players))
    step_wk = _walk(value, cell_f, fixed_bf, player_f, ends_n, order_wk)
    pair_rbk = step_wk.reshape(2, rounds, count, len(players)).mean(axis=0)
    contribution_k = pair_rbk.mean(axis=(0, 1))
    error_k = np.sqrt((pair_rbk.var(axis=0, ddof=1) / rounds).sum(axis=0)) / count
    contributions = [
        Contribution(
            name,
            float(contribution_k[number]),
            float(error_k[number]),
            _median(cell_f[list(columns)]) if len(columns) == 1 else None,
            _median(background_bf[:, columns[0]]) if len(columns) == 1 else None,
        )
        for number, (name, columns) in enumerate(players.items())
    ]
    contributions.sort(key=lambda part: -abs(part.contribution))
    return Attribution(float(ends_n[0]), float(ends_n[1:].mean()), tuple(contributions), count, len(order_wk))


def _walk(
    value: Value, cell_f: Floats, background_bf: Floats, player_f: Integers, ends_n: Floats, order_wk: Integers
) -> Floats:
    """Return the step that each player causes on each walk, with as few rows predicted as there are states."""
    count = order_wk.shape[1]
    start_w = np.resize(np.arange(len(background_bf)), len(order_wk))
    same_bf = (background_bf == cell_f) | (np.isnan(background_bf) & np.isnan(cell_f))
    moves_bk = np.stack([~same_bf[:, player_f == number].all(axis=1) for number in range(count)], axis=1)
    # State s is the one after s steps. One whose step moved nothing is the state before it; the last that moved
    # something is the cell itself.
    moved_ws = np.zeros((len(order_wk), count + 1), bool)
    moved_ws[:, 1:] = np.take_along_axis(moves_bk[start_w], order_wk, axis=1)
    moves_ws = moved_ws.cumsum(axis=1)
    arrived_ws = moves_ws == moves_ws[:, -1:]
    value_ws = np.where(arrived_ws, ends_n[0], ends_n[1:][start_w][:, None])
    rank_wk = np.argsort(order_wk, axis=1)
    walks, states = np.nonzero(moved_ws & ~arrived_ws)
    for first in range(0, len(walks), _ROWS):
        walk_n, state_n = walks[first : first + _ROWS], states[first : first + _ROWS]
        taken_nk = rank_wk[walk_n] < state_n[:, None]
        taken_nf = np.where(player_f < 0, True, taken_nk[:, player_f])
        value_ws[walk_n, state_n] = value(np.where(taken_nf, cell_f, background_bf[start_w[walk_n]]))
    last_ws = np.maximum.accumulate(np.where(moved_ws, np.arange(count + 1), 0), axis=1)
    step_ws = np.diff(np.take_along_axis(value_ws, last_ws, axis=1), axis=1)
    return np.asarray(np.take_along_axis(step_ws, rank_wk, axis=1))


def _median(values_b: Floats) -> float | None:
    measured_b = values_b[~np.isnan(values_b)]
    return float(np.median(measured_b)) if len(measured_b) else None
