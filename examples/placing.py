"""A policy of one's own, beside those that come with crossperf, on three clusters of the testbed's machines.

    python examples/placing.py

Jobs are workloads of the testbed; the policies see their measured times, and how full the clusters are.
"""

from __future__ import annotations

import numpy as np

from crossperf.datasets import testbed
from crossperf.schedule.machines import Machines
from crossperf.schedule.policies import Ask, Options
from crossperf.schedule.predictors import ideal
from crossperf.schedule.readers import from_runs
from crossperf.schedule.simulate import simulate
from crossperf.schedule.synthetic import draw


def patient(ask: Ask, options: Options, rng: np.random.Generator) -> int:
    """The shortest run time, unless the wait for it is more than twice as long as the run."""
    wait_s, run_s = options.wait_s(), options.run_s
    return int(np.where(wait_s <= 2 * run_s, run_s, wait_s + run_s + 1e9).argmin())


def main() -> None:
    truth = from_runs(testbed.load(), reference="epyc-1t")
    machines = Machines.of({"epyc": 128, "xeon": 32, "h200": 8})
    jobs = draw(2_000, machines, truth, utilisation=1.2, seed=1)
    print(f"{jobs.name}, mean turnaround:")
    for policy in ("random", "fastest-available", "turnaround", "considerate", patient):
        outcome = simulate(jobs, machines, truth, ideal(truth), policy, seed=1)
        print(f"  {outcome.policy:18} {outcome.metrics().mean_turnaround_s:8,.0f} s")


if __name__ == "__main__":
    main()
