"""Trains small networks as one batched network, each without a fold of its own."""

# N cells, F features, I inputs, M members, P platforms

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from crossperf.arrays import Floats, Mask
from crossperf.model.fitted.network import Ensemble, Singles
from crossperf.model.learn.training import Stepper, batches, device_for, seeded

#: Bins of a feature: as many as keep the inputs below a number, within these limits.
_FEWEST_BINS, _MOST_BINS, _INPUTS = 4, 12, 2500
#: Bins narrower than this are widened: a feature that hardly varies says nothing about where in it a cell lies.
_NARROWEST_BIN = 1e-3
#: Errors beyond this share of the typical spread count linearly: nearly the mean absolute error, yet smooth.
_HUBER = 0.3


@dataclass(frozen=True)
class Plan:
    """How the networks are trained."""

    width: int = 64
    depth: int = 2
    steps: int = 700
    #: How often each cell is seen, at least and at most; short tables are trained for some steps at least.
    fewest_epochs: int = 16
    most_epochs: int = 75
    fewest_steps: int = 200
    batch_size: int = 128
    learning_rate: float = 3e-3
    weight_decay: float = 1e-2
    dropout: float = 0.1

    def steps_for(self, cells: int) -> int:
        """Return the optimizer steps for a number of cells."""
        least, most = (epochs * cells // self.batch_size for epochs in (self.fewest_epochs, self.most_epochs))
        return max(min(max(self.steps, least), most), min(self.steps, self.fewest_steps))


class Members(nn.Module):
    """M networks side by side: the weights of a layer are one tensor, and a layer is one batched product."""

    def __init__(self, members: int, inputs: int, outputs: int, plan: Plan) -> None:
        super().__init__()
        sizes = [inputs, *[plan.width] * plan.depth, outputs]
        pairs = list(pairwise(sizes))
        gains = [2.0] * plan.depth + [1.0]
        # Drawing fresh masks took a quarter of a step: windows into one pool of random rows do as well.
        self.pool = torch.empty(0)
        self.dropout, self.width = plan.dropout, plan.width
        self.weights = nn.ParameterList(
            (torch.rand(members, i, o) * 2 - 1) * math.sqrt(gain / i) for (i, o), gain in zip(pairs, gains, strict=True)
        )
        self.biases = nn.ParameterList((torch.rand(members, 1, o) * 2 - 1) / math.sqrt(i) for i, o in pairs)

    def forward(self, x_ni: Tensor) -> Tensor:
        """Return the predictions of all members, M x N x P."""
        hidden: Tensor = torch.matmul(x_ni, self.weights[0]) + self.biases[0]
        for weight, bias in zip(list(self.weights)[1:], list(self.biases)[1:], strict=True):
            hidden = functional.relu(hidden)
            if self.training and self.dropout:
                hidden = hidden * self._masks(hidden)
            hidden = torch.baddbmm(bias, hidden, weight)
        return hidden

    def _masks(self, hidden: Tensor) -> Tensor:
        members, rows, _ = hidden.shape
        if len(self.pool) < 2 * rows:
            kept = torch.rand(max(2048, 2 * rows), self.width, device=hidden.device) >= self.dropout
            self.pool = kept / (1.0 - self.dropout)
        start_m = torch.randint(len(self.pool) - rows, (members, 1), device=hidden.device)
        return self.pool[start_m + torch.arange(rows, device=hidden.device)]


def fit_ensemble(
    standard_nf: Floats, target_np: Floats, blind_mn: Mask, plan: Plan, *, device: str, seed: int
) -> Ensemble:
    """Return members of which each learned from the cells that it is not blind to.

    ``standard_nf`` may hold NaN; which features are missing in some cells becomes an input of its own. A target that is
    NaN teaches nothing.
    """
    where = device_for(device)
    bins = int(np.clip(_INPUTS // max(standard_nf.shape[1], 1), _FEWEST_BINS, _MOST_BINS))
    edges_qf = np.quantile(np.nan_to_num(standard_nf), np.linspace(0, 1, bins + 1), axis=0)
    spread_p = np.nanstd(target_np, axis=0)
    untrained = Ensemble(
        weights=(),
        biases=(),
        lower_fq=edges_qf[:-1].T.astype(np.float32),
        width_fq=np.maximum(np.diff(edges_qf, axis=0), _NARROWEST_BIN).T.astype(np.float32),
        gappy_f=np.asarray(np.isnan(standard_nf).any(axis=0)),
        mean_p=np.nanmean(target_np, axis=0),
        spread_p=np.where(spread_p > 1e-6, spread_p, 1.0),
    )
    with seeded(seed, where):
        inputs = untrained.inputs(standard_nf[:1].astype(np.float32)).shape[1]
        members = Members(len(blind_mn), inputs, target_np.shape[1], plan).to(where)
        _train(members, untrained, standard_nf, target_np, blind_mn, plan)
    weights, biases = (tuple(w.detach().cpu().numpy() for w in part) for part in (members.weights, members.biases))
    return replace(untrained, weights=weights, biases=biases)


def _train(
    members: Members, untrained: Ensemble, standard_nf: Floats, target_np: Floats, blind_mn: Mask, plan: Plan
) -> None:
    where = members.weights[0].device

    def tensor(values: Floats | Singles | Mask) -> Tensor:
        return torch.as_tensor(values, dtype=torch.float32, device=where)

    x_nf = standard_nf.astype(np.float32)
    y_np = tensor(np.nan_to_num((target_np - untrained.mean_p) / untrained.spread_p))
    known_np = tensor(~np.isnan(target_np))
    # A cell counts the same however many platforms it can run on.
    known_np = known_np * known_np.shape[1] / known_np.sum(dim=1, keepdim=True).clamp(min=1.0)
    sees_mn = tensor(~blind_mn)
    # Targets are standard for each platform; in the loss a platform counts as much as its times really vary.
    weight_p = tensor(untrained.spread_p / untrained.spread_p.mean())
    steps = plan.steps_for(len(x_nf))
    stepper = Stepper(members.parameters(), plan.learning_rate, steps, plan.weight_decay)
    members.train()
    for rows in batches(len(x_nf), plan.batch_size, steps, where):
        error_mnp = (members(tensor(untrained.inputs(x_nf[rows.cpu().numpy()]))) - y_np[rows]) * weight_p
        loss_mnp = functional.huber_loss(error_mnp, torch.zeros_like(error_mnp), delta=_HUBER, reduction="none")
        stepper.follow(((loss_mnp * known_np[rows]).mean(dim=2) * sees_mn[:, rows]).mean(dim=1).sum())
