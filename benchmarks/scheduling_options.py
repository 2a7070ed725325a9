"""What the options of the simulator change: backfilling, outages, feedback, deadlines. Parts of `scheduling.py`.

The machines and speed-ups are those of the dr_evt study; the prices and powers are made up.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy import stats

from crossperf.schedule import predictors, readers
from crossperf.schedule.jobs import Jobs
from crossperf.schedule.machines import Machines
from crossperf.schedule.outcome import Outcome
from crossperf.schedule.rules import Maintenance, Rules
from crossperf.schedule.simulate import simulate
from crossperf.schedule.synthetic import LONGEST_S, draw
from crossperf.schedule.times import RelativeTimes
from crossperf.schedule.traces.feedback import after_sessions

JOBS = 5_000
BACKFILLS = ("none", "easy", "shortest", "conservative")
#: Per node-hour, and watts with and without a job: made up, a GPU node being dear.
PRICES = {"dane": 1.0, "mammoth": 1.5, "tioga": 6.0, "tuolumne": 5.0, "matrix": 7.0}
POWERS_W = {"dane": 700.0, "mammoth": 900.0, "tioga": 2500.0, "tuolumne": 2400.0, "matrix": 3000.0}
IDLE_W = {name: 0.3 * watts for name, watts in POWERS_W.items()}


def world(data: Path) -> tuple[Machines, RelativeTimes]:
    """Return the machines of the study with prices and powers, and its truth."""
    plain = readers.read_machines(data / "machines.csv")
    nodes = dict(zip(plain.names, plain.nodes, strict=True))
    return Machines.of(nodes, PRICES, power_w=POWERS_W, idle_w=IDLE_W), readers.read_times(data / "ground_truth.csv")


def options(arguments: argparse.Namespace) -> list[str]:
    machines, truth = world(arguments.data)
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    return [
        f"## (c) Options: {JOBS:,} jobs on the authors' machines, {len(seeds)} seeds, `ideal` predictions\n",
        "Mean turnaround in minutes ± half of its 95 % interval, and the change against EASY, paired over the seeds.\n",
        *backfilling(machines, truth, seeds),
        *troubles(machines, truth, seeds),
        f"## (d) Deadlines: twice the requested time, {JOBS:,} jobs, {len(seeds)} seeds, made-up prices and powers\n",
        *deadlines(machines, truth, seeds),
    ]


def _run(
    machines: Machines,
    truth: RelativeTimes,
    policy: str,
    seed: int,
    load: float,
    rules: Rules,
    change: Callable[[Jobs], Jobs],
) -> Outcome:
    jobs = change(draw(JOBS, machines, truth, utilisation=load, seed=seed))
    return simulate(jobs, machines, truth, truth, policy, rules=replace(rules, wall_limit_s=LONGEST_S), seed=seed)


def _mean(values: Sequence[float], unit: float = 1.0, digits: int = 1) -> str:
    student = float(stats.t.ppf(0.975, len(values) - 1)) if len(values) > 1 else 0.0
    half = student * float(np.std(values, ddof=1)) / np.sqrt(len(values)) if len(values) > 1 else 0.0
    return f"{np.mean(values) / unit:,.{digits}f} ± {half / unit:,.{digits}f}"


def _turnarounds(outcomes: Sequence[Outcome]) -> list[float]:
    return [float(outcome.metrics().mean_turnaround_s or 0.0) for outcome in outcomes]


def _cell(own: Sequence[float], easy: Sequence[float]) -> str:
    change = float(np.exp(np.mean(np.log(np.array(own) / np.array(easy))))) - 1.0
    return _mean(own, 60.0) + ("" if list(own) == list(easy) else f" ({change:+.1%})")


def backfilling(machines: Machines, truth: RelativeTimes, seeds: Sequence[int]) -> list[str]:
    """Return a table of rules of backfilling; with `pinned` every job goes to the same place under all of them."""
    rows = ["| load | policy | " + " | ".join(BACKFILLS) + " |", "|---|---|" + "---|" * len(BACKFILLS)]
    for load in (0.9, 1.1, 2.0):
        for policy in ("pinned", "turnaround", "considerate"):
            by_rule = {}
            for rule in BACKFILLS:
                rules = Rules(backfill=rule)
                outcomes = [_run(machines, truth, policy, seed, load, rules, lambda jobs: jobs) for seed in seeds]
                by_rule[rule] = _turnarounds(outcomes)
            cells = [_cell(own, by_rule["easy"]) for own in by_rule.values()]
            rows.append(f"| {load:g} | {policy} | {' | '.join(cells)} |")
            print(rows[-1], flush=True)
    return [*rows, ""]


def _in_sessions(jobs: Jobs) -> Jobs:
    """Return jobs that follow their user's last one, as if the clusters had made nobody wait."""
    follows, think_s = after_sessions(jobs.submit_s, np.zeros(len(jobs)), jobs.run_s, jobs.user)
    return replace(jobs, follows=follows, think_s=think_s)


def troubles(machines: Machines, truth: RelativeTimes, seeds: Sequence[int]) -> list[str]:
    """Return a table of what maintenance, failures, priorities and feedback do at load 1.1."""
    weekly = tuple(Maintenance(name, 86_400.0, 86_400.0 + 8 * 3600.0) for name in machines.names)
    ranked = lambda jobs: replace(jobs, priority=(jobs.user % 3).astype(np.float64))  # noqa: E731
    cases: dict[str, tuple[Rules, Callable[[Jobs], Jobs]]] = {
        "nothing": (Rules(), lambda jobs: jobs),
        "8 h of maintenance after a day": (Rules(maintenance=weekly), lambda jobs: jobs),
        "a node fails once in 60 days, 4 h of repair": (Rules(node_mtbf_s=60 * 86_400.0), lambda jobs: jobs),
        "three priorities, 12 h of waiting each": (Rules(ageing_s=12 * 3600.0), ranked),
        "users who wait for their jobs (feedback)": (Rules(), _in_sessions),
    }
    rows = [f"| load 1.1 with | {' | '.join(POLICIES)} | failures under jobs |", "|---|" + "---|" * (len(POLICIES) + 1)]
    plain: dict[str, list[float]] = {}
    for name, (rules, change) in cases.items():
        cells, hits = [], 0
        for policy in POLICIES:
            outcomes = [_run(machines, truth, policy, seed, 1.1, rules, change) for seed in seeds]
            hits += sum(outcome.counts().failures for outcome in outcomes)
            own = _turnarounds(outcomes)
            cells.append(_cell(own, plain.setdefault(policy, own)))
        rows.append(f"| {name} | {' | '.join(cells)} | {hits / len(POLICIES) / len(seeds):,.0f} |")
        print(rows[-1], flush=True)
    return [*rows, ""]


POLICIES = ("turnaround", "considerate")


def deadlines(machines: Machines, truth: RelativeTimes, seeds: Sequence[int]) -> list[str]:
    """Return a table of deadlines missed, cost and energy."""
    rows = [
        "| load | predictor | policy | deadlines missed | cost | energy, MWh | turnaround, min |",
        "|---|---|---|---|---|---|---|",
    ]
    for load in (0.9, 1.1):
        for table in (predictors.ideal(truth), predictors.app_average(truth)):
            for policy in ("turnaround", "considerate", "cheapest", "greenest"):
                rules = Rules(deadline=2.0, wall_limit_s=LONGEST_S)
                outcomes = []
                for seed in seeds:
                    jobs = draw(JOBS, machines, truth, utilisation=load, seed=seed)
                    outcomes.append(simulate(jobs, machines, truth, table, policy, rules=rules, seed=seed))
                missed = [float(outcome.counts().deadlines_missed) for outcome in outcomes]
                cost, energy = ([getattr(o.metrics(), name) for o in outcomes] for name in ("cost", "energy_kwh"))
                cells = [_mean(missed), _mean(cost, digits=0), _mean(energy, 1e3), _mean(_turnarounds(outcomes), 60.0)]
                rows.append(f"| {load:g} | {table.name} | {policy} | {' | '.join(cells)} |")
                print(rows[-1], flush=True)
    return [*rows, ""]
