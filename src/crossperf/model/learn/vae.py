"""The variational auto-encoder of counters, which knows what was not measured, and the novelty judged in its space.

Losses are in nats, summed over features and latent units and averaged over cells: that is what makes one
shared sigma with its closed-form optimum (Rybkin, Daniilidis and Levine 2021) balance the two terms.
"""

# N cells, F features, K latent units, B known cells

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from crossperf.arrays import Floats, Integers, Mask
from crossperf.model.fitted.confidence import Novelty
from crossperf.model.fitted.network import Bins
from crossperf.model.learn.training import AT_ONCE, Stepper, batches, device_for, filled, plain, seeded

T = TypeVar("T", bound=nn.Module)
Schedule = Literal["linear", "cyclical", "constant"]

#: Softest floor of log sigma: below it a few perfectly copied features would drown every other term.
LOG_SIGMA_FLOOR = -6.0
#: A latent unit tells something when its KL is above a tenth of a nat (a seventh of a bit), and a latent space has
#: collapsed when no unit does, or when the decoder restores less than this share of the features' variance.
INFORMED, LEAST_GAIN = 0.1, 0.1
#: A run is unusual beyond this quantile of the held-out workloads.
_ORDINARY = 0.95
_HELD_OUT = 0.15
_WIDTH, _BATCH, _RATE, _WEIGHT_DECAY = 128, 256, 2e-3, 1e-4
_MOST_MASKED = 0.6
#: Known cells that a run is compared with; more are thinned.
_MOST_KNOWN = 20_000


def layers(inputs: int, outputs: int, width: int, depth: int, dropout: float = 0.0) -> nn.Sequential:
    """Return a network of `depth` hidden layers of one width."""
    stack: list[nn.Module] = []
    for _ in range(depth):
        stack += [nn.Linear(inputs, width), nn.ReLU()]
        if dropout > 0:
            stack.append(PooledDropout(width, dropout))
        inputs = width
    return nn.Sequential(*stack, nn.Linear(inputs, outputs))


def kept_in_scale(network: T) -> T:
    """Return a network whose weights keep the size of signals through layers with ReLU (He et al. 2015).

    With torch's own start they shrink by 2.4 a layer: the six layers from features to targets hardly begin to learn.
    """
    for layer in network.modules():
        if isinstance(layer, nn.Linear):
            nn.init.kaiming_uniform_(layer.weight, nonlinearity="relu")
            nn.init.zeros_(layer.bias)
    return network


class PooledDropout(nn.Module):
    """Dropout whose masks are windows into one pool of random rows, drawn once.

    On a CPU, drawing a fresh mask took a quarter of a training step of the 3 x 1024 regressor (2.0 ms a layer
    and batch of 128, against 0.05 ms for a window of the pool).
    """

    _ROWS = 2048

    def __init__(self, width: int, share: float) -> None:
        super().__init__()
        self.width = width
        self.share = share
        self._pool: Tensor | None = None

    def forward(self, x_nu: Tensor) -> Tensor:
        """Return the units with a random share of them silenced while training, unchanged otherwise."""
        if not self.training:
            return x_nu
        if len(x_nu) >= self._ROWS:
            return functional.dropout(x_nu, self.share)
        if self._pool is None:
            self._pool = (torch.rand(self._ROWS, self.width, device=x_nu.device) >= self.share) / (1.0 - self.share)
        start = int(torch.randint(self._ROWS - len(x_nu), ()))
        return x_nu * self._pool[start : start + len(x_nu)]


class Inputs(nn.Module):
    """What a first layer sees: features with zeros where nothing was measured, which were, and places in their bins.

    So a zero that was measured and a counter that was not are two different inputs. While training, inputs are less
    their mean over the cells. Places in bins are never negative: without this, a step of the optimizer that moves all
    weights of a unit the same way moves its sum by the thousands of them, and most units soon were never active again.
    """

    feature: Tensor
    lower: Tensor
    width: Tensor
    centre: Tensor

    def __init__(self, features: int, bins: Bins | None = None) -> None:
        super().__init__()
        bins = bins or Bins(np.empty(0, np.int64), np.empty(0, np.float32), np.empty(0, np.float32))
        self.count = 2 * features + len(bins.feature_b)
        for name, values in zip(
            ("feature", "lower", "width"), (bins.feature_b, bins.lower_b, bins.width_b), strict=True
        ):
            self.register_buffer(name, torch.from_numpy(values))
        self.register_buffer("centre", torch.zeros(self.count))

    def forward(self, x_nf: Tensor, seen_nf: Tensor) -> Tensor:
        """Return the inputs, N x I."""
        place_nb = ((x_nf[:, self.feature] - self.lower) / self.width).clamp(0.0, 1.0) * seen_nf[:, self.feature]
        return torch.cat([x_nf * seen_nf, seen_nf, place_nb], dim=1) - self.centre

    def centre_on(self, x_nf: Tensor, seen_nf: Tensor) -> None:
        """Take the mean of these cells from all inputs."""
        with torch.no_grad():
            if len(x_nf) <= AT_ONCE:
                self.centre.add_(self(x_nf, seen_nf).mean(dim=0))
                return
            parts = (slice(start, start + AT_ONCE) for start in range(0, len(x_nf), AT_ONCE))
            sums = (self(x_nf[rows], seen_nf[rows]).sum(dim=0, dtype=torch.float64) for rows in parts)
            self.centre.add_(sum(sums) / len(x_nf))

    def fold_into(self, layer: nn.Linear) -> None:
        """Move the mean into the bias of the layer that sees the inputs: the same answers from inputs as they are."""
        with torch.no_grad():
            layer.bias.sub_(layer.weight @ self.centre)
            self.centre.zero_()


class Vae(nn.Module):
    """An encoder and a decoder of two layers each."""

    def __init__(self, features: int, latent_dim: int, width: int, bins: Bins | None = None) -> None:
        super().__init__()
        self.latent_dim = latent_dim
        self.inputs = Inputs(features, bins)
        self.encoder = layers(self.inputs.count, 2 * latent_dim, width, depth=2)
        self.decoder = layers(latent_dim, features, width, depth=2)

    def encode(self, x_nf: Tensor, seen_nf: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and log variance of q(z | what was seen)."""
        out = self.encoder(self.inputs(x_nf, seen_nf))
        mean_nk, log_var_nk = out.split(self.latent_dim, dim=1)
        return mean_nk, log_var_nk.clamp(-10.0, 4.0)


def sample(mean_nk: Tensor, log_var_nk: Tensor) -> Tensor:
    """Return one draw from q(z | x) for each cell."""
    return mean_nk + torch.randn_like(mean_nk) * (0.5 * log_var_nk).exp()


def kl_to_standard_normal(mean_nk: Tensor, log_var_nk: Tensor) -> Tensor:
    """Return KL(q(z|x) || N(0, I)) of each cell, in nats: summed over K, kept apart over N."""
    return kl_by_unit(mean_nk, log_var_nk).sum(dim=1)


def kl_by_unit(mean_nk: Tensor, log_var_nk: Tensor) -> Tensor:
    """Return KL(q(z|x) || N(0, I)) of each cell and latent unit, in nats."""
    return 0.5 * (mean_nk.square() + log_var_nk.exp() - 1.0 - log_var_nk)


def heard(values: Tensor, weight: float) -> Tensor:
    """Return the same values, through which gradients flow back with a weight."""
    return values if weight == 1.0 else weight * values + (1.0 - weight) * values.detach()


def optimal_log_sigma(x_nf: Tensor, decoded_nf: Tensor, seen_nf: Tensor) -> Tensor:
    """Return the log of the one sigma that fits best: the root of the mean squared error over what was seen.

    Floored softly at -6. No gradient flows through it, as it is the optimum for the decoder at hand.
    """
    error = ((x_nf - decoded_nf).square() * seen_nf).sum() / seen_nf.sum().clamp(min=1.0)
    log_sigma = 0.5 * error.clamp(min=1e-12).log().detach()
    return LOG_SIGMA_FLOOR + functional.softplus(log_sigma - LOG_SIGMA_FLOOR)


def gaussian_nll(x_nf: Tensor, decoded_nf: Tensor, seen_nf: Tensor, log_sigma: Tensor) -> Tensor:
    """Return -log p(x | z) of each cell, in nats: summed over the features that were seen, kept apart over N."""
    square_nf = ((x_nf - decoded_nf) / log_sigma.exp()).square()
    nll_nf = 0.5 * square_nf + log_sigma + 0.5 * math.log(2.0 * math.pi)
    return (nll_nf * seen_nf).sum(dim=1)


def kl_weight(schedule: Schedule, progress: float, cycles: int = 4) -> float:
    """Return the weight of the KL term at a point of training from 0 to 1; every schedule ends at 1.

    ``linear`` rises over the first half; ``cyclical`` (Fu et al. 2019) does so in each of `cycles` cycles.

    >>> [kl_weight("linear", p) for p in (0.0, 0.25, 0.5, 1.0)]
    [0.0, 0.5, 1.0, 1.0]
    >>> [kl_weight("cyclical", p) for p in (0.0, 0.0625, 0.2, 0.25, 1.0)]
    [0.0, 0.5, 1.0, 0.0, 1.0]
    """
    if schedule == "constant":
        return 1.0
    if schedule == "cyclical" and progress < 1.0:
        progress = progress * cycles % 1.0
    return min(1.0, 2.0 * progress)


@dataclass(frozen=True)
class Bound:
    """The negative evidence lower bound of a batch, in nats a cell, with its parts."""

    loss: Tensor
    mean_nk: Tensor
    log_sigma: Tensor
    kl_n: Tensor


def negative_bound(
    vae: Vae, x_nf: Tensor, seen_nf: Tensor, shown_nf: Tensor, weight: float, *, calibrated: bool = True
) -> Bound:
    """Return ``-log p(x | z) + weight * KL(q(z | shown) || N(0, I))`` of a batch, averaged over its cells.

    The encoder is shown less than was seen where the model is to learn to do without. With ``calibrated``, sigma is at
    its optimum for the batch; otherwise it is 1.
    """
    mean_nk, log_var_nk = vae.encode(x_nf, shown_nf)
    decoded_nf = vae.decoder(sample(mean_nk, log_var_nk))
    log_sigma = optimal_log_sigma(x_nf, decoded_nf, seen_nf) if calibrated else torch.zeros((), device=x_nf.device)
    nll_n = gaussian_nll(x_nf, decoded_nf, seen_nf, log_sigma)
    kl_n = kl_to_standard_normal(mean_nk, log_var_nk)
    return Bound(nll_n.mean() + weight * kl_n.mean(), mean_nk, log_sigma, kl_n.detach())


@dataclass(frozen=True)
class Information:
    """What a latent space carries: a space without information has collapsed, however many of its units vary.

    Parameters
    ----------
    kl_nats
        KL to the prior of a cell, summed over units and averaged over cells.
    informed_units
        Units of which that is above `INFORMED` nats.
    decoder_gain
        Share of the features' variance that the decoder restores from a draw; the mean of each feature restores 0.
    sigma
        The decoder's error, in spreads of a feature.
    """

    kl_nats: float
    informed_units: int
    active_units: int
    decoder_gain: float
    sigma: float
    collapsed: bool

    @classmethod
    def of(cls, vae: Vae, x_nf: Tensor, seen_nf: Tensor) -> Information:
        """Return what the latent space of cells carries."""
        mean_nk, log_var_nk = vae.encode(x_nf, seen_nf)
        kl_k = kl_by_unit(mean_nk, log_var_nk).mean(dim=0)
        square_nf = (x_nf - vae.decoder(sample(mean_nk, log_var_nk))).square() * seen_nf
        count_f = seen_nf.sum(dim=0).clamp(min=1.0)
        centred_nf = (x_nf - (x_nf * seen_nf).sum(dim=0) / count_f) * seen_nf
        gain = 1.0 - float(square_nf.sum() / centred_nf.square().sum().clamp(min=1e-12))
        informed = int((kl_k > INFORMED).sum())
        return cls(
            kl_nats=float(kl_k.sum()),
            informed_units=informed,
            active_units=active_units(mean_nk),
            decoder_gain=gain,
            sigma=float((square_nf.sum() / seen_nf.sum().clamp(min=1.0)).sqrt()),
            collapsed=not informed or gain < LEAST_GAIN,
        )


def active_units(mean_nk: Tensor) -> int:
    """Return how many latent units carry information: those whose mean varies over cells by more than 0.01."""
    return int((mean_nk.var(dim=0) > 0.01).sum())


def fit_novelty(
    standard_nf: Floats, groups_n: Integers, cpu_n: Mask, *, latent_dim: int, steps: int, device: str, seed: int
) -> Novelty:
    """Return the latent space of training cells; whole groups are held out to learn what is ordinary."""
    where = device_for(device)
    rng = np.random.default_rng(seed)
    held_out_n = _held_out(groups_n, rng)
    x_nf, seen_nf = filled(standard_nf, where)
    with seeded(seed, where):
        network = Vae(standard_nf.shape[1], latent_dim, _WIDTH).to(where)
        train_n = torch.from_numpy(np.flatnonzero(~held_out_n)).to(where)
        cpu_rows = torch.from_numpy(np.flatnonzero(~held_out_n & cpu_n)).to(where)
        if 0 < len(cpu_rows) < len(train_n):
            _train(network, x_nf[cpu_rows], seen_nf[cpu_rows], max(1, steps // 20))
        _train(network, x_nf[train_n], seen_nf[train_n], steps)
        network.eval()
        with torch.no_grad():
            mean_nk, _ = network.encode(x_nf, seen_nf)
            judged_n = held_out_n if held_out_n.any() else ~held_out_n
            rows = torch.from_numpy(judged_n).to(where)
            log_sigma = optimal_log_sigma(x_nf[rows], network.decoder(mean_nk[rows]), seen_nf[rows])
    latent_nk = mean_nk.cpu().numpy().astype(np.float64)
    row_b = np.arange(len(standard_nf))
    if len(row_b) > _MOST_KNOWN:
        row_b = np.sort(rng.choice(row_b, _MOST_KNOWN, replace=False))
    novelty = Novelty(
        encoder=plain(network.encoder),
        decoder=plain(network.decoder),
        sigma=float(log_sigma.exp()),
        known_bk=latent_nk[row_b],
        known_bf=np.nan_to_num(standard_nf[row_b]),
        row_b=row_b,
        ordinary_surprise=1.0,
        ordinary_distance=1.0,
        active_units=active_units(mean_nk),
    )
    return _calibrated(novelty, standard_nf, latent_nk, groups_n, np.flatnonzero(judged_n))


def _held_out(groups_n: Integers, rng: np.random.Generator) -> Mask:
    """Return the cells of the groups held out; none where that would be all or nothing."""
    groups = rng.permutation(np.unique(groups_n))
    held_out_n = np.isin(groups_n, groups[: round(_HELD_OUT * len(groups))])
    return held_out_n if held_out_n.any() and not held_out_n.all() else np.zeros(len(groups_n), bool)


def _calibrated(
    novelty: Novelty, standard_nf: Floats, latent_nk: Floats, groups_n: Integers, judged: Integers
) -> Novelty:
    """Return the space with its two measures scaled to 1 at the edge of what held-out cells show."""
    surprise_n = novelty.surprise(standard_nf[judged])[0].mean(axis=1)
    distance_n = novelty.nearest(latent_nk[judged], groups_n[judged], groups_n[novelty.row_b])[1]
    surprise, distance = (max(float(np.quantile(values, _ORDINARY)), 1e-9) for values in (surprise_n, distance_n))
    return replace(novelty, ordinary_surprise=surprise, ordinary_distance=distance)


def _train(network: Vae, x_nf: Tensor, seen_nf: Tensor, steps: int) -> None:
    """Train the VAE; of each cell a random share of what was measured is hidden, from none to most of it."""
    stepper = Stepper(network.parameters(), _RATE, steps, _WEIGHT_DECAY)
    network.train()
    for step, rows in enumerate(batches(len(x_nf), _BATCH, steps, x_nf.device)):
        x, seen = x_nf[rows], seen_nf[rows]
        hidden_share = _MOST_MASKED * torch.rand(len(x), 1, device=x.device)
        shown = seen * (torch.rand_like(seen) >= hidden_share)
        stepper.follow(negative_bound(network, x, seen, shown, kl_weight("linear", step / max(steps - 1, 1))).loss)
