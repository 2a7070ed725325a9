"""Statistics of time series by scans: moving means and deviations from running sums, drawdowns from running maxima."""

import harness
import numpy as np
import torch
from torch import Tensor

WINDOW = 32


def set_up(draw: np.random.Generator, *, series: int, length: int) -> tuple[np.ndarray, ...]:
    return (draw.standard_normal((series, length)) / length**0.5,)


def windows(x: Tensor) -> Tensor:
    """Return the means over the windows of each series."""
    total = torch.nn.functional.pad(x.cumsum(dim=1), (1, 0))
    return (total[:, WINDOW:] - total[:, :-WINDOW]) / WINDOW


def work(change: Tensor, *, rounds: int) -> Tensor:
    results = []
    for number in range(rounds):
        level = (change * (1 + number / rounds)).cumsum(dim=1)
        drawdown = (level.cummax(dim=1).values - level).amax(dim=1)
        deviation = (windows(level.square()) - windows(level).square()).clamp(min=0).sqrt()
        results.append(torch.stack([drawdown, deviation.mean(dim=1), level[:, -1]]))
    return torch.stack(results)


if __name__ == "__main__":
    harness.run(set_up, work)
