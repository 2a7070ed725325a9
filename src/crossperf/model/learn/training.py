"""How the networks are trained: batches of tensors on the device, seeded draws, a one-cycle learning rate."""

# N cells, F features, P platforms

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from crossperf.arrays import Floats, Integers
from crossperf.errors import SettingsError
from crossperf.model.fitted.network import Mlp

#: Cells that a network looks at together outside of its steps.
AT_ONCE = 1 << 16
#: Errors beyond this share of the typical spread count linearly.
HUBER = 0.3


def device_for(name: str) -> torch.device:
    """Return the device of a name; ``auto`` is a GPU where torch sees one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise SettingsError(
            f"device: found {name!r}, which torch cannot use here, expected 'auto', 'cpu' or a GPU such as 'cuda'."
        ) from error
    return device


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Make every draw inside depend on the seed alone, and leave the caller's random state as it was."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield


@dataclass(frozen=True)
class Batch:
    """Encoded features and standard targets on the device: zeros where nothing was seen, and what was seen."""

    x_nf: Tensor
    seen_nf: Tensor
    y_np: Tensor
    known_np: Tensor
    weight_p: Tensor

    @classmethod
    def of(cls, encoded_nf: Floats, standard_np: Floats, device: torch.device, weight_p: Floats) -> Batch:
        """Return the cells of encoded features and standard targets, NaN where there is none."""
        weight = torch.as_tensor(weight_p, dtype=torch.float32, device=device)
        return cls(*filled(encoded_nf, device), *filled(standard_np, device), weight)

    def __len__(self) -> int:
        return len(self.x_nf)

    def parts(self) -> Iterator[Batch]:
        """Yield all cells, some thousand at a time: what a network makes of millions does not fit into memory."""
        for start in range(0, len(self), AT_ONCE):
            yield self[slice(start, start + AT_ONCE)]

    def __getitem__(self, rows_n: Tensor | Integers | slice) -> Batch:
        cells = self.x_nf[rows_n], self.seen_nf[rows_n], self.y_np[rows_n], self.known_np[rows_n]
        return Batch(*cells, self.weight_p)


def filled(values: Floats, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return values with zeros for NaN, and a tensor that is 1 where there was a value."""
    seen = ~np.isnan(values)
    zeroed_and_seen = (np.where(seen, values, 0.0), seen)
    zeroed, mask = (torch.as_tensor(part, dtype=torch.float32, device=device) for part in zeroed_and_seen)
    return zeroed, mask


def batches(cells: int, size: int, steps: int, device: torch.device) -> Iterator[Tensor]:
    """Yield `steps` batches of row numbers: each pass over the cells in a new order, short ends left out."""
    size = min(size, cells)
    per_pass = cells // size
    for step in range(steps):
        if step % per_pass == 0:
            order_n = torch.randperm(cells, device=device)
        start = step % per_pass * size
        yield order_n[start : start + size]


def watched(
    rows: Iterable[Tensor], network: nn.Module, loss: Callable[[], float] | None, patience: int = 8, every: int = 20
) -> Iterator[Tensor]:
    """Yield batches until a held-out loss has not improved for `patience` looks, and leave the best weights.

    With no loss to watch, every batch is yielded and the last weights stay.
    """
    best, best_weights, looks_since = math.inf, None, 0
    for step, batch in enumerate(rows, start=1):
        yield batch
        if loss is None or step % every:
            continue
        network.eval()
        with torch.no_grad():
            held_out_loss = loss()
        network.train()
        looks_since += 1
        if held_out_loss < best:
            best, looks_since = held_out_loss, 0
            best_weights = {name: value.clone() for name, value in network.state_dict().items()}
        if looks_since >= patience:
            break
    if best_weights is not None:
        network.load_state_dict(best_weights)


class Stepper:
    """AdamW in one fused call, its rate on a one-cycle schedule over a known number of steps."""

    def __init__(self, parameters: Iterable[nn.Parameter], rate: float, steps: int, weight_decay: float) -> None:
        self._optimizer = torch.optim.AdamW(parameters, lr=rate, weight_decay=weight_decay, fused=True)
        # Up over the first tenth of the steps from 4 % of the rate, then down to zero (Smith and Topin 2018). torch
        # divides by the length of the way up, which must not be zero.
        total = max(steps, 1) + 1
        self._schedule = torch.optim.lr_scheduler.OneCycleLR(
            self._optimizer, rate, total, pct_start=max(0.1, 2.0 / total), div_factor=25.0, cycle_momentum=False
        )

    def follow(self, loss: Tensor) -> None:
        """Take one step down the gradient of a loss."""
        self.clear()
        loss.backward()  # type: ignore[no-untyped-call]
        self.step()

    def clear(self) -> None:
        """Forget the gradients of the last step."""
        self._optimizer.zero_grad(set_to_none=True)

    def step(self) -> None:
        """Follow the gradients that are there."""
        self._optimizer.step()
        self._schedule.step()


def robust_loss(predicted_np: Tensor, cells: Batch) -> Tensor:
    """Return the Huber loss of standard targets, nearly the mean absolute error yet smooth.

    A platform counts as much as its times vary, and a cell the same however many platforms it was measured on.
    """
    error_np = (predicted_np - cells.y_np) * cells.weight_p
    loss_np = functional.huber_loss(error_np, torch.zeros_like(error_np), delta=HUBER, reduction="none")
    return (loss_np * cells.known_np).sum(dim=1).div(cells.known_np.sum(dim=1).clamp(min=1.0)).mean()


def plain(network: nn.Module) -> Mlp:
    """Return the linear layers of a network as arrays; dropout leaves no trace once training is over."""
    linear = [layer for layer in network.modules() if isinstance(layer, nn.Linear)]
    weights, biases = (
        tuple(getattr(layer, name).detach().cpu().numpy().copy() for layer in linear) for name in ("weight", "bias")
    )
    return Mlp(weights, biases)
