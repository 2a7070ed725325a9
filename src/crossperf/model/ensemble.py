"""Small networks trained as one batched network, each without a fold of its own, and their median."""

# N cells, F features, V features that some cells lack, Q bins of a feature, I inputs, M members, P platforms

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from crossperf.model.training import Stepper, batches, device_for, seeded

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Bins of a feature: so many that the inputs stay below a number, within these limits.
_FEWEST_BINS, _MOST_BINS, _INPUTS = 4, 12, 2500
#: Bins narrower than this are widened: a feature that hardly varies says nothing about where in it a cell lies.
_NARROWEST_BIN = 1e-3
#: Errors beyond this share of the typical spread count linearly: nearly the mean absolute error, yet smooth.
_HUBER = 0.3
_PREDICT_ROWS = 512


@dataclass(frozen=True)
class Plan:
    """How the networks are trained."""

    width: int = 192
    depth: int = 2
    steps: int = 700
    #: Each cell is seen between so often and so often, but short tables are trained for some steps at least.
    fewest_epochs: int = 16
    most_epochs: int = 75
    fewest_steps: int = 200
    batch_size: int = 128
    learning_rate: float = 3e-3
    weight_decay: float = 1e-2
    dropout: float = 0.1

    def steps_for(self, cells: int) -> int:
        """Return the optimizer steps for a table of so many cells."""
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
        """Return the answers of all members, M x N x P."""
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


@dataclass(frozen=True)
class Ensemble:
    """Fitted members, with where the bins of each feature lie and how targets were scaled."""

    members: Members
    lower_fq: Tensor
    width_fq: Tensor
    gappy_f: NDArray[np.bool_]
    mean_p: Floats
    spread_p: Floats
    device: torch.device

    @classmethod
    def fit(
        cls,
        standard_nf: Floats,
        target_np: Floats,
        blind_mn: NDArray[np.bool_],
        plan: Plan,
        *,
        device: str,
        seed: int,
    ) -> Ensemble:
        """Return members of which each learned from the cells that it is not blind to.

        ``standard_nf`` may hold NaN; which features are missing in some cells becomes an input of its own.
        """
        where = device_for(device)
        gappy_f = np.asarray(np.isnan(standard_nf).any(axis=0))
        bins = int(np.clip(_INPUTS // max(standard_nf.shape[1], 1), _FEWEST_BINS, _MOST_BINS))
        edges_qf = np.quantile(np.nan_to_num(standard_nf), np.linspace(0, 1, bins + 1), axis=0)
        lower_fq = torch.tensor(edges_qf[:-1].T, dtype=torch.float32, device=where)
        width_fq = torch.tensor(np.maximum(np.diff(edges_qf, axis=0), _NARROWEST_BIN).T, dtype=torch.float32).to(where)
        mean_p = target_np.mean(axis=0)
        spread_p = np.where((spread := target_np.std(axis=0)) > 1e-6, spread, 1.0)
        with seeded(seed, where):
            inputs = standard_nf.shape[1] * (1 + bins) + int(gappy_f.sum())
            members = Members(len(blind_mn), inputs, target_np.shape[1], plan).to(where)
            made = cls(members, lower_fq, width_fq, gappy_f, mean_p, spread_p, where)
            made._train(made._tensor(standard_nf), made._tensor((target_np - mean_p) / spread_p), blind_mn, plan)
        members.eval()
        return made

    def _train(self, x_nf: Tensor, y_np: Tensor, blind_mn: NDArray[np.bool_], plan: Plan) -> None:
        sees_mn = self._tensor(~blind_mn)
        # Targets are standard for each platform; in the loss a platform counts as much as its times really vary.
        weight_p = self._tensor(self.spread_p / self.spread_p.mean())
        steps = plan.steps_for(len(x_nf))
        stepper = Stepper(self.members.parameters(), plan.learning_rate, steps, plan.weight_decay)
        self.members.train()
        for rows in batches(len(x_nf), plan.batch_size, steps, self.device):
            error_mnp = (self.members(self._inputs(x_nf[rows])) - y_np[rows]) * weight_p
            loss_mn = functional.huber_loss(error_mnp, torch.zeros_like(error_mnp), delta=_HUBER, reduction="none")
            stepper.clear()
            (loss_mn.mean(dim=2) * sees_mn[:, rows]).mean(dim=1).sum().backward()  # type: ignore[no-untyped-call]
            stepper.step()

    def _tensor(self, values: NDArray[Any]) -> Tensor:
        return torch.as_tensor(np.asarray(values), dtype=torch.float32, device=self.device)

    def _inputs(self, x_nf: Tensor) -> Tensor:
        """Return each feature, how far a cell lies through each of its bins, and which features were measured."""
        gap_nv = torch.isnan(x_nf[:, torch.from_numpy(self.gappy_f)]).to(x_nf.dtype)
        x_nf = torch.nan_to_num(x_nf)
        bins_nfq = ((x_nf[:, :, None] - self.lower_fq) / self.width_fq).clamp(0.0, 1.0)
        return torch.cat([x_nf, bins_nfq.flatten(1), gap_nv], dim=1)

    def predict_each(self, standard_nf: Floats) -> Floats:
        """Return the predictions of every member, M x N x P."""
        parts = []
        with torch.inference_mode():
            for start in range(0, len(standard_nf), _PREDICT_ROWS):
                chunk = self._tensor(standard_nf[start : start + _PREDICT_ROWS])
                parts.append(self.members(self._inputs(chunk)).cpu().numpy())
        return np.concatenate(parts, axis=1).astype(np.float64) * self.spread_p + self.mean_p

    def predict(self, standard_nf: Floats) -> Floats:
        """Return the median over members: one that is blind to an application, or explodes, is outvoted."""
        return np.asarray(np.median(self.predict_each(standard_nf), axis=0))

    def state(self) -> dict[str, NDArray[Any]]:
        """Return what was learned as named arrays."""
        weights = {f"members.{name}": value.cpu().numpy() for name, value in self.members.state_dict().items()}
        bins = {"lower_fq": self.lower_fq.cpu().numpy(), "width_fq": self.width_fq.cpu().numpy()}
        return {**weights, **bins, "gappy_f": self.gappy_f, "mean_p": self.mean_p, "spread_p": self.spread_p}

    @classmethod
    def from_state(cls, state: Mapping[str, NDArray[Any]], plan: Plan, *, device: str) -> Ensemble:
        """Return the ensemble that `state` described."""
        where = device_for(device)
        prefix = "members."
        weights = {n.removeprefix(prefix): torch.from_numpy(a) for n, a in state.items() if n.startswith(prefix)}
        count, inputs, _ = weights["weights.0"].shape
        members = Members(count, inputs, len(state["mean_p"]), plan)
        members.load_state_dict(weights)
        return cls(
            members.to(where).eval(),
            torch.from_numpy(state["lower_fq"]).to(where),
            torch.from_numpy(state["width_fq"]).to(where),
            state["gappy_f"],
            state["mean_p"],
            state["spread_p"],
            where,
        )
