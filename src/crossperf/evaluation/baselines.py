"""What scores are compared with: the noise of the data, and always giving the same answer."""

# W workloads, P platforms, N workloads as seen from each source

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crossperf.dataset.pairing import Dataset
from crossperf.evaluation import metrics
from crossperf.evaluation.scores import Scores


@dataclass(frozen=True)
class ConstantAnswer:
    """How often always giving the same answer is right: the same order, the same fastest platform.

    ``order`` is empty and ``order_share`` is ``None`` where no workload ran on every platform.
    """

    fastest: str
    fastest_share: float
    order: tuple[str, ...] = ()
    order_share: float | None = None

    @classmethod
    def of(cls, data: Dataset) -> ConstantAnswer:
        """Return the constant answers that are right most often."""
        common = metrics.most_common_order(data.log_time_wp)
        fastest_w = np.nanargmin(data.log_time_wp, axis=1)
        number, count = np.unique(fastest_w, return_counts=True)
        fastest, fastest_share = data.platforms[number[count.argmax()]], float(count.max() / count.sum())
        if common is None:
            return cls(fastest, fastest_share)
        return cls(fastest, fastest_share, tuple(data.platforms[i] for i in common[0]), common[1])


def noise_ceiling(data: Dataset, order: metrics.Order | None = None) -> Scores:
    """Return what one half of the repeats scores in predicting the other half, from every measured source.

    No model can be expected to do better: beyond this the truth itself is not known. Each half holds half the
    repeats, so the ceiling is a little lower than that of the medians which the models are scored on.
    All are ``None`` where no workload has repeats on two platforms.
    """
    truth_wp, other_wp = data.log_time_halves_hwp
    both_wp = ~np.isnan(truth_wp) & ~np.isnan(other_wp)
    workload_n, source_n = np.nonzero(both_wp & (both_wp.sum(axis=1, keepdims=True) >= 2))
    if not len(workload_n):
        return Scores()
    truth_wp = np.where(both_wp, truth_wp, np.nan)
    return metrics.score(truth_wp[workload_n], other_wp[workload_n], source_n, order)
