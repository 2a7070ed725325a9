"""One simulation as a piece of work: the jobs of a seed under one policy that sees one predictor."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from crossperf import plain, plugins
from crossperf.errors import SettingsError
from crossperf.schedule.jobs import Jobs
from crossperf.schedule.machines import Machines
from crossperf.schedule.outcome import JobCounts, JobMetrics
from crossperf.schedule.rules import Rules
from crossperf.schedule.simulate import simulate
from crossperf.schedule.times import RelativeTimes
from crossperf.workers import Parcel, PieceQuestion, Study
from crossperf.workers.records import pack_records, unpack_record


def simulated(
    jobs: Jobs,
    machines: Machines,
    truth: RelativeTimes,
    table: RelativeTimes,
    policy: str,
    rules: Rules | None,
    seed: int,
) -> tuple[JobMetrics, JobCounts]:
    """Return what becomes of jobs; where none can be placed, raise."""
    outcome = simulate(jobs, machines, truth, table, policy, rules=rules, seed=seed)
    if not outcome.placed.any():
        raise SettingsError("no job can be placed, so there is nothing to compare. Check machines and times.")
    return outcome.metrics(), outcome.counts()


def questions(
    jobs: Jobs,
    machines: Machines,
    truth: RelativeTimes,
    pairs: Sequence[tuple[str, RelativeTimes]],
    rules: Rules,
    seed: int,
) -> Iterator[PieceQuestion]:
    """Yield what is asked about the jobs of a seed: each policy with each predictor."""
    tables = {table.name: table for _, table in pairs}
    records = {"jobs": jobs, "machines": machines, "truth": truth, "rules": rules}
    parcel = pack_records({**records, **{f"predictor {name}": table for name, table in tables.items()}})
    for policy, table in pairs:
        facts = {"policy": policy, "code_of_policy": _code(policy), "predictor": table.name, "seed": seed}
        yield PieceQuestion(parcel, facts, f"{policy} with {table.name}, seed {seed}")


def score(table: Parcel, question: Mapping[str, Any]) -> Parcel:
    """Return the metrics of one simulation; what workers are sent."""
    policy = question["policy"]
    if _code(policy) != question["code_of_policy"]:
        raise SettingsError(f"policy: {policy}: found another file here than where it was asked for.")
    metrics, counts = simulated(
        unpack_record(Jobs, table, "jobs"),
        unpack_record(Machines, table, "machines"),
        unpack_record(RelativeTimes, table, "truth"),
        unpack_record(RelativeTimes, table, f"predictor {question['predictor']}"),
        policy,
        unpack_record(Rules, table, "rules"),
        question["seed"],
    )
    return Parcel({"metrics": plain.to_json(metrics), "counts": plain.to_json(counts)})


def scores_of(answer: Parcel) -> tuple[JobMetrics, JobCounts]:
    """Return the metrics of an answer."""
    metrics, counts = answer.facts["metrics"], answer.facts["counts"]
    return plain.from_json(JobMetrics, metrics), plain.from_json(JobCounts, counts)


def _code(policy: str) -> str:
    """Return a digest of the file of a policy of one's own; nothing for others."""
    file = Path(policy.rpartition(":")[0]).expanduser()
    is_own = plugins.is_file_spec(policy) and file.is_file()
    return hashlib.sha256(file.read_bytes()).hexdigest()[:16] if is_own else ""


STUDY = Study(score, ("schedule",))
