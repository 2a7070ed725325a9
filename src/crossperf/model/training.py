"""How the networks here are trained: whole tensors on the device, seeded draws, one-cycle steps."""

# N cells, F features, P platforms

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from crossperf.errors import SettingsError


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
class Cells:
    """Encoded features and standard targets on the device: zeros where nothing was seen, and what was seen."""

    x_nf: Tensor
    seen_nf: Tensor
    y_np: Tensor
    known_np: Tensor

    def __len__(self) -> int:
        return len(self.x_nf)

    def __getitem__(self, rows_n: Tensor | NDArray[np.int64]) -> Cells:
        return Cells(self.x_nf[rows_n], self.seen_nf[rows_n], self.y_np[rows_n], self.known_np[rows_n])


def filled(values: NDArray[np.float64], device: torch.device) -> tuple[Tensor, Tensor]:
    """Return values with zeros for NaN, and a tensor that is 1 where there was a value."""
    seen = ~np.isnan(values)
    zeroed = np.where(seen, values, 0.0)
    return (
        torch.as_tensor(zeroed, dtype=torch.float32, device=device),
        torch.as_tensor(seen, dtype=torch.float32, device=device),
    )


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
            held_out = loss()
        network.train()
        looks_since += 1
        if held_out < best:
            best, looks_since = held_out, 0
            best_weights = {name: value.clone() for name, value in network.state_dict().items()}
        if looks_since >= patience:
            break
    if best_weights is not None:
        network.load_state_dict(best_weights)


def one_cycle(progress: float) -> float:
    """Return the share of the learning rate at a point of training: up over the first tenth, down over the rest.

    >>> [round(one_cycle(p), 2) for p in (0.0, 0.05, 0.1, 0.55, 1.0)]
    [0.04, 0.52, 1.0, 0.5, 0.0]
    """
    start, turn = 0.04, 0.1
    if progress < turn:
        return start + (1.0 - start) * 0.5 * (1.0 - math.cos(math.pi * progress / turn))
    return 0.5 * (1.0 + math.cos(math.pi * min((progress - turn) / (1.0 - turn), 1.0)))


class Stepper:
    """AdamW in one fused call, its rate on a one-cycle schedule over a known number of steps."""

    def __init__(self, parameters: Iterable[nn.Parameter], rate: float, steps: int, weight_decay: float) -> None:
        self._optimizer = torch.optim.AdamW(parameters, lr=rate, weight_decay=weight_decay, fused=True)
        self._schedule = torch.optim.lr_scheduler.LambdaLR(
            self._optimizer, lambda step: one_cycle(step / max(steps, 1))
        )

    def clear(self) -> None:
        """Forget the gradients of the last step."""
        self._optimizer.zero_grad(set_to_none=True)

    def step(self) -> None:
        """Follow the gradients."""
        self._optimizer.step()
        self._schedule.step()


def contrast_loss(error_np: Tensor, seen_np: Tensor, level_weight: float = 0.3) -> Tensor:
    """Return the Huber loss of errors in relative times: between platforms first, the common level second.

    An error that is the same on every platform changes no ranking and no time relative to the fastest; it
    only shifts the source platform's own 1x. So the mean of each cell's errors counts for less.
    """
    count_n = seen_np.sum(dim=1).clamp(min=1.0)
    level_n = (error_np * seen_np).sum(dim=1) / count_n
    contrast_np = (error_np - level_n[:, None]) * seen_np
    return _huber(contrast_np).sum() / seen_np.sum().clamp(min=1.0) + level_weight * _huber(level_n).mean()


def _huber(error: Tensor) -> Tensor:
    size = error.abs()
    return torch.where(size < 1.0, 0.5 * error.square(), size - 0.5)
