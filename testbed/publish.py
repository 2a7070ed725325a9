"""Makes the table that ships from the folder of a campaign, after checking that it may.

    python testbed/publish.py CAMPAIGN_FOLDER [-o src/crossperf/datasets/data/testbed.parquet]
    python testbed/publish.py CAMPAIGN_FOLDER --recount src/crossperf/datasets/data/testbed.parquet

With --recount the times of a table stay as they are, to the last bit, and the folder brings counts alone; formulas of
today are applied to events that it has none for. Refuses to write when checksums of a workload differ between
platforms, when more than 5 % of the cells are missing, or when the median variation of repeats in a row is above 5 %.
Prints what the table is worth: how well independent halves of its visits agree, above all.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from crossperf import campaign, catalog, dataset, platforms
from crossperf.campaign import log
from crossperf.errors import CrossperfError
from crossperf.evaluation import metrics
from crossperf.plain import to_json
from crossperf.records import OK, Run
from crossperf.runs.summary import info
from crossperf.runs.table import from_runs, read

HERE = Path(__file__).resolve().parent
#: How far the results of one input may lie apart: rounding in another order.
TOLERANCE = {"float": 2e-4, "double": 1e-8}
#: What two halves of the visits must agree on.
AGREEMENT = ("typical_factor", "same_order", "order_beyond_noise", "top1", "top1_within_noise")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "-o", "--output", type=Path, default=HERE.parent / "src/crossperf/datasets/data/testbed.parquet"
    )
    parser.add_argument("--recount", type=Path, metavar="TABLE", help="take the times of this table")
    parser.add_argument("--spec", type=Path, default=HERE / "campaign.toml")
    options = parser.parse_args()
    spec = campaign.read(options.spec)
    if options.recount:
        before = read(options.recount)
        runs = campaign.recount(spec, options.folder, before.runs())
    else:
        runs = campaign.assemble(spec, options.folder)
    problems = [*different_checksums(runs), *too_few(runs, spec), *too_noisy(runs), *nulls(runs)]
    for problem in problems:
        print(f"problem: {problem}", file=sys.stderr)
    print(json.dumps(to_json(facts(runs)), indent=2))
    if problems:
        return 1
    options.output.parent.mkdir(parents=True, exist_ok=True)
    table = from_runs(runs, name="testbed").frame.drop("host", strict=False)
    table = table.with_columns(pl.col(pl.Float64).round_sig_figs(9))
    if options.recount:
        refuse_other_times(before.frame, table)
    else:
        write_platforms(spec, options.folder, options.output.parent / "platforms.json")
    table.write_parquet(options.output, compression="zstd", compression_level=19)
    print(f"wrote {options.output}, {options.output.stat().st_size / 1e6:.2f} MB", file=sys.stderr)
    return 0


def refuse_other_times(before: pl.DataFrame, after: pl.DataFrame) -> None:
    """Raise where a recount would change more than counters."""
    kept = ["app", "input", "platform", "repeat", "runtime_s", "threads", "started", "passes", "spread", "checksum"]
    if not before.select(kept).equals(after.select(kept), null_equal=True):
        raise CrossperfError("a recount changed times, expected them as they were. Report it to us.")


def write_platforms(spec: campaign.Spec, folder: Path, path: Path) -> None:
    """Write the facts of the platforms, without what names a single machine."""
    facts_of = log.machines(folder)
    path.unlink(missing_ok=True)
    for mode in spec.modes.values():
        facts = replace(facts_of[mode.name], kernel=None, os=None, more={"threads": mode.threads})
        platforms.add(path, platforms.Platform(mode.name, mode.platform_class, facts))


def different_checksums(runs: list[Run]) -> list[str]:
    """Return the inputs whose result is not the same everywhere."""
    checksums: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for run in runs:
        if run.status == OK:
            checksums[run.app, run.input][run.platform] = float(run.metadata["checksum"])
    problems = []
    for (app, name), by_platform in checksums.items():
        low, high = min(by_platform.values()), max(by_platform.values())
        limit = TOLERANCE["float" if "precision=float" in name else "double"]
        if high - low > limit * max(abs(low), abs(high), 1e-30):
            problems.append(f"{app} {name}: checksums {by_platform}")
    return problems


def too_few(runs: list[Run], spec: campaign.Spec) -> list[str]:
    cells = {(run.app, run.input, run.platform) for run in runs if run.status == OK}
    wanted = len(spec.works) * len(spec.modes)
    return [] if len(cells) >= 0.95 * wanted else [f"{len(cells)} of {wanted} cells, expected 95 %"]


def too_noisy(runs: list[Run]) -> list[str]:
    median = statistics.median(float(run.metadata["spread"]) for run in one_a_cell(runs))
    return [] if median < 0.05 else [f"median variation of repeats in a row is {median:.1%}, expected below 5 %"]


def one_a_cell(runs: list[Run]) -> list[Run]:
    """Return the first run of each cell that succeeded; its counters are those of all."""
    first: dict[tuple[str, str, str], Run] = {}
    for run in runs:
        if run.status == OK:
            first.setdefault((run.app, run.input, run.platform), run)
    return list(first.values())


def nulls(runs: list[Run]) -> list[str]:
    """Return counters that are missing on a platform whose class has them."""
    of_class: dict[str, Counter[str]] = {"cpu": Counter(), "gpu": Counter()}
    totals: Counter[str] = Counter()
    for run in one_a_cell(runs):
        totals[run.platform_class or ""] += 1
        of_class[run.platform_class or ""].update(name for name, value in run.counters.items() if value is not None)
    problems = []
    for kind, counts in of_class.items():
        for name in catalog.COUNTERS:
            share = counts[name] / max(totals[kind], 1)
            # Undefined where nothing was looked up, such as branches of a kernel that has none.
            if 0 < share < 0.95:
                problems.append(f"{name} is missing in {1 - share:.1%} of the cells of class {kind}")
    return problems


def facts(runs: list[Run]) -> dict[str, object]:
    """Return what the table holds and how well it repeats."""
    table = from_runs(runs, name="testbed")
    data, own = dataset.build(table), info(table)
    constant, halves = metrics.ConstantAnswer.of(data), metrics.noise_ceiling(data)
    ratio_w = np.exp(np.nanmax(data.log_time_wp, axis=1) - np.nanmin(data.log_time_wp, axis=1))
    return {
        "apps": own.apps,
        "workloads": own.workloads,
        "on_every_platform": own.complete_workloads,
        "cells": own.cells,
        "failed": dict(own.failed),
        "visits": own.visits,
        "variation_within_visits": own.noise,
        "variation_between_visits": own.noise_between_visits,
        "by_platform": {each.name: [each.noise, each.noise_between_visits] for each in own.platforms},
        "agreement_of_halves": {name: halves[name] for name in AGREEMENT},
        "constant_answer": constant,
        "largest_ratio": float(ratio_w.max()),
    }


if __name__ == "__main__":
    sys.exit(main())
