"""The seed's model, a calibrated VAE with a deep regressor on its latent space, and the regressor alone."""

# N cells, F features, K latent units, P platforms

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, get_args

import numpy as np
from numpy.typing import NDArray

from crossperf.errors import MissingDependencyError, SettingsError
from crossperf.model.base import Floats, Predictor, State
from crossperf.model.encoding import Encoder

try:
    import torch
    from torch import Tensor, nn
except ImportError as error:
    raise MissingDependencyError("The networks need PyTorch: pip install 'crossperf[torch]'") from error

from crossperf.model import vae as v
from crossperf.model.training import Cells, Stepper, batches, contrast_loss, device_for, filled, seeded, watched

#: How often the cells of a table are seen, at least and at most, all stages together, but for very short tables.
EPOCHS = (12, 100)
FEWEST_STEPS = 200
#: Cells that are predicted at a time: large enough for the matrix units, small enough for the caches.
_PREDICT_ROWS = 512

#: The VAE is held by its KL term, and needs little of this.
_VAE_WEIGHT_DECAY = 1e-4
#: The loss on the groups held back, or nothing to watch.
Watch = Callable[[], float] | None


class _Network(Predictor):
    """What the networks share: encoded features, standard targets, and a forward pass as `_forward`."""

    state_file: ClassVar[str] = "weights.pt"
    mask_share: float
    validation_share: float
    device: str
    seed: int

    def _fit(
        self, features_nf: Floats, target_np: Floats, groups_n: NDArray[np.int64], cpu_n: NDArray[np.bool_]
    ) -> None:
        self._check_settings()
        self._device = device_for(self.device)
        self.encoder_ = Encoder.fit(features_nf)
        self.target_mean_p_ = np.nanmean(target_np, axis=0)
        contrast_np = target_np - np.nanmean(target_np, axis=1, keepdims=True)
        scale_p = np.nanstd(contrast_np if target_np.shape[1] > 1 else target_np, axis=0)
        self.target_scale_p_ = np.where(scale_p > 1e-6, scale_p, 1.0)
        standard_np = (target_np - self.target_mean_p_) / self.target_scale_p_
        with seeded(self.seed, self._device):
            self.network_ = self._build(features_nf.shape[1], target_np.shape[1]).to(self._device)
            self.network_.train()
            cells = Cells(*filled(self.encoder_(features_nf), self._device), *filled(standard_np, self._device))
            train_n, held_out_n = self._hold_out(groups_n)
            watch = self._loss_of(cells[held_out_n]) if len(held_out_n) else None
            self._train(cells[train_n], cpu_n[train_n], watch)
        self.network_.eval()

    def _hold_out(self, groups_n: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
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

    def _loss_of(self, cells: Cells) -> Watch:
        return lambda: float(contrast_loss(self._forward(cells.x_nf, cells.seen_nf) - cells.y_np, cells.known_np))

    def _predict(self, features_nf: Floats) -> Floats:
        parts = []
        with torch.inference_mode():
            for start in range(0, len(features_nf), _PREDICT_ROWS):
                chunk_nf = self.encoder_(features_nf[start : start + _PREDICT_ROWS])
                parts.append(self._forward(*filled(chunk_nf, self._device)).cpu().numpy())
        standard_np = np.concatenate(parts).astype(np.float64)
        return np.asarray(standard_np * self.target_scale_p_ + self.target_mean_p_)

    def _get_state(self) -> State:
        weights = {f"network.{name}": value.cpu().numpy() for name, value in self.network_.state_dict().items()}
        targets = {"target.mean_p": self.target_mean_p_, "target.scale_p": self.target_scale_p_}
        return {**self.encoder_.state(), **targets, **weights}

    def _set_state(self, state: State) -> None:
        self._device = device_for(self.device)
        self.encoder_ = Encoder.from_state(state)
        self.target_mean_p_, self.target_scale_p_ = state["target.mean_p"], state["target.scale_p"]
        self.network_ = self._build(self.n_features_in_, self.n_outputs_)
        prefix = "network."
        weights = {n.removeprefix(prefix): torch.from_numpy(a) for n, a in state.items() if n.startswith(prefix)}
        self.network_.load_state_dict(weights)
        self.network_.to(self._device).eval()

    def _check_settings(self) -> None:
        for name, value in self.get_params().items():
            low = 0 if name not in _AT_LEAST_ONE else 1
            if isinstance(value, int | float) and name != "seed" and not isinstance(value, bool) and not value >= low:
                raise SettingsError(f"{self.name}: found {name}={value!r}, expected {low} or more.", setting=name)
            if name in _SHARES and not value < 1:
                raise SettingsError(f"{self.name}: found {name}={value!r}, expected a share below 1.", setting=name)

    @abstractmethod
    def _build(self, n_features: int, n_outputs: int) -> nn.Module:
        """Return the untrained network."""

    @abstractmethod
    def _train(self, cells: Cells, cpu_n: NDArray[np.bool_], watch: Watch) -> None:
        """Train `network_` in place."""

    @abstractmethod
    def _forward(self, x_nf: Tensor, seen_nf: Tensor) -> Tensor:
        """Return standard targets."""


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
        Share of the groups held back to stop early on and to choose the best weights; 0 trains on all of them.
    mask_share
        Share of the measured features hidden from the encoder, so that it learns to do without.
    """

    name: ClassVar[str] = "vae-dnn"
    _last: tuple[Tensor, Tensor] | None = None

    def __init__(
        self,
        latent_dim: int = 32,
        vae_width: int = 256,
        width: int = 1024,
        depth: int = 3,
        calibrated: bool = True,
        kl_schedule: v.Schedule = "linear",
        kl_cycles: int = 4,
        cpu_steps: int = 20,
        vae_steps: int = 20,
        feedback_steps: int = 750,
        dnn_steps: int = 150,
        feedback_weight: float = 10.0,
        mask_share: float = 0.1,
        dropout: float = 0.5,
        batch_size: int = 128,
        learning_rate: float = 1e-3,
        weight_decay: float = 1e-2,
        validation_share: float = 0.0,
        device: str = "auto",
        seed: int = 0,
    ) -> None:
        self.latent_dim = latent_dim
        self.vae_width = vae_width
        self.width = width
        self.depth = depth
        self.calibrated = calibrated
        self.kl_schedule = kl_schedule
        self.kl_cycles = kl_cycles
        self.cpu_steps = cpu_steps
        self.vae_steps = vae_steps
        self.feedback_steps = feedback_steps
        self.dnn_steps = dnn_steps
        self.feedback_weight = feedback_weight
        self.mask_share = mask_share
        self.dropout = dropout
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.validation_share = validation_share
        self.device = device
        self.seed = seed

    def _check_settings(self) -> None:
        super()._check_settings()
        if self.kl_schedule not in get_args(v.Schedule):
            choices = ", ".join(get_args(v.Schedule))
            raise SettingsError(f"{self.name}: found kl_schedule={self.kl_schedule!r}, expected one of {choices}.")

    def _build(self, n_features: int, n_outputs: int) -> nn.Module:
        return nn.ModuleDict(
            {
                "vae": v.Vae(n_features, self.latent_dim, self.vae_width),
                "regressor": v.layers(self.latent_dim, n_outputs, self.width, self.depth, self.dropout),
            }
        )

    def _forward(self, x_nf: Tensor, seen_nf: Tensor) -> Tensor:
        mean_nk, _ = self._vae.encode(x_nf, seen_nf)
        return self._regress(mean_nk)

    def latent(self, features_nf: Floats) -> Floats:
        """Return the latent mean of each cell."""
        with torch.inference_mode():
            mean_nk, _ = self._vae.encode(*filled(self.encoder_(features_nf), self._device))
        return mean_nk.cpu().numpy().astype(np.float64)

    @property
    def _vae(self) -> v.Vae:
        return self.network_["vae"]  # type: ignore[no-any-return, index]

    def _regress(self, latent_nk: Tensor) -> Tensor:
        return self.network_["regressor"](latent_nk)  # type: ignore[no-any-return, index]

    def _train(self, cells: Cells, cpu_n: NDArray[np.bool_], watch: Watch) -> None:
        stages = (self.cpu_steps, self.vae_steps, self.feedback_steps, self.dnn_steps)
        cpu_steps, vae_steps, feedback_steps, dnn_steps = (
            steps_for(len(cells), self.batch_size, steps, sum(stages)) for steps in stages
        )
        self._calibrate_on_cpu(cells, cpu_n, cpu_steps)
        regressor = self.network_["regressor"]  # type: ignore[index]
        stepper = Stepper(regressor.parameters(), self.learning_rate, feedback_steps + dnn_steps, self.weight_decay)
        self._learn_latent_space(cells, stepper, vae_steps, feedback_steps, watch)
        with torch.no_grad():
            latent_nk, _ = self._vae.encode(cells.x_nf, cells.seen_nf)
        self._summarise(latent_nk)
        for rows in watched(batches(len(cells), self.batch_size, dnn_steps, self._device), self.network_, watch):
            stepper.clear()
            contrast_loss(self._regress(latent_nk[rows]) - cells.y_np[rows], cells.known_np[rows]).backward()
            stepper.step()

    def _summarise(self, latent_nk: Tensor) -> None:
        active = v.active_units(latent_nk)
        self.fit_summary_: dict[str, Any] = {
            "active_units": active,
            "latent_dim": self.latent_dim,
            "collapsed": active == 0,
        }
        if self._last is not None:
            log_sigma, kl_n = self._last
            self.fit_summary_ |= {"sigma": float(log_sigma.exp()), "kl_nats": float(kl_n.mean())}

    @property
    def summary_(self) -> dict[str, Any]:
        """Active latent units (none is a collapse), sigma of the decoder, and KL of the last batch."""
        return dict(getattr(self, "fit_summary_", {}))

    def _calibrate_on_cpu(self, cells: Cells, cpu_n: NDArray[np.bool_], steps: int) -> None:
        """Train the VAE on the cells of class cpu, where there are such and others."""
        if not cpu_n.any() or cpu_n.all():
            return
        cpu_cells = cells[np.flatnonzero(cpu_n)]
        stepper = Stepper(self._vae.parameters(), self.learning_rate, steps, _VAE_WEIGHT_DECAY)
        for rows in batches(len(cpu_cells), self.batch_size, steps, self._device):
            stepper.clear()
            self._vae_loss(cpu_cells[rows], kl_weight=1.0)[0].backward()
            stepper.step()

    def _learn_latent_space(
        self, cells: Cells, regressor: Stepper, vae_steps: int, feedback_steps: int, watch: Watch
    ) -> None:
        """Train the VAE on all cells; after `vae_steps` the regressor learns along and its loss joins in."""
        steps = vae_steps + feedback_steps
        stepper = Stepper(self._vae.parameters(), self.learning_rate, steps, _VAE_WEIGHT_DECAY)
        # In nats for each feature, so that neither loss drowns the other as tables grow wider.
        vae_share = 1.0 / (self.feedback_weight * cells.x_nf.shape[1]) if self.feedback_weight else 1.0
        plan = batches(len(cells), self.batch_size, steps, self._device)
        for step, rows in enumerate(watched(plan, self.network_, watch if feedback_steps else None)):
            batch = cells[rows]
            loss, mean_nk = self._vae_loss(
                batch, v.kl_weight(self.kl_schedule, step / max(steps - 1, 1), self.kl_cycles)
            )
            stepper.clear()
            regressor.clear()
            if step >= vae_steps:
                loss = vae_share * loss + contrast_loss(self._regress(mean_nk) - batch.y_np, batch.known_np)
            loss.backward()
            stepper.step()
            if step >= vae_steps:
                regressor.step()

    def _vae_loss(self, cells: Cells, kl_weight: float) -> tuple[Tensor, Tensor]:
        """Return the negative evidence bound in nats a cell, and the latent mean it was computed with."""
        x_nf, seen_nf = cells.x_nf, cells.seen_nf
        mean_nk, log_var_nk = self._vae.encode(x_nf, self._shown(seen_nf))
        decoded_nf = self._vae.decoder(v.sample(mean_nk, log_var_nk))
        log_sigma = (
            v.optimal_log_sigma(x_nf, decoded_nf, seen_nf) if self.calibrated else torch.zeros((), device=x_nf.device)
        )
        nll_n = v.gaussian_nll(x_nf, decoded_nf, seen_nf, log_sigma)
        kl_n = v.kl_to_standard_normal(mean_nk, log_var_nk)
        self._last = log_sigma, kl_n.detach()
        return nll_n.mean() + kl_weight * kl_n.mean(), mean_nk


class Dnn(_Network):
    """The regressor alone, 3 layers of 1024 on the features themselves: what the latent space must match.

    Parameters are those of `VaeDnn`.
    """

    name: ClassVar[str] = "dnn"

    def __init__(
        self,
        width: int = 1024,
        depth: int = 3,
        dnn_steps: int = 900,
        mask_share: float = 0.1,
        dropout: float = 0.5,
        batch_size: int = 128,
        learning_rate: float = 1e-3,
        weight_decay: float = 1e-2,
        validation_share: float = 0.0,
        device: str = "auto",
        seed: int = 0,
    ) -> None:
        self.width = width
        self.depth = depth
        self.dnn_steps = dnn_steps
        self.mask_share = mask_share
        self.dropout = dropout
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.validation_share = validation_share
        self.device = device
        self.seed = seed

    def _build(self, n_features: int, n_outputs: int) -> nn.Module:
        return v.layers(2 * n_features, n_outputs, self.width, self.depth, self.dropout)

    def _forward(self, x_nf: Tensor, seen_nf: Tensor) -> Tensor:
        return self.network_(torch.cat([x_nf * seen_nf, seen_nf], dim=1))  # type: ignore[no-any-return]

    def _train(self, cells: Cells, cpu_n: NDArray[np.bool_], watch: Watch) -> None:
        steps = steps_for(len(cells), self.batch_size, self.dnn_steps)
        stepper = Stepper(self.network_.parameters(), self.learning_rate, steps, self.weight_decay)
        for rows in watched(batches(len(cells), self.batch_size, steps, self._device), self.network_, watch):
            batch = cells[rows]
            stepper.clear()
            predicted_np = self._forward(batch.x_nf, self._shown(batch.seen_nf))
            contrast_loss(predicted_np - batch.y_np, batch.known_np).backward()
            stepper.step()
