"""Learns the latent space that novelty is judged in, and what is ordinary there."""

# N cells, F features, K latent units

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from crossperf.arrays import Floats, Integers, Mask
from crossperf.model.fitted.confidence import Novelty
from crossperf.model.learn import vae as v
from crossperf.model.learn.training import Stepper, batches, device_for, filled, plain, seeded

#: A run is unusual beyond this quantile of the held-out workloads.
_ORDINARY = 0.95
_HELD_OUT = 0.15
_WIDTH, _BATCH, _RATE, _WEIGHT_DECAY = 128, 256, 2e-3, 1e-4
_MOST_MASKED = 0.6
#: Known cells that a run is compared with; more are thinned.
_MOST_KNOWN = 20_000


def fit_novelty(
    standard_nf: Floats, groups_n: Integers, cpu_n: Mask, *, latent_dim: int, steps: int, device: str, seed: int
) -> Novelty:
    """Return the latent space of training cells; whole groups are held out to learn what is ordinary."""
    where = device_for(device)
    rng = np.random.default_rng(seed)
    held_out_n = _held_out(groups_n, rng)
    x_nf, seen_nf = filled(standard_nf, where)
    with seeded(seed, where):
        network = v.Vae(standard_nf.shape[1], latent_dim, _WIDTH).to(where)
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
            log_sigma = v.optimal_log_sigma(x_nf[rows], network.decoder(mean_nk[rows]), seen_nf[rows])
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
        active_units=v.active_units(mean_nk),
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


def _train(network: v.Vae, x_nf: Tensor, seen_nf: Tensor, steps: int) -> None:
    """Train the VAE; of each cell a random share of what was measured is hidden, from none to most of it."""
    stepper = Stepper(network.parameters(), _RATE, steps, _WEIGHT_DECAY)
    network.train()
    for step, rows in enumerate(batches(len(x_nf), _BATCH, steps, x_nf.device)):
        x, seen = x_nf[rows], seen_nf[rows]
        hidden_share = _MOST_MASKED * torch.rand(len(x), 1, device=x.device)
        shown = seen * (torch.rand_like(seen) >= hidden_share)
        stepper.follow(v.negative_bound(network, x, seen, shown, v.kl_weight("linear", step / max(steps - 1, 1))).loss)
