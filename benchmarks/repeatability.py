"""How repeats and visits are best combined: which combination makes independent halves of the rounds agree best.

    python benchmarks/repeatability.py [--campaign proxies] [--write]

The logs of the testbed's campaigns (testbed/logs). The rounds of each platform are divided into two halves in many
ways; in each half the repeats of a visit are combined, then the visits of a cell, and the halves are compared as a
prediction is with the truth: times relative to a source, on the other platforms only. `drift-corrected` divides each
visit by how much longer than usual the calibrations of its round took. --write adds the table to
benchmarks/repeatability.md.
"""

from __future__ import annotations

import argparse
import statistics
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
from crossperf.records import OK, Run  # noqa: E402

#: How the seconds of a visit's repeats become one.
WITHIN: dict[str, Callable[[Sequence[float]], float]] = {
    "minimum": min,
    "lower median": statistics.median_low,
    "geometric mean": statistics.geometric_mean,
}
#: How the log times of R rounds become one, by cell.
BETWEEN: dict[str, Callable[[Floats], Floats]] = {
    "minimum": lambda log_rwp: np.nanmin(log_rwp, axis=0),
    "lower quartile": lambda log_rwp: np.nanquantile(log_rwp, 0.25, axis=0),
    "median": lambda log_rwp: np.nanmedian(log_rwp, axis=0),
    "geometric mean": lambda log_rwp: np.nanmean(log_rwp, axis=0),
}
SPLITS = 20
COLUMNS = ("typical_factor", "same_order", "top1")


def visits(runs: Sequence[Run], within: Callable[[Sequence[float]], float]) -> tuple[Floats, list[tuple[str, str]]]:
    """Return log times by round, workload and platform, NaN where a platform has no such round; and its rounds."""
    platforms = list(dict.fromkeys(run.platform for run in runs))
    works = {work: i for i, work in enumerate(dict.fromkeys((run.app, run.input) for run in runs))}
    rounds = sorted({(run.platform, str(run.measured_in)) for run in runs})
    repeats: dict[tuple[int, int, int], list[float]] = defaultdict(list)
    for run in runs:
        cell = (works[run.app, run.input], platforms.index(run.platform))
        repeats[(rounds.index((run.platform, str(run.measured_in))), *cell)].append(run.runtime_s or np.nan)
    log_rwp = np.full((len(rounds), len(works), len(platforms)), np.nan)
    for place, seconds in repeats.items():
        log_rwp[place] = np.log(within(seconds))
    return log_rwp, rounds


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


def halves(rounds: Sequence[tuple[str, str]]) -> Iterator[tuple[list[int], list[int]]]:
    """Yield pairs of sets of rounds that share none: of each platform's rounds one half, the smaller, and the rest."""
    random = Random(0)  # noqa: S311
    of_platforms: dict[str, list[int]] = defaultdict(list)
    for number, (platform, _) in enumerate(rounds):
        of_platforms[platform].append(number)
    for _ in range(SPLITS):
        first, second = [], []
        for numbers in of_platforms.values():
            drawn = random.sample(numbers, len(numbers))
            first += drawn[: len(drawn) // 2]
            second += drawn[len(drawn) // 2 :]
        yield first, second


def agreement(log_rwp: Floats, rounds: Sequence[tuple[str, str]], between: Callable[[Floats], Floats]) -> list[float]:
    """Return how well halves of the rounds agree, the mean over many pairs of halves."""
    scores_of_pairs = []
    for first, second in halves(rounds):
        truth_wp, other_wp = between(log_rwp[first]), between(log_rwp[second])
        truth_wp = np.where(np.isnan(other_wp), np.nan, truth_wp)
        w, p = np.nonzero(~np.isnan(truth_wp) & ((~np.isnan(truth_wp)).sum(axis=1, keepdims=True) >= 2))
        scores = score(truth_wp[w], other_wp[w], p)
        scores_of_pairs.append([float(scores[name] or np.nan) for name in COLUMNS])
    return [float(value) for value in np.nanmean(scores_of_pairs, axis=0)]


def table(of: Campaign) -> list[str]:
    """Return the lines of a table: ways to combine, with how well halves of the rounds agree."""
    runs = [run for run in of.repeats() if run.status == OK]
    drift_of = drifts(of.folder)
    lines = []
    for within_name, within in WITHIN.items():
        log_rwp, rounds = visits(runs, within)
        drift_r = np.array([drift_of.get(place, 0.0) for place in rounds])
        for between_name, between in BETWEEN.items():
            for label, numbers_rwp in (("", log_rwp), (", drift-corrected", log_rwp - drift_r[:, None, None])):
                factor, order, fastest = agreement(numbers_rwp, rounds, between)
                lines.append(f"| {within_name} | {between_name}{label} | {factor:.3f} | {order:.1%} | {fastest:.1%} |")
    count: dict[str, int] = defaultdict(int)
    for platform, _ in rounds:
        count[platform] += 1
    counts = ", ".join(f"{name} {number}" for name, number in count.items())
    return [
        f"Campaign `{of.name}`: {log_rwp.shape[1]:,} workloads; rounds: {counts}.",
        "",
        "| repeats of a visit | visits of a cell | typical factor | whole order | fastest |",
        "|---|---|---|---|---|",
        *lines,
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--campaign", choices=CAMPAIGNS, default="proxies")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    lines = table(CAMPAIGNS[given.campaign])
    print("\n".join(lines))
    if given.write:
        add(HERE / "repeatability.md", opening("How repeats and visits are combined"), lines)


if __name__ == "__main__":
    main()
