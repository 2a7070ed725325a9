"""The seed's model, a calibrated VAE with a deep regressor on its latent space, and the regressor alone."""

# N cells, F features, K latent units, P platforms

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, get_args

import numpy as np

from crossperf.arrays import Floats, Integers, Mask
from crossperf.dataset.features import Features
from crossperf.errors import MissingDependencyError
from crossperf.model.base import Groups, Predictor
from crossperf.model.fitted.model import Part
from crossperf.model.fitted.network import LatentNetwork, Network
from crossperf.model.fitted.scales import Encoder, Limits

try:
    import torch
    from torch import Tensor, nn
except ImportError as error:
    raise MissingDependencyError("The networks need PyTorch: pip install 'crossperf[torch]'") from error

from crossperf.model.learn import vae as v
from crossperf.model.learn.training import Batch, Stepper, batches, contrast_loss, device_for, plain, seeded, watched

#: How often the cells of a table are seen, at least and at most, all stages together, but for very short tables.
EPOCHS = (12, 100)
FEWEST_STEPS = 200
#: The VAE is held by its KL term, and needs little of this.
_VAE_WEIGHT_DECAY = 1e-4
#: The loss on the groups held out, or nothing to watch.
Watch = Callable[[], float] | None


class _Network(Predictor):
    """What the networks share: encoded features, standardised targets, and settings that are checked in one place."""

    mask_share: float
    validation_share: float
    device: str
    seed: int

    def _learn(self, features: Features, target_np: Floats, groups: Groups, limits: Limits) -> Part:
        self._check_settings()
        self._device = device_for(self.device)
        encoder = Encoder.fit(features.values_nf)
        mean_p = np.nanmean(target_np, axis=0)
        contrast_np = target_np - np.nanmean(target_np, axis=1, keepdims=True)
        scale_p = np.nanstd(contrast_np if target_np.shape[1] > 1 else target_np, axis=0)
        scale_p = np.where(scale_p > 1e-6, scale_p, 1.0)
        standard_np = (target_np - mean_p) / scale_p
        with seeded(self.seed, self._device):
            network = self._build(len(features.columns), target_np.shape[1]).to(self._device)
            network.train()
            cells = Batch.of(encoder(features.values_nf), standard_np, self._device)
            train_n, held_out_n = self._hold_out(groups.workload_n)
            watch = self._loss_of(network, cells[held_out_n]) if len(held_out_n) else None
            self._train(network, cells[train_n], groups.cpu_n[train_n], watch)
        return self._fitted(encoder, mean_p, scale_p, network)

    def _hold_out(self, groups_n: Integers) -> tuple[Integers, Integers]:
        """Return the rows to train on and the rows to watch: whole groups, drawn by the seed."""
        groups = np.random.default_rng(self.seed).permutation(np.unique(groups_n))
        watched = groups[: round(self.validation_share * len(groups))]
        watched_n = np.isin(groups_n, watched)
        return np.flatnonzero(~watched_n), np.flatnonzero(watched_n)

    def _shown(self, seen_nf: Tensor) -> Tensor:
        """Return what the network is shown: what was seen, less a random share."""
        if not self.mask_share:
            return seen_nf
        return seen_nf * (torch.rand_like(seen_nf) >= self.mask_share)

    def _loss_of(self, network: nn.Module, held: Batch) -> Watch:
        return lambda: float(contrast_loss(self._forward(network, held.x_nf, held.seen_nf) - held.y_np, held.known_np))

    def _check_settings(self) -> None:
        for name, value in self.get_params().items():
            low = 0 if name not in _AT_LEAST_ONE else 1
            if isinstance(value, int | float) and name != "seed" and not isinstance(value, bool) and not value >= low:
                raise self._unfit(name, f"{low} or more")
            if name in _SHARES and not value < 1:
                raise self._unfit(name, "a share below 1")

    @abstractmethod
    def _build(self, n_features: int, n_outputs: int) -> nn.Module:
        """Return the untrained network."""

    @abstractmethod
    def _train(self, network: Any, cells: Batch, cpu_n: Mask, watch: Watch) -> None:
        """Train the network in place."""

    @abstractmethod
    def _forward(self, network: Any, x_nf: Tensor, seen_nf: Tensor) -> Tensor:
        """Return standardised targets."""

    @abstractmethod
    def _fitted(self, encoder: Encoder, mean_p: Floats, scale_p: Floats, network: Any) -> Part:
        """Return the trained network as plain arrays."""


_AT_LEAST_ONE = ("latent_dim", "vae_width", "width", "depth", "batch_size", "kl_cycles")
_SHARES = ("mask_share", "dropout", "validation_share")


def steps_for(cells: int, batch_size: int, steps: int, all_steps: int | None = None) -> int:
    """Return the steps of a stage, scaled with the others so that a table is seen neither too often nor too rarely.

    >>> [steps_for(cells, 128, 500, 1000) for cells in (256, 2_000, 128_000)]
    [100, 500, 6000]
    >>> steps_for(10, 128, 500, 1000)
    100
    """
    least, most = (epochs * cells / batch_size for epochs in EPOCHS)
    planned = max(all_steps or steps, 1)
    return round(steps * min(max(planned, least), max(most, FEWEST_STEPS)) / planned)


@dataclass(eq=False, repr=False)
class VaeDnn(_Network):
    """The seed's method: a latent space of counters over all platforms, then a deep regressor on it.

    In order: the VAE's decoder is calibrated on cells of class ``cpu``; the VAE learns from all cells, the
    KL term's weight on a schedule that ends at 1; for the later part of its steps the regressor's loss joins
    the VAE's; then the regressor alone is trained on the latent mean. Each stage can be switched off.

    Parameters
    ----------
    latent_dim, vae_width
        Units of the latent space, and of the two hidden layers of encoder and decoder.
    width, depth
        The regressor: 3 layers of 1024, as in the seed.
    calibrated
        One sigma shared by all features at its optimum; off: sigma is 1.
    cpu_steps, vae_steps, feedback_steps, dnn_steps
        Optimizer steps of the four stages; 0 switches a stage off. Long tables get more and short ones fewer,
        so that each cell is seen between 12 and 100 times (more often in tables of less than 256 cells).
    feedback_weight
        Weight of the regressor's loss beside the VAE's, in nats for each feature.
    validation_share
        Share of the groups held out to stop early on and to choose the best weights; 0 trains on all of them.
    mask_share
        Share of the measured features hidden from the encoder, so that it learns to do without.

    >>> quick = VaeDnn(latent_dim=2, vae_width=8, width=8, vae_steps=2, feedback_steps=5, dnn_steps=2)
    >>> quick.fit([[0.0], [1.0]], [[0.0, 1.0]] * 2).predict([[0.5]]).shape
    (1, 2)
    """

    name: ClassVar[str] = "vae-dnn"
    latent_dim: int = 32
    vae_width: int = 256
    width: int = 1024
    depth: int = 3
    calibrated: bool = True
    kl_schedule: v.Schedule = "linear"
    kl_cycles: int = 4
    cpu_steps: int = 20
    vae_steps: int = 20
    feedback_steps: int = 750
    dnn_steps: int = 150
    feedback_weight: float = 10.0
    mask_share: float = 0.1
    dropout: float = 0.5
    batch_size: int = 128
    learning_rate: float = 1e-3
    weight_decay: float = 1e-2
    validation_share: float = 0.0
    device: str = "auto"
    seed: int = 0

    def _check_settings(self) -> None:
        super()._check_settings()
        if self.kl_schedule not in get_args(v.Schedule):
            raise self._unfit("kl_schedule", f"one of {', '.join(get_args(v.Schedule))}")

    def _build(self, n_features: int, n_outputs: int) -> nn.Module:
        return nn.ModuleDict(
            {
                "vae": v.Vae(n_features, self.latent_dim, self.vae_width),
                "regressor": v.layers(self.latent_dim, n_outputs, self.width, self.depth, self.dropout),
            }
        )

    def _forward(self, network: Any, x_nf: Tensor, seen_nf: Tensor) -> Tensor:
        mean_nk, _ = network["vae"].encode(x_nf, seen_nf)
        return network["regressor"](mean_nk)  # type: ignore[no-any-return]

    def _fitted(self, encoder: Encoder, mean_p: Floats, scale_p: Floats, network: Any) -> Part:
        return LatentNetwork(encoder, mean_p, scale_p, plain(network["regressor"]), plain(network["vae"].encoder))

    def _train(self, network: Any, cells: Batch, cpu_n: Mask, watch: Watch) -> None:
        stages = (self.cpu_steps, self.vae_steps, self.feedback_steps, self.dnn_steps)
        cpu_steps, vae_steps, feedback_steps, dnn_steps = (
            steps_for(len(cells), self.batch_size, steps, sum(stages)) for steps in stages
        )
        self.fit_summary_: dict[str, Any] = {}
        self._calibrate_on_cpu(network["vae"], cells, cpu_n, cpu_steps)
        regressor = network["regressor"]
        stepper = Stepper(regressor.parameters(), self.learning_rate, feedback_steps + dnn_steps, self.weight_decay)
        self._learn_latent_space(network, cells, stepper, vae_steps, feedback_steps, watch)
        with torch.no_grad():
            latent_nk, _ = network["vae"].encode(cells.x_nf, cells.seen_nf)
        active = v.active_units(latent_nk)
        self.fit_summary_ |= {"active_units": active, "latent_dim": self.latent_dim, "collapsed": active == 0}
        for rows in watched(batches(len(cells), self.batch_size, dnn_steps, self._device), network, watch):
            stepper.follow(contrast_loss(regressor(latent_nk[rows]) - cells.y_np[rows], cells.known_np[rows]))
        # Active latent units (none is a collapse), sigma of the decoder, and KL of the last batch.
        self.fit_summary_ |= {
            name: float(value) for name, value in self.fit_summary_.items() if isinstance(value, Tensor)
        }

    def _calibrate_on_cpu(self, vae: v.Vae, cells: Batch, cpu_n: Mask, steps: int) -> None:
        """Train the VAE on the cells of class cpu, where the table has such cells and others."""
        if not cpu_n.any() or cpu_n.all():
            return
        cpu_cells = cells[np.flatnonzero(cpu_n)]
        stepper = Stepper(vae.parameters(), self.learning_rate, steps, _VAE_WEIGHT_DECAY)
        for rows in batches(len(cpu_cells), self.batch_size, steps, self._device):
            stepper.follow(self._bound(vae, cpu_cells[rows], kl_weight=1.0).loss)

    def _learn_latent_space(
        self, network: Any, cells: Batch, regressor: Stepper, vae_steps: int, feedback_steps: int, watch: Watch
    ) -> None:
        """Train the VAE on all cells; after `vae_steps` the regressor learns along and its loss joins in."""
        vae, steps = network["vae"], vae_steps + feedback_steps
        stepper = Stepper(vae.parameters(), self.learning_rate, steps, _VAE_WEIGHT_DECAY)
        # In nats for each feature, so that neither loss drowns the other as tables grow wider.
        vae_share = 1.0 / (self.feedback_weight * cells.x_nf.shape[1]) if self.feedback_weight else 1.0
        plan = batches(len(cells), self.batch_size, steps, self._device)
        for step, rows in enumerate(watched(plan, network, watch if feedback_steps else None)):
            batch = cells[rows]
            bound = self._bound(vae, batch, v.kl_weight(self.kl_schedule, step / max(steps - 1, 1), self.kl_cycles))
            if step < vae_steps:
                stepper.follow(bound.loss)
                continue
            residual_np = network["regressor"](bound.mean_nk) - batch.y_np
            regressor.clear()
            stepper.follow(vae_share * bound.loss + contrast_loss(residual_np, batch.known_np))
            regressor.step()

    def _bound(self, vae: v.Vae, cells: Batch, kl_weight: float) -> v.Bound:
        """Return the negative evidence bound of a batch, with a share of its features hidden."""
        shown_nf = self._shown(cells.seen_nf)
        bound = v.negative_bound(vae, cells.x_nf, cells.seen_nf, shown_nf, kl_weight, calibrated=self.calibrated)
        self.fit_summary_ |= {"sigma": bound.log_sigma.exp(), "kl_nats": bound.kl_n.mean()}
        return bound


@dataclass(eq=False, repr=False)
class Dnn(_Network):
    """The regressor alone, 3 layers of 1024 on the features themselves: what the latent space must match.

    Parameters are those of `VaeDnn`.

    >>> Dnn(width=8, dnn_steps=5).fit([[0.0], [1.0]], [[0.0, 1.0]] * 2).predict([[0.5]]).shape
    (1, 2)
    """

    name: ClassVar[str] = "dnn"
    width: int = 1024
    depth: int = 3
    dnn_steps: int = 900
    mask_share: float = 0.1
    dropout: float = 0.5
    batch_size: int = 128
    learning_rate: float = 1e-3
    weight_decay: float = 1e-2
    validation_share: float = 0.0
    device: str = "auto"
    seed: int = 0

    def _build(self, n_features: int, n_outputs: int) -> nn.Module:
        return v.layers(2 * n_features, n_outputs, self.width, self.depth, self.dropout)

    def _forward(self, network: Any, x_nf: Tensor, seen_nf: Tensor) -> Tensor:
        return network(torch.cat([x_nf * seen_nf, seen_nf], dim=1))  # type: ignore[no-any-return]

    def _fitted(self, encoder: Encoder, mean_p: Floats, scale_p: Floats, network: Any) -> Part:
        return Network(encoder, mean_p, scale_p, plain(network))

    def _train(self, network: Any, cells: Batch, cpu_n: Mask, watch: Watch) -> None:
        steps = steps_for(len(cells), self.batch_size, self.dnn_steps)
        stepper = Stepper(network.parameters(), self.learning_rate, steps, self.weight_decay)
        for rows in watched(batches(len(cells), self.batch_size, steps, self._device), network, watch):
            batch = cells[rows]
            predicted_np = self._forward(network, batch.x_nf, self._shown(batch.seen_nf))
            stepper.follow(contrast_loss(predicted_np - batch.y_np, batch.known_np))
