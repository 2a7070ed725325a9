"""The seed's model, a calibrated VAE with a deep regressor on its latent space, and the regressor alone."""

# N cells, F features, K latent units, P platforms

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, NamedTuple, get_args

import numpy as np

from crossperf.arrays import Floats, Integers, Mask
from crossperf.dataset.features import Features
from crossperf.errors import MissingDependencyError
from crossperf.model.base import Groups, Predictor
from crossperf.model.fitted.model import Part
from crossperf.model.fitted.network import Bins, LatentNetwork, Network
from crossperf.model.fitted.scales import Encoder, Limits
from crossperf.model.learn.sizes import Sized

try:
    import torch
    from torch import Tensor, nn
except ImportError as error:
    raise MissingDependencyError("The networks need PyTorch: pip install 'crossperf[torch]'") from error

from crossperf.model.learn import vae as v
from crossperf.model.learn.training import (
    AT_ONCE,
    Batch,
    Stepper,
    batches,
    device_for,
    plain,
    robust_loss,
    seeded,
    watched,
)

#: The VAE is held by its KL term, and needs little of this.
_VAE_WEIGHT_DECAY = 1e-4
#: A loss of the regressor below this counts as this: a batch that is fitted perfectly must not drown all others.
_LEAST_ERROR = 1e-5
#: Settings are tried on this share of the groups, where there are enough, in this share of their epochs, by a regressor
#: no wider than this.
_TRIED_SHARE, _FEWEST_GROUPS, _TRIED_EPOCHS, _TRIED_WIDTH = 0.2, 20, 0.5, 256
_CLEARLY_LESS = 0.9
#: How much of the answers may be believed, the rest being the mean of the training cells; all of them if that is level.
_KEPT = tuple(np.linspace(1.0, 0.3, 15).round(2).tolist())
#: The loss on the groups held out, or nothing to watch.
Watch = Callable[[], float] | None


class _Tried(NamedTuple):
    """Settings, how much of their answers is to be believed, and the loss on groups held out."""

    sized: Sized
    kept: float
    loss: float


class _Network(Predictor):
    """What the networks share: encoded features, contrasts as targets, and settings that are checked in one place."""

    epochs: float | None
    bins: int | None
    mask_share: float | None
    width: int
    validation_share: float
    tune: bool
    device: str
    seed: int

    def _learn(self, features: Features, target_np: Floats, groups: Groups, limits: Limits) -> Part:
        self._check_settings()
        self._device = device_for(self.device)
        encoder = Encoder.fit(features.values_nf)
        standard_nf = encoder(features.values_nf)
        mean_p, scale_p = np.nanmean(target_np, axis=0), np.nanstd(target_np, axis=0)
        scale_p = np.where(scale_p > 1e-6, scale_p, 1.0)
        # In the loss a platform counts as much as its times really vary.
        weight_p = scale_p / scale_p.mean()
        cells = Batch.of(standard_nf, (target_np - mean_p) / scale_p, self._device, weight_p)
        best = self._tuned(standard_nf, cells, groups)
        self._sized, self._width = best.sized, self.width
        self.fit_summary_ = asdict(best.sized) | {"learning_rate": best.sized.rate_of(self.width), "kept": best.kept}
        network, bins = self._trained(standard_nf, cells, groups)
        return self._fitted(encoder, mean_p, best.kept * scale_p, network, bins)

    def _tuned(self, standard_nf: Floats, cells: Batch, groups: Groups) -> _Tried:
        """Return the settings that do best on groups held out, and how much of what they answer is to be believed.

        Sharp settings have to be clearly ahead: level with smooth ones, they are further off where they are wrong.
        """
        chosen = {name: value for name, value in self.get_params().items() if value is not None}
        sharp, *smooth = Sized.candidates(len(standard_nf), standard_nf.shape[1], chosen)
        rows = self._hold_out(groups.workload_n, _TRIED_SHARE)
        if not self.tune or len(np.unique(groups.workload_n)) < _FEWEST_GROUPS:
            return _Tried(sharp, 1.0, 0.0)
        tried = [self._tried(own, standard_nf, cells, groups, *rows) for own in (sharp, *smooth)]
        return tried[0] if tried[0].loss < _CLEARLY_LESS * tried[-1].loss else tried[-1]

    def _tried(
        self, sized: Sized, standard_nf: Floats, cells: Batch, groups: Groups, train_n: Integers, held_n: Integers
    ) -> _Tried:
        """Return what settings are worth, in a shorter fit of a narrower network without the groups held out."""
        self._width = min(self.width, _TRIED_WIDTH)
        self._sized, self.fit_summary_ = replace(sized, epochs=sized.epochs * _TRIED_EPOCHS), {}
        network, _ = self._trained(standard_nf[train_n], cells[train_n], groups[train_n])
        held = cells[held_n]
        network.eval()
        with torch.no_grad():
            predicted_np = self._answers(network, held)
            tried = [_Tried(sized, kept, float(robust_loss(kept * predicted_np, held))) for kept in _KEPT]
        return min(tried, key=lambda own: own.loss)

    def _trained(self, standard_nf: Floats, cells: Batch, groups: Groups) -> tuple[Any, Bins]:
        """Return a network that has learned from cells, and the bins of its features."""
        bins = Bins.fit(standard_nf, self._sized.bins)
        with seeded(self.seed, self._device):
            network = v.kept_in_scale(self._build(standard_nf.shape[1], cells.y_np.shape[1], bins)).to(self._device)
            network.train()
            inputs, first_layer = self._first(network)
            inputs.centre_on(cells.x_nf, cells.seen_nf)
            train_n, held_out_n = self._hold_out(groups.workload_n, self.validation_share)
            watch = self._loss_of(network, cells[held_out_n]) if len(held_out_n) else None
            seen = cells[train_n] if len(held_out_n) else cells  # a copy of millions of cells may not fit
            self._train(network, seen, groups.cpu_n[train_n], watch)
            inputs.fold_into(first_layer)
        return network, bins

    def _hold_out(self, groups_n: Integers, share: float) -> tuple[Integers, Integers]:
        """Return the rows to train on and a share of the rows to watch: whole groups, drawn by the seed."""
        groups = np.random.default_rng(self.seed).permutation(np.unique(groups_n))
        watched_n = np.isin(groups_n, groups[: round(share * len(groups))])
        return np.flatnonzero(~watched_n), np.flatnonzero(watched_n)

    def _shown(self, seen_nf: Tensor) -> Tensor:
        """Return what the network is shown: what was seen, less a random share."""
        if not self._sized.mask_share:
            return seen_nf
        return seen_nf * (torch.rand_like(seen_nf) >= self._sized.mask_share)

    def _loss_of(self, network: nn.Module, held: Batch) -> Watch:
        return lambda: float(robust_loss(self._answers(network, held), held))

    def _answers(self, network: nn.Module, cells: Batch) -> Tensor:
        """Return the standardised targets of any number of cells."""
        return torch.cat([self._forward(network, part.x_nf, part.seen_nf) for part in cells.parts()])

    def _check_settings(self) -> None:
        for name, value in self.get_params().items():
            low = 0 if name not in _AT_LEAST_ONE else 1
            if isinstance(value, int | float) and name != "seed" and not isinstance(value, bool) and not value >= low:
                raise self._unfit(name, f"{low} or more")
            if name in _SHARES and value is not None and not value < 1:
                raise self._unfit(name, "a share below 1")

    @abstractmethod
    def _build(self, n_features: int, n_outputs: int, bins: Bins) -> nn.Module:
        """Return the untrained network."""

    @abstractmethod
    def _first(self, network: Any) -> tuple[v.Inputs, nn.Linear]:
        """Return the inputs of a network and the layer that sees them."""

    @abstractmethod
    def _train(self, network: Any, cells: Batch, cpu_n: Mask, watch: Watch) -> None:
        """Train the network in place."""

    @abstractmethod
    def _forward(self, network: Any, x_nf: Tensor, seen_nf: Tensor) -> Tensor:
        """Return standardised targets."""

    @abstractmethod
    def _fitted(self, encoder: Encoder, mean_p: Floats, scale_p: Floats, network: Any, bins: Bins) -> Part:
        """Return the trained network as plain arrays."""


_AT_LEAST_ONE = ("latent_dim", "vae_width", "width", "depth", "batch_size", "kl_cycles", "bins")
_SHARES = ("mask_share", "dropout", "validation_share")


@dataclass(eq=False, repr=False)
class VaeDnn(_Network):
    """The seed's method: a latent space of counters over all platforms, then a deep regressor on it.

    It learns the vector of the workload, log times less their mean over platforms, which is the same whichever platform
    was profiled; times relative to the source follow. In order: the VAE's decoder is calibrated on cells of class
    ``cpu``; the VAE learns from all cells, the KL term's weight on a schedule that ends at 1; soon the regressor learns
    along on the latent mean, and its loss joins the VAE's to the end. Each stage can be switched off. What is ``None``
    follows from the numbers of cells and features (`learn.sizes`).

    Parameters
    ----------
    latent_dim, vae_width
        Units of the latent space, and of the two hidden layers of encoder and decoder.
    width, depth
        The regressor: 3 layers of 1024, as in the seed.
    calibrated
        One sigma shared by all features at its optimum; off: sigma is 1.
    epochs
        How often each cell is seen, all stages together.
    cpu_part, vae_part, feedback_part, dnn_part
        How the epochs are divided among cells of class ``cpu``, the VAE alone, both together, and the regressor alone
        on a latent space that stays as it is; 0 switches a stage off.
    feedback_weight
        Weight of the regressor's loss in the VAE's gradients, both in nats for each feature or target; 0: the VAE hears
        nothing of the regressor.
    bins
        Most bins of the piecewise-linear encoding of a feature; 1 leaves it out.
    mask_share
        Share of the measured features hidden from the encoder, so that it learns to do without.
    validation_share
        Share of the groups held out to stop early on and to choose the best weights; 0 trains on all of them.
    tune
        Whether a fifth of the groups is held out first, in shorter fits, to choose between sharp and smooth settings
        (`Sized.candidates`) and how far answers are drawn towards the mean. Then all cells are learned from.

    >>> quick = VaeDnn(latent_dim=2, vae_width=8, width=8, epochs=2)
    >>> quick.fit([[0.0], [1.0]], [[0.0, 1.0]] * 2).predict([[0.5]]).shape
    (1, 2)
    """

    name: ClassVar[str] = "vae-dnn"
    latent_dim: int | None = None
    vae_width: int = 256
    width: int = 1024
    depth: int = 3
    calibrated: bool = True
    kl_schedule: v.Schedule = "linear"
    kl_cycles: int = 4
    epochs: float | None = None
    cpu_part: float = 0.02
    vae_part: float = 0.02
    feedback_part: float = 0.96
    dnn_part: float = 0.0
    feedback_weight: float = 1.0
    bins: int | None = None
    mask_share: float | None = None
    dropout: float | None = None
    batch_size: int | None = None
    learning_rate: float | None = None
    weight_decay: float = 1e-2
    validation_share: float = 0.0
    tune: bool = True
    device: str = "auto"
    seed: int = 0
    target: str = "workload"

    def _check_settings(self) -> None:
        super()._check_settings()
        if self.kl_schedule not in get_args(v.Schedule):
            raise self._unfit("kl_schedule", f"one of {', '.join(get_args(v.Schedule))}")
        if not self.feedback_part + self.dnn_part:
            raise self._unfit("feedback_part", "more than 0 where dnn_part is 0, or nothing trains the regressor")

    def _build(self, n_features: int, n_outputs: int, bins: Bins) -> nn.Module:
        latent_dim = self._sized.latent_dim
        return nn.ModuleDict(
            {
                "vae": v.Vae(n_features, latent_dim, self.vae_width, bins),
                "regressor": v.layers(latent_dim, n_outputs, self._width, self.depth, self._sized.dropout),
            }
        )

    def _first(self, network: Any) -> tuple[v.Inputs, nn.Linear]:
        return network["vae"].inputs, network["vae"].encoder[0]

    def _forward(self, network: Any, x_nf: Tensor, seen_nf: Tensor) -> Tensor:
        mean_nk, _ = network["vae"].encode(x_nf, seen_nf)
        return network["regressor"](mean_nk)  # type: ignore[no-any-return]

    def _fitted(self, encoder: Encoder, mean_p: Floats, scale_p: Floats, network: Any, bins: Bins) -> Part:
        regressor, vae_encoder = plain(network["regressor"]), plain(network["vae"].encoder)
        return LatentNetwork(encoder, mean_p, scale_p, regressor, vae_encoder, bins=bins)

    def _train(self, network: Any, cells: Batch, cpu_n: Mask, watch: Watch) -> None:
        parts = (self.cpu_part, self.vae_part, self.feedback_part, self.dnn_part)
        steps = self._sized.steps(len(cells))
        cpu_steps, vae_steps, feedback_steps, dnn_steps = (round(steps * part / sum(parts)) for part in parts)
        vae, regressor = network["vae"], network["regressor"]
        # One way up and down of the rate for all that the VAE learns: a stage of its own would begin at the full rate.
        vae_stepper = Stepper(
            vae.parameters(), self._sized.rate_of(self.vae_width), steps - dnn_steps, _VAE_WEIGHT_DECAY
        )
        rate = self._sized.rate_of(self._width)
        stepper = Stepper(regressor.parameters(), rate, feedback_steps + dnn_steps, self.weight_decay)
        self._calibrate_on_cpu(vae, vae_stepper, cells, cpu_n, cpu_steps)
        self._learn_latent_space(network, (vae_stepper, stepper), cells, vae_steps, feedback_steps, watch)
        with torch.no_grad():
            latent_nk = torch.cat([vae.encode(part.x_nf, part.seen_nf)[0] for part in cells.parts()])
            # Of a long table, cells from one end to the other tell as much as all of them.
            some = cells[slice(None, None, -(-len(cells) // AT_ONCE))]
            self.fit_summary_ |= asdict(v.Information.of(vae, some.x_nf, some.seen_nf))
        for rows in watched(batches(len(cells), self._sized.batch_size, dnn_steps, self._device), network, watch):
            stepper.follow(robust_loss(regressor(latent_nk[rows]), cells[rows]))

    def _calibrate_on_cpu(self, vae: v.Vae, stepper: Stepper, cells: Batch, cpu_n: Mask, steps: int) -> None:
        """Train the VAE on the cells of class cpu; on all cells where the table has no others, or none of these."""
        some_cells = cells[np.flatnonzero(cpu_n)] if cpu_n.any() else cells
        for rows in batches(len(some_cells), self._sized.batch_size, steps, self._device):
            stepper.follow(self._bound(vae, some_cells[rows], kl_weight=1.0).loss)

    def _learn_latent_space(
        self,
        network: Any,
        steppers: tuple[Stepper, Stepper],
        cells: Batch,
        vae_steps: int,
        feedback_steps: int,
        watch: Watch,
    ) -> None:
        """Train the VAE on all cells; after `vae_steps` the regressor learns along and its loss joins in.

        The two meet in nats for each feature and each target. As sigma does for features, the scale of the targets'
        errors stands at its optimum: their likelihood is then the log of the regressor's loss.
        """
        steps = vae_steps + feedback_steps
        vae_stepper, stepper = steppers
        plan = batches(len(cells), self._sized.batch_size, steps, self._device)
        for step, rows in enumerate(watched(plan, network, watch if feedback_steps else None)):
            batch = cells[rows]
            weight = v.kl_weight(self.kl_schedule, step / max(steps - 1, 1), self.kl_cycles)
            bound = self._bound(network["vae"], batch, weight)
            if step < vae_steps:
                vae_stepper.follow(bound.loss)
                continue
            stepper.clear()
            error = robust_loss(network["regressor"](v.heard(bound.mean_nk, self.feedback_weight)), batch)
            vae_stepper.follow(bound.loss / cells.x_nf.shape[1] + error.clamp(min=_LEAST_ERROR).log())
            stepper.step()

    def _bound(self, vae: v.Vae, cells: Batch, kl_weight: float) -> v.Bound:
        """Return the negative evidence bound of a batch, with a share of its features hidden."""
        shown_nf = self._shown(cells.seen_nf)
        return v.negative_bound(vae, cells.x_nf, cells.seen_nf, shown_nf, kl_weight, calibrated=self.calibrated)


@dataclass(eq=False, repr=False)
class Dnn(_Network):
    """The regressor alone, 3 layers of 1024 on the features themselves: what the latent space must match.

    Parameters are those of `VaeDnn`.

    >>> Dnn(width=8, epochs=2).fit([[0.0], [1.0]], [[0.0, 1.0]] * 2).predict([[0.5]]).shape
    (1, 2)
    """

    name: ClassVar[str] = "dnn"
    width: int = 1024
    depth: int = 3
    epochs: float | None = None
    bins: int | None = None
    mask_share: float | None = None
    dropout: float | None = None
    batch_size: int | None = None
    learning_rate: float | None = None
    weight_decay: float = 1e-2
    validation_share: float = 0.0
    tune: bool = True
    device: str = "auto"
    seed: int = 0
    target: str = "workload"

    def _build(self, n_features: int, n_outputs: int, bins: Bins) -> nn.Module:
        inputs = v.Inputs(n_features, bins)
        return nn.Sequential(inputs, v.layers(inputs.count, n_outputs, self._width, self.depth, self._sized.dropout))

    def _first(self, network: Any) -> tuple[v.Inputs, nn.Linear]:
        return network[0], network[1][0]

    def _forward(self, network: Any, x_nf: Tensor, seen_nf: Tensor) -> Tensor:
        inputs, regressor = network
        return regressor(inputs(x_nf, seen_nf))  # type: ignore[no-any-return]

    def _fitted(self, encoder: Encoder, mean_p: Floats, scale_p: Floats, network: Any, bins: Bins) -> Part:
        return Network(encoder, mean_p, scale_p, plain(network), bins=bins)

    def _train(self, network: Any, cells: Batch, cpu_n: Mask, watch: Watch) -> None:
        steps = self._sized.steps(len(cells))
        stepper = Stepper(network.parameters(), self._sized.rate_of(self._width), steps, self.weight_decay)
        for rows in watched(batches(len(cells), self._sized.batch_size, steps, self._device), network, watch):
            batch = cells[rows]
            stepper.follow(robust_loss(self._forward(network, batch.x_nf, self._shown(batch.seen_nf)), batch))
