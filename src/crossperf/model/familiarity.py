"""Does this run look like what the model has learned from? A VAE's likelihood and distances in its latent space."""

# N cells, F features, K latent units, B known cells, Q quantiles

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from crossperf.model import vae as v
from crossperf.model.training import Stepper, batches, device_for, filled, seeded
from crossperf.records import looks

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: A run is unusual beyond what this share of held-back workloads shows.
_ORDINARY = 0.95
_HELD_BACK = 0.15
_WIDTH, _BATCH, _RATE, _WEIGHT_DECAY = 128, 256, 2e-3, 1e-4
_MOST_MASKED = 0.6
#: What a feature that must agree weighs beside the others.
_MUST_AGREE = 1e3
#: Known cells that a run is compared with; more are thinned.
_MOST_KNOWN = 20_000


@dataclass(frozen=True)
class Oddness:
    """How a run differs from what is known: two measures, each 1 at the edge of the ordinary, and by which features."""

    surprise_n: Floats
    distance_n: Floats
    by_feature_nf: Floats

    @property
    def score_n(self) -> Floats:
        """The greater of the two measures: up to 1 is ordinary."""
        return np.maximum(self.surprise_n, self.distance_n)

    @property
    def words(self) -> tuple[str, ...]:
        """A plain word for each run."""
        return tuple(looks(score) for score in self.score_n.tolist())


@dataclass(frozen=True)
class Familiarity:
    """A VAE of standard features, the latent places of known cells, and what is ordinary among held-back workloads."""

    vae: v.Vae
    sigma: float
    known_bk: Floats
    known_bf: Floats
    row_b: Integers
    ordinary_surprise: float
    ordinary_distance: float
    active_units: int
    device: torch.device

    @classmethod
    def fit(
        cls,
        standard_nf: Floats,
        groups_n: Integers,
        cpu_n: NDArray[np.bool_],
        *,
        latent_dim: int,
        steps: int,
        device: str,
        seed: int,
    ) -> Familiarity:
        """Learn the latent space; whole groups are held back to tell what is ordinary for cells it has not seen."""
        where = device_for(device)
        rng = np.random.default_rng(seed)
        groups = rng.permutation(np.unique(groups_n))
        held_back_n = np.isin(groups_n, groups[: round(_HELD_BACK * len(groups))])
        if held_back_n.all() or not held_back_n.any():
            held_back_n = np.zeros(len(groups_n), bool)
        x_nf, seen_nf = filled(standard_nf, where)
        with seeded(seed, where):
            network = v.Vae(standard_nf.shape[1], latent_dim, _WIDTH).to(where)
            train_n = torch.from_numpy(np.flatnonzero(~held_back_n)).to(where)
            cpu_rows = torch.from_numpy(np.flatnonzero(~held_back_n & cpu_n)).to(where)
            if 0 < len(cpu_rows) < len(train_n):
                _train(network, x_nf[cpu_rows], seen_nf[cpu_rows], max(1, steps // 20))
            _train(network, x_nf[train_n], seen_nf[train_n], steps)
            network.eval()
            with torch.no_grad():
                mean_nk, _ = network.encode(x_nf, seen_nf)
                decoded_nf = network.decoder(mean_nk)
                judged_n = torch.from_numpy(held_back_n if held_back_n.any() else ~held_back_n).to(where)
                log_sigma = v.optimal_log_sigma(x_nf[judged_n], decoded_nf[judged_n], seen_nf[judged_n])
                active = v.active_units(mean_nk)
        row_b = np.arange(len(standard_nf))
        if len(row_b) > _MOST_KNOWN:
            row_b = np.sort(rng.choice(row_b, _MOST_KNOWN, replace=False))
        latent_nk = mean_nk.cpu().numpy().astype(np.float64)
        known_bf = np.nan_to_num(standard_nf[row_b])
        made = cls(network, float(log_sigma.exp()), latent_nk[row_b], known_bf, row_b, 1.0, 1.0, active, where)
        judged = np.flatnonzero(judged_n.cpu().numpy())
        surprise_n = made._surprise_nf(standard_nf[judged])[0].mean(axis=1)
        distance_n = made._nearest(latent_nk[judged], groups_n[judged], groups_n[row_b])[1]
        ordinary = [float(np.quantile(values, _ORDINARY)) for values in (surprise_n, distance_n)]
        ordinary_surprise, ordinary_distance = (max(value, 1e-9) for value in ordinary)
        return replace(made, ordinary_surprise=ordinary_surprise, ordinary_distance=ordinary_distance)

    def latent(self, standard_nf: Floats) -> Floats:
        """Return the latent mean of each cell."""
        with torch.inference_mode():
            mean_nk, _ = self.vae.encode(*filled(standard_nf, self.device))
        return mean_nk.cpu().numpy().astype(np.float64)

    def impute(self, standard_nf: Floats, exact_f: NDArray[np.bool_]) -> Floats:
        """Return the cells with what the nearest known cell had where nothing was measured.

        Nearest is meant in the features that were measured; those marked `exact` (the source) must agree before
        any other counts. Values of a real cell go together; what the decoder expects, feature by feature, does not.
        """
        completed_nf = standard_nf.copy()
        seen_nf = ~np.isnan(standard_nf)
        weight_f = np.where(exact_f, _MUST_AGREE, 1.0)
        first_u, number_n = distinct(seen_nf)
        for kind, seen_f in enumerate(seen_nf[first_u]):
            rows = np.flatnonzero(number_n == kind)
            asked, known = ((values * weight_f)[:, seen_f] for values in (standard_nf[rows], self.known_bf))
            near_n = torch.cdist(torch.from_numpy(asked), torch.from_numpy(known)).argmin(dim=1).numpy()
            completed_nf[np.ix_(rows, ~seen_f)] = self.known_bf[near_n][:, ~seen_f]
        return completed_nf

    def oddness(self, standard_nf: Floats) -> Oddness:
        """Return how each cell differs from what is known."""
        error_nf, latent_nk = self._surprise_nf(standard_nf)
        nearest_n, distance_n = self._nearest(latent_nk)
        apart_nf = np.nan_to_num(standard_nf - self.known_bf[nearest_n]) ** 2
        return Oddness(
            error_nf.mean(axis=1) / self.ordinary_surprise,
            distance_n / self.ordinary_distance,
            error_nf / self.ordinary_surprise + apart_nf,
        )

    def _decode(self, latent_nk: Floats) -> Floats:
        with torch.inference_mode():
            decoded_nf = self.vae.decoder(torch.as_tensor(latent_nk, dtype=torch.float32, device=self.device))
        return np.asarray(decoded_nf.cpu().numpy(), np.float64)

    def _surprise_nf(self, standard_nf: Floats) -> tuple[Floats, Floats]:
        """Return the squared error of the decoder in its own sigmas (twice its negative log likelihood)."""
        latent_nk = self.latent(standard_nf)
        return np.nan_to_num((standard_nf - self._decode(latent_nk)) / self.sigma) ** 2, latent_nk

    def _nearest(
        self, latent_nk: Floats, own_n: Integers | None = None, group_b: Integers | None = None
    ) -> tuple[Integers, Floats]:
        """Return the nearest known cell of each, and its distance; cells of a run's own group can be left out."""
        nearest, distance = [], []
        known_bk = torch.from_numpy(self.known_bk)
        for start in range(0, len(latent_nk), 512):
            rows = slice(start, start + 512)
            apart_nb = torch.cdist(torch.from_numpy(latent_nk[rows]), known_bk)
            if own_n is not None and group_b is not None:
                apart_nb[torch.from_numpy(own_n[rows, None] == group_b[None])] = torch.inf
            found = apart_nb.min(dim=1)
            nearest.append(found.indices.numpy())
            distance.append(found.values.numpy())
        return np.concatenate(nearest), np.nan_to_num(np.concatenate(distance), posinf=0.0)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return what was learned as named arrays."""
        weights = {f"vae.{name}": value.cpu().numpy() for name, value in self.vae.state_dict().items()}
        numbers = np.array([self.sigma, self.ordinary_surprise, self.ordinary_distance, self.active_units])
        return {
            **weights,
            "numbers": numbers,
            "known_bk": self.known_bk,
            "known_bf": self.known_bf,
            "row_b": self.row_b,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, NDArray[Any]], *, device: str) -> Familiarity:
        """Return what `state` described."""
        where = device_for(device)
        weights = {n.removeprefix("vae."): torch.from_numpy(a) for n, a in state.items() if n.startswith("vae.")}
        known_bk = state["known_bk"]
        network = v.Vae(state["known_bf"].shape[1], known_bk.shape[1], _WIDTH)
        network.load_state_dict(weights)
        sigma, surprise, distance, active = (float(number) for number in state["numbers"])
        network.to(where).eval()
        return cls(network, sigma, known_bk, state["known_bf"], state["row_b"], surprise, distance, int(active), where)


def distinct(rows_nf: NDArray[np.bool_]) -> tuple[Integers, Integers]:
    """Return the number of one row of each kind, and the kind of each row."""
    packed_nb = np.packbits(rows_nf, axis=1)
    kinds = np.ascontiguousarray(packed_nb).view(f"V{packed_nb.shape[1]}").ravel()
    _, first_u, number_n = np.unique(kinds, return_index=True, return_inverse=True)
    return first_u, number_n


def _train(network: v.Vae, x_nf: Tensor, seen_nf: Tensor, steps: int) -> None:
    """Train the VAE; of each cell a random share of what was measured is hidden, from none to most of it."""
    stepper = Stepper(network.parameters(), _RATE, steps, _WEIGHT_DECAY)
    network.train()
    for step, rows in enumerate(batches(len(x_nf), _BATCH, steps, x_nf.device)):
        x, seen = x_nf[rows], seen_nf[rows]
        hidden_share = _MOST_MASKED * torch.rand(len(x), 1, device=x.device)
        mean_nk, log_var_nk = network.encode(x, seen * (torch.rand_like(seen) >= hidden_share))
        decoded_nf = network.decoder(v.sample(mean_nk, log_var_nk))
        log_sigma = v.optimal_log_sigma(x, decoded_nf, seen)
        nll_n = v.gaussian_nll(x, decoded_nf, seen, log_sigma)
        kl_n = v.kl_to_standard_normal(mean_nk, log_var_nk)
        stepper.clear()
        (nll_n.mean() + v.kl_weight("linear", step / max(steps - 1, 1)) * kl_n.mean()).backward()  # type: ignore[no-untyped-call]
        stepper.step()
