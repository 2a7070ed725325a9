"""How the networks here are trained: whole tensors on the device, seeded draws, one-cycle steps."""

# N cells, P platforms

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
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


def batches(rows_n: Tensor, size: int, steps: int) -> Iterator[Tensor]:
    """Yield `steps` batches of row numbers: each pass over the rows in a new order, short ends left out."""
    size = min(size, len(rows_n))
    per_pass = len(rows_n) // size
    order_n = rows_n
    for step in range(steps):
        if step % per_pass == 0:
            order_n = rows_n[torch.randperm(len(rows_n), device=rows_n.device)]
        start = step % per_pass * size
        yield order_n[start : start + size]


class Stepper:
    """AdamW in one fused call over a one-cycle schedule: up over the first tenth, down over the rest."""

    def __init__(self, parameters: Iterable[nn.Parameter], rate: float, steps: int, weight_decay: float) -> None:
        self._optimizer = torch.optim.AdamW(parameters, lr=rate, weight_decay=weight_decay, fused=True)
        self._schedule = torch.optim.lr_scheduler.OneCycleLR(
            self._optimizer, rate, total_steps=max(steps, 1) + 1, pct_start=0.1
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
