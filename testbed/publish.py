"""Makes the tables that ship from the logs of the campaigns, after checking that it may.

    python testbed/publish.py                         from testbed/logs
    python testbed/publish.py --add proxies FOLDER    puts the logs of a campaign into testbed/logs first
    python testbed/publish.py --checked FILE          puts what check.py wrote there
    python testbed/publish.py --only-print

There are three campaigns: `proxies` (campaign.toml), `apps` and `arrays` (campaign.toml in their folders). Proxies are
published twice: as whole programs that are composed of their parts (testbed.parquet, beside the others) and as passes
(passes.parquet). Refuses to write where results of a workload differ between platforms, where composed programs are
longer or shorter than whole ones on average by more than 1.05, or singly by more than 1.05 and than two compositions of
one program differ, and where more than 5 % of the cells are missing. Inputs that were not counted yet are left out.
Prints what the table is worth: how well independent halves of its visits agree, above all, and inputs counted twice.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
from passes import drawn

from crossperf import campaign, dataset, platforms
from crossperf.campaign import log
from crossperf.campaign.spec import Work
from crossperf.evaluation import metrics
from crossperf.plain import to_json
from crossperf.records import OK, Run
from crossperf.runs.summary import info
from crossperf.runs.table import RunsTable, from_runs

HERE = Path(__file__).resolve().parent
LOGS = HERE / "logs"
DATA = HERE.parent / "src/crossperf/datasets/data"
#: How far results of one input may lie apart on two platforms: rounding in another order.
TOLERANCE = {"float": 2e-4, "double": 1e-8}
#: How far composed programs may be from those that were run whole, all together; and singly, where noise allows.
MOST_APART = 1.05
#: The counts that every input has.
CPU = "epyc"
#: What two halves of the visits must agree on.
AGREEMENT = ("typical_factor", "same_order", "order_beyond_noise", "top1", "top1_within_noise")


@dataclass(frozen=True)
class Campaign:
    """One of the campaigns: its spec, the word for its rows, and where there are versions of its programs."""

    name: str
    spec: Path
    kind: str
    runnable: str

    @property
    def folder(self) -> Path:
        """Where its logs are."""
        return LOGS / self.name

    def counted(self) -> campaign.Spec:
        """Return its spec with the inputs that were counted on a CPU alone."""
        spec = campaign.read(self.spec)
        known = {each.work for each in log.counted(self.folder) if each.error is None and each.counts == CPU}
        return replace(spec, works=tuple(work for work in spec.works if work in known))

    def repeats(self) -> Iterable[Run]:
        """Return its runs, one for each repeat of a visit."""
        return campaign.assemble(self.counted(), self.folder, drawn() if self.name == "proxies" else None)

    def runs(self) -> list[Run]:
        """Return its runs, one for each visit."""
        return visits(self.repeats())


CAMPAIGNS = {
    each.name: each
    for each in (
        Campaign("proxies", HERE / "campaign.toml", "proxy", "cpu gpu"),
        Campaign("apps", HERE / "apps/campaign.toml", "application", "cpu"),
        Campaign("arrays", HERE / "arrays/campaign.toml", "array program", "cpu gpu"),
    )
}
CHECKS = LOGS / "check.jsonl"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--add", nargs=2, action="append", default=[], metavar=("CAMPAIGN", "FOLDER"))
    parser.add_argument("--checked", type=Path, action="append", default=[], metavar="FILE")
    parser.add_argument("--only-print", action="store_true", help="write nothing")
    parser.add_argument("-o", "--output", type=Path, default=DATA, help="the folder of the tables")
    given = parser.parse_args()
    for name, folder in given.add:
        add(CAMPAIGNS[name], Path(folder))
    for path in given.checked:
        log.put_away([CHECKS, path], CHECKS)
    of_campaigns = {name: each.runs() for name, each in CAMPAIGNS.items() if each.folder.exists()}
    runs = [run for name, own in of_campaigns.items() for run in marked(own, CAMPAIGNS[name])]
    composed = check_composed()
    problems = [*different_results(runs), *too_few(of_campaigns), *too_far(composed)]
    table = from_runs(runs, name="testbed")
    facts = {"table": facts_of(table), "composed_over_whole": composed}
    facts |= {name: facts_of(from_runs(own, name=name)) for name, own in of_campaigns.items()}
    facts["counted_again"] = counted_again(CAMPAIGNS["proxies"].folder)
    print(json.dumps(to_json(facts), indent=2))
    for problem in problems:
        print(f"problem: {problem}", file=sys.stderr)
    if problems or given.only_print:
        return int(bool(problems))
    write(table, given.output / "testbed.parquet")
    spec = CAMPAIGNS["proxies"].counted()
    passes = visits(campaign.assemble(spec, CAMPAIGNS["proxies"].folder))
    write(from_runs(marked(passes, CAMPAIGNS["proxies"]), name="passes"), given.output / "passes.parquet")
    write_platforms(spec, CAMPAIGNS["proxies"].folder, given.output / "platforms.json")
    return 0


def add(of: Campaign, folder: Path) -> None:
    """Put the logs of a folder into the archive, beside what it holds."""
    of.folder.mkdir(parents=True, exist_ok=True)
    for name in (log.TIMES, log.COUNTS):
        log.put_away([of.folder / name, folder / name], of.folder / name)


def visits(runs: Iterable[Run]) -> list[Run]:
    """Return one run for each visit: the lower median of its repeats, which others may slow and nobody speeds up."""
    of_visits: dict[tuple[str, str, str, str | None, str], list[Run]] = defaultdict(list)
    for run in runs:
        of_visits[run.app, run.input, run.platform, run.measured_in, run.status].append(run)
    number: dict[tuple[str, str, str], int] = defaultdict(int)
    merged = []
    for (app, name, platform, _, status), own in of_visits.items():
        cell = (app, name, platform)
        seconds = statistics.median_low([run.runtime_s or 0.0 for run in own]) if status == OK else None
        merged.append(replace(own[0], runtime_s=seconds, repeat=number[cell]))
        number[cell] += 1
    return merged


def marked(runs: Iterable[Run], of: Campaign) -> list[Run]:
    """Return runs that tell their kind, and where their programs can run; a digest is not a checksum, a number."""
    known = []
    for run in runs:
        metadata = dict(run.metadata)
        if isinstance(result := metadata.get("checksum"), str):
            metadata = {**metadata, "checksum": None, "digest": result}
        known.append(replace(run, runnable=of.runnable, metadata={"kind": of.kind, **metadata}))
    return known


def write(table: RunsTable, path: Path) -> None:
    """Write a table without what names a single machine."""
    frame = table.frame.drop("host", strict=False).with_columns(pl.col(pl.Float64).round_sig_figs(7))
    frame.write_parquet(path, compression="zstd", compression_level=19)
    print(f"wrote {path.name}, {frame.height:,} rows, {path.stat().st_size / 1e6:.2f} MB", file=sys.stderr)


def write_platforms(spec: campaign.Spec, folder: Path, path: Path) -> None:
    """Write the facts of the platforms, without what names a single machine."""
    facts_of_machines = log.machines(folder)
    path.unlink(missing_ok=True)
    for mode in spec.modes.values():
        facts = replace(facts_of_machines[mode.name], kernel=None, os=None, more={"threads": mode.threads})
        platforms.add(path, platforms.Platform(mode.name, mode.platform_class, facts))


def different_results(runs: Iterable[Run]) -> list[str]:
    """Return the inputs whose result is not the same everywhere."""
    results: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    kinds = {}
    for run in runs:
        kinds[run.app, run.input] = run.metadata["kind"]
        if run.status == OK and isinstance(result := run.metadata.get("checksum"), int | float):
            results[run.app, run.input][run.platform] = float(result)
    problems = []
    for (app, name), by_platform in results.items():
        low, high = min(by_platform.values()), max(by_platform.values())
        limit = TOLERANCE["float" if "precision=float" in name or kinds[app, name] == "array program" else "double"]
        if high - low > limit * max(abs(low), abs(high), 1e-30):
            problems.append(f"{app} {name}: checksums {by_platform}")
    return problems


def too_few(of_campaigns: Mapping[str, list[Run]]) -> list[str]:
    """Return the campaigns of which cells are missing."""
    problems = []
    for name, runs in of_campaigns.items():
        spec = CAMPAIGNS[name].counted()
        cells = {(run.app, run.input, run.platform) for run in runs if run.status == OK}
        wanted = len(spec.works) * len(spec.modes)
        if len(cells) < 0.95 * wanted:
            problems.append(f"{name}: {len(cells)} of {wanted} cells, expected 95 %")
    return problems


def check_composed() -> dict[str, dict[str, float]]:
    """Return how programs composed of parts compare with those run whole, by platform."""
    of_programs: dict[tuple[str, str], list[float]] = defaultdict(list)
    again: dict[str, list[float]] = defaultdict(list)
    for line in log.lines(CHECKS):
        before, after = line["composed"]
        program = f"{line['workload']} {line['input']}"
        of_programs[line["platform"], program].append(statistics.mean((before, after)) / line["whole"])
        again[line["platform"]].append(float(np.log(after / before)))
    of_platforms: dict[str, list[float]] = defaultdict(list)
    for (platform, _), ratios in of_programs.items():
        of_platforms[platform].append(float(np.log(statistics.median(ratios))))
    return {
        name: {
            "programs": len(logs),
            "bias": float(np.exp(np.mean(logs))),
            "typical_factor": float(np.exp(np.mean(np.abs(logs)))),
            "median_factor": float(np.exp(np.median(np.abs(logs)))),
            "composed_again": float(np.exp(np.mean(np.abs(again[name])))),
        }
        for name, logs in of_platforms.items()
    }


def counted_again(folder: Path) -> dict[str, dict[str, float]]:
    """Return how far two counts of one input lie apart, by event, for inputs that were counted more than once."""
    of_inputs: dict[tuple[str, Work], list[Mapping[str, float | None]]] = defaultdict(list)
    for each in log.counted(folder):
        if each.error is None:
            of_inputs[each.counts, each.work].append(each.events)
    apart: dict[str, list[float]] = defaultdict(list)
    for counts in of_inputs.values():
        for earlier, later in pairwise(counts):
            for event, number in later.items():
                if number and (before := earlier.get(event)):
                    apart[event].append(abs(float(np.log(number / before))))
    return {
        event: {
            "inputs": len(logs),
            "typical_factor": float(np.exp(np.mean(logs))),
            "median_factor": float(np.exp(np.median(logs))),
        }
        for event, logs in sorted(apart.items())
    }


def too_far(composed: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Return the platforms on which composed programs are not what they stand for."""
    problems = []
    for name, facts in composed.items():
        if not 1 / MOST_APART <= facts["bias"] <= MOST_APART:
            problems.append(f"{name}: composed programs take {facts['bias']:.3f} of whole ones, expected {MOST_APART}")
        most = max(MOST_APART, facts["composed_again"])
        if facts["typical_factor"] > most:
            own = facts["typical_factor"]
            problems.append(f"{name}: composed programs are a factor {own:.3f} from whole ones, expected {most:.3f}")
    return problems


def facts_of(table: RunsTable) -> dict[str, object]:
    """Return what a table holds and how well it repeats."""
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
        "variation_between_visits": own.noise_between_visits,
        "by_platform": {each.name: each.noise_between_visits for each in own.platforms},
        "agreement_of_halves": {name: halves[name] for name in AGREEMENT},
        "constant_answer": constant,
        "largest_ratio": float(ratio_w.max()),
    }


if __name__ == "__main__":
    sys.exit(main())
