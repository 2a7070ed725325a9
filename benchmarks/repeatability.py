"""How the visits of a cell are best combined: which combination makes independent halves of the rounds agree best.

    python benchmarks/repeatability.py [--campaign proxies] [--write]

The logs of the testbed's campaigns (testbed/logs). Rounds are split into two halves in many ways; in each half the
visits of a cell are combined, and the halves are compared as a prediction is with the truth: times relative to a
source, on the other platforms only. `drift-corrected` divides each visit by how much longer than usual the
calibrations of its round took. --write adds the table to benchmarks/repeatability.md.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "testbed")]

from publish import CAMPAIGNS, Campaign  # noqa: E402

from accuracy import add, opening  # noqa: E402
from crossperf.arrays import Floats  # noqa: E402
from crossperf.campaign import log  # noqa: E402
from crossperf.evaluation.metrics import score  # noqa: E402
from crossperf.records import OK  # noqa: E402

Combine = Callable[[Floats], Floats]
#: How the log times of R rounds become one, by cell.
WAYS: dict[str, Combine] = {
    "median": lambda log_rwp: np.nanmedian(log_rwp, axis=0),
    "minimum": lambda log_rwp: np.nanmin(log_rwp, axis=0),
    "lower quartile": lambda log_rwp: np.nanquantile(log_rwp, 0.25, axis=0),
    "geometric mean": lambda log_rwp: np.nanmean(log_rwp, axis=0),
}
SPLITS = 20
COLUMNS = ("typical_factor", "same_order", "top1")


def visits(of: Campaign) -> tuple[Floats, Floats]:
    """Return log times of the visits and their drift: the n-th round of each platform by workload and platform."""
    runs = [run for run in of.runs() if run.status == OK]
    platforms = list(dict.fromkeys(run.platform for run in runs))
    works = {work: i for i, work in enumerate(dict.fromkeys((run.app, run.input) for run in runs))}
    rounds = {name: sorted({str(run.measured_in) for run in runs if run.platform == name}) for name in platforms}
    most = max(map(len, rounds.values()))
    log_rwp = np.full((most, len(works), len(platforms)), np.nan)
    drift_rp = np.zeros((most, len(platforms)))
    drift_of = drifts(of.folder)
    for run in runs:
        p, r = platforms.index(run.platform), rounds[run.platform].index(str(run.measured_in))
        log_rwp[r, works[run.app, run.input], p] = np.log(run.runtime_s)
        drift_rp[r, p] = drift_of.get((run.platform, str(run.measured_in)), 0.0)
    full = min(map(len, rounds.values()))
    return log_rwp[:full], drift_rp[:full]


def drifts(folder: Path) -> dict[tuple[str, str], float]:
    """Return by how much longer than usual the calibrations of a round took on a platform, as a logarithm."""
    of_kernels: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for line in log.lines(folder / log.TIMES):
        if "calibration" in line:
            of_kernels[line["platform"], line["calibration"]][line["round"]] += [float(np.log(min(line["seconds"])))]
    drift: dict[tuple[str, str], list[float]] = defaultdict(list)
    for (platform, _), of_rounds in of_kernels.items():
        usual = float(np.median([np.mean(values) for values in of_rounds.values()]))
        for name, values in of_rounds.items():
            drift[platform, name].append(float(np.mean(values)) - usual)
    return {place: float(np.mean(values)) for place, values in drift.items()}


def halves(n: int, size: int) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
    """Yield pairs of sets of rounds that share none."""
    random = Random(0)  # noqa: S311
    for _ in range(SPLITS):
        drawn = random.sample(range(n), 2 * size)
        yield drawn[:size], drawn[size:]


def agreement(log_rwp: Floats, size: int, combine: Combine) -> list[float]:
    """Return how well halves of some rounds each agree, the mean over many pairs of halves."""
    found = []
    for first, second in halves(len(log_rwp), size):
        truth_wp, other_wp = combine(log_rwp[list(first)]), combine(log_rwp[list(second)])
        truth_wp = np.where(np.isnan(other_wp), np.nan, truth_wp)
        w, p = np.nonzero(~np.isnan(truth_wp) & ((~np.isnan(truth_wp)).sum(axis=1, keepdims=True) >= 2))
        scores = score(truth_wp[w], other_wp[w], p)
        found.append([float(scores[name] or np.nan) for name in COLUMNS])
    return [float(value) for value in np.nanmean(found, axis=0)]


def table(of: Campaign) -> list[str]:
    """Return the lines of a table: ways to combine, by the number of rounds in each half."""
    log_rwp, drift_rp = visits(of)
    corrected_rwp = log_rwp - drift_rp[:, None, :]
    lines = [
        f"Campaign `{of.name}`: {log_rwp.shape[1]:,} workloads, {len(log_rwp)} rounds on {log_rwp.shape[2]} platforms.",
        "",
        "| rounds in each half | combination | typical factor | whole order | fastest |",
        "|---|---|---|---|---|",
    ]
    for size in range(1, len(log_rwp) // 2 + 1):
        ways = WAYS if size > 1 else {"one visit": WAYS["median"]}
        for name, combine in ways.items():
            for label, numbers_rwp in ((name, log_rwp), (f"{name}, drift-corrected", corrected_rwp)):
                factor, order, fastest = agreement(numbers_rwp, size, combine)
                lines.append(f"| {size} | {label} | {factor:.3f} | {order:.1%} | {fastest:.1%} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--campaign", choices=CAMPAIGNS, default="proxies")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    lines = table(CAMPAIGNS[given.campaign])
    print("\n".join(lines))
    if given.write:
        add(HERE / "repeatability.md", opening("How visits are combined"), lines)


if __name__ == "__main__":
    main()
