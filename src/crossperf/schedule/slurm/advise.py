"""Chooses a partition for a submission, with the controller's own word on when it would start in each."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from crossperf.schedule.policies import Ask, Policy
from crossperf.schedule.slurm import controller
from crossperf.schedule.slurm.ranking import UNKNOWN_S, LiveQueues, options
from crossperf.schedule.slurm.submission import Submission
from crossperf.schedule.slurm.table import PartitionChoice, PlacementTable

#: Behind jobs without a limit Slurm predicts a start in some thousand years.
_YEAR_S = 365 * 86400


@dataclass(frozen=True)
class Advice:
    """A partition for a job, or ``None`` to leave it as it is, with the reason in one sentence.

    `limit_s` is the time limit that suits the partition, ``None`` where the job asked for none or stays.
    """

    partition: str | None
    reason: str
    limit_s: float | None = None


def advise(
    submission: Submission,
    table: PlacementTable,
    policy: Policy,
    user: str,
    rng: np.random.Generator,
    *,
    stdin: bytes | None = None,
    deadline_s: float | None = None,
    sbatch: str = "sbatch",
) -> Advice:
    """Return where a job should run; raises `ControllerError` where the controller cannot be asked."""
    job = submission.named(user)
    if job.off:
        return Advice(None, "the job wants no advice (crossperf=off)")
    if submission.fixed:
        return Advice(None, submission.fixed)
    entry = table.find(job)
    if entry is None:
        names = " or ".join(repr(app) for app in job.apps) or "a job without a name"
        return Advice(None, f"the table knows nothing of {names}")
    (app, _, input_), row = entry
    controller.refuse_unless_up()
    queues = controller.queues()
    starts = {
        choice.partition: controller.start(choice.partition, submission.arguments, stdin, sbatch)
        for choice in row.choices
        if choice.partition in queues
    }
    open_to_it = [choice for choice in row.choices if (s := starts.get(choice.partition)) and s.refused is None]
    if not open_to_it:
        reason = next((start.refused for start in starts.values() if start.refused), "none of them exists")
        return Advice(None, f"no partition of the table can take it ({reason})")
    limit_s = submission.limit_s
    seconds = row.seconds or limit_s or UNKNOWN_S
    ask = Ask(submission.nodes, limit_s or seconds, app, input_, user, deadline_s=deadline_s)
    live = LiveQueues(queues, lambda name, _: starts[name].wait_s)
    facts = {partition.partition: partition for partition in table.partitions}
    best = open_to_it[policy(ask, options(open_to_it, seconds, facts, ask.nodes, live), rng)]
    base = next((choice for choice in row.choices if choice.partition == table.default), None)
    scaled_s = None
    if limit_s is not None and base is not None and best is not base:
        longest_s = queues[best.partition].limit_s or math.inf
        scaled_s = min(limit_s * best.high / base.relative, longest_s)
    waits = ", ".join(f"{name} {duration(start.wait_s)}" for name, start in starts.items() if start.refused is None)
    where = f"partition {best.partition} ({facts[best.partition].platform})"
    reason = f"{where}: {_words(app, best, base, row.seconds)}; predicted waits: {waits}"
    return Advice(best.partition, reason, scaled_s)


def _words(app: str, best: PartitionChoice, base: PartitionChoice | None, seconds: float | None) -> str:
    how = f"measured {best.runs} times" if best.runs else "predicted"
    time = "" if seconds is None else f"about {duration(seconds * best.relative)}"
    if base is not None and base.partition != best.partition:
        ratio, low, high = (number / base.relative for number in (best.relative, best.low, best.high))
        against = f"{ratio:.3g} times as long as on {base.partition} (range {low:.3g} to {high:.3g}; {how})"
        return f"{app} takes {', '.join(filter(None, (time, against)))}"
    return f"{app} takes {time} there ({how})" if time else f"{app} is best left there ({how})"


def command(sbatch: str, submission: Submission, advice: Advice, *, scale_limits: bool = False) -> list[str]:
    """Return the command that submits a job as advised: what the user wrote, with the choice added."""
    words = list(submission.arguments)
    if scale_limits and advice.limit_s is not None:
        # The last word wins, so it stands behind the user's options; and before the script, whose arguments follow.
        words.insert(submission.n_options, f"--time={max(1, math.ceil(advice.limit_s / 60))}")
    chosen = [] if advice.partition is None else [f"--partition={advice.partition}"]
    return [sbatch, *chosen, *words]


def duration(seconds: float) -> str:
    """Return a duration as a person reads it.

    >>> duration(0.0), duration(75.0), duration(600.0), duration(8640.0), duration(1e12)
    ('0 s', '75 s', '10 min', '2.4 h', 'over a year')
    """
    if seconds > _YEAR_S:
        return "over a year"
    if seconds < 90:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.3g} min" if seconds < 5400 else f"{seconds / 3600:.3g} h"
