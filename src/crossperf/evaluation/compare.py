"""Two tables of the same cells side by side: did the times change, and do they tell the same story?

One table is the truth and the other the prediction, so that one set of metrics serves models and measurements.
"""

# W workloads, P platforms

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crossperf.arrays import Floats
from crossperf.dataset.measured import measured_table
from crossperf.dataset.pairing import noise_of, paired
from crossperf.errors import DatasetError, SettingsError, did_you_mean, some_of
from crossperf.evaluation import metrics
from crossperf.evaluation.scores import Scores
from crossperf.runs.table import Source, read_runs

_MOST_CHANGED = 10


@dataclass(frozen=True)
class PlatformChange:
    """How the times of one platform differ between two tables.

    ``bias`` is the geometric mean of second over first, ``typical_factor`` the same of the larger over the smaller,
    ``unbiased_factor`` that after the bias is taken out: what a uniformly faster machine does not explain.
    """

    name: str
    workloads: int
    bias: float
    typical_factor: float
    unbiased_factor: float


@dataclass(frozen=True)
class CellChange:
    """A workload on a platform whose time changed: seconds in both tables."""

    app: str
    input: str
    platform: str
    first_s: float
    second_s: float

    @property
    def ratio(self) -> float:
        """Second over first."""
        return self.second_s / self.first_s


@dataclass(frozen=True)
class TableComparison:
    """What two tables say of the cells that both have.

    `agreement` holds the metrics of models with the second table as the prediction of the first: its typical factor
    is that of times relative to a source platform. ``log_ratio_wp`` is log(second / first) of each workload on each
    platform, NaN where one of the tables lacks it.
    """

    first: str
    second: str
    platforms: tuple[PlatformChange, ...]
    agreement: Scores
    most_changed: tuple[CellChange, ...]
    cells: int
    only_in_first: int
    only_in_second: int
    log_ratio_wp: Floats


def compare(first: Source, second: Source, *, platforms: Sequence[str] | None = None) -> TableComparison:
    """Return how two tables differ in the cells that both have.

    Parameters
    ----------
    first, second
        Runs tables, or what `crossperf.read_runs` takes; the first is the reference.
    platforms
        The platforms to compare; those of both tables when ``None``.

    >>> from crossperf.datasets import toy
    >>> runs = toy.make_table(apps=3, inputs=2, seed=1)
    >>> same = compare(runs, runs)
    >>> same.agreement.typical_factor, same.platforms[0].bias
    (1.0, 1.0)
    """
    tables = [read_runs(first), read_runs(second)]
    known = [set(table.platforms) for table in tables]
    shared = sorted(known[0] & known[1]) if platforms is None else list(platforms)
    if absent := [name for name in shared if name not in known[0] & known[1]]:
        both = some_of(sorted(known[0] & known[1]))
        message = f"platforms: found {absent[0]!r}{did_you_mean(absent[0], known[0])}, expected some of {both}."
        raise SettingsError(f"{message} Both tables must have it.", argument="platforms")
    if not shared:
        problem = f"{tables[1].path}: found {some_of(sorted(known[1]))}, expected a platform of {tables[0].path}"
        raise DatasetError(f"{problem}: {some_of(sorted(known[0]))}. Rename one with 'crossperf runs rename'.")
    before, after = (measured_table(table, shared) for table in tables)
    workloads = [workload for workload in before.workloads if workload in set(after.workloads)]
    first_wp, *halves_wp = paired(before, workloads, shared)
    second_wp, *_ = paired(after, workloads, shared)
    both_wp = ~np.isnan(first_wp) & ~np.isnan(second_wp)
    if not both_wp.any():
        problem = "found no workload on a platform that the first table has too, expected some"
        raise DatasetError(f"{tables[1].path}: {problem}. Compare tables of the same programs.")
    log_ratio_wp = np.where(both_wp, second_wp - first_wp, np.nan)
    cells = int(both_wp.sum())
    ranked = np.argsort(-np.abs(np.nan_to_num(log_ratio_wp)), axis=None, kind="stable")[: min(_MOST_CHANGED, cells)]
    changed = [divmod(int(flat), len(shared)) for flat in ranked]
    seconds = [(float(np.exp(first_wp[w, p])), float(np.exp(second_wp[w, p]))) for w, p in changed]
    return TableComparison(
        first=tables[0].path,
        second=tables[1].path,
        platforms=tuple(_change(name, log_ratio_wp[:, p]) for p, name in enumerate(shared) if both_wp[:, p].any()),
        agreement=_agreement(np.where(both_wp, first_wp, np.nan), second_wp, noise_of(np.stack(halves_wp))),
        most_changed=tuple(
            CellChange(*workloads[w], shared[p], *times) for (w, p), times in zip(changed, seconds, strict=True)
        ),
        cells=cells,
        only_in_first=len(before) - cells,
        only_in_second=len(after) - cells,
        log_ratio_wp=log_ratio_wp,
    )


def _change(name: str, log_ratio_w: Floats) -> PlatformChange:
    known_w = log_ratio_w[~np.isnan(log_ratio_w)]
    mean, spread = float(known_w.mean()), np.abs(known_w - np.median(known_w)).mean()
    return PlatformChange(
        name, len(known_w), float(np.exp(mean)), float(np.exp(np.abs(known_w).mean())), float(np.exp(spread))
    )


def _agreement(first_wp: Floats, second_wp: Floats, noise_pp: Floats) -> Scores:
    workload_n, source_n = np.nonzero(~np.isnan(first_wp) & ((~np.isnan(first_wp)).sum(axis=1, keepdims=True) >= 2))
    if not len(workload_n):
        return Scores()
    return metrics.score(first_wp[workload_n], second_wp[workload_n], source_n, None, noise_pp)
