"""What shadow mode would have saved: finished jobs, where the plugin would have sent them, and how sure that is."""

from __future__ import annotations

import bisect
import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from crossperf.errors import several
from crossperf.plain import to_json
from crossperf.schedule.slurm.advise import duration
from crossperf.schedule.slurm.history import FinishedJob
from crossperf.schedule.slurm.names import words_of

#: Jobs that were submitted to a partition so near in time tell what one more would have waited there.
_NEAR_S = 3600.0
_DONE = "COMPLETED"


@dataclass(frozen=True)
class _Choice:
    """A job that ended well, the partitions noted for it, and its predicted time there over that where it ran."""

    job: FinishedJob
    partitions: tuple[str, ...]
    ratio: float
    low: float
    high: float

    @property
    def moves(self) -> bool:
        return self.job.partition not in self.partitions or len(self.partitions) > 1


@dataclass(frozen=True)
class ShadowReport:
    """Hours of jobs as they were and as they would have been; `low_s` and `high_s` are the ends of the saving.

    `compared` jobs have others near in time that tell of the waits elsewhere, and `wait_s` counts these alone.
    `checked` works ran both here and there: their measured ratio was off by `typical_factor` from the predicted one.
    """

    noted: int
    moved: Mapping[str, int]
    run_s: float
    would_run_s: float
    low_s: float
    high_s: float
    compared: int
    wait_s: float
    would_wait_s: float
    checked: int
    typical_factor: float | None

    @property
    def lines(self) -> list[str]:
        """The report in words."""
        count = sum(self.moved.values())
        where = ", ".join(f"{name} {number:,}" for name, number in Counter(self.moved).most_common(5))
        lines = [f"{several(self.noted, 'finished job')} noted in shadow mode, {count:,} would have gone elsewhere"]
        if not count:
            return lines
        lines[0] += f": {where}"
        lines.append(
            f"running: {duration(self.run_s)} as it was, {duration(self.would_run_s)} as predicted; "
            f"saved {_saved(self.run_s - self.would_run_s)} (range {_saved(self.low_s)} to {_saved(self.high_s)})"
        )
        if self.compared:
            lines.append(
                f"waiting, of the {self.compared:,} with others to compare: {duration(self.wait_s)} as it was, "
                f"{duration(self.would_wait_s)} elsewhere; saved {_saved(self.wait_s - self.would_wait_s)}"
            )
        return lines

    @property
    def doubts(self) -> list[str]:
        """What the numbers rest on."""
        count = sum(self.moved.values())
        notes = ["times elsewhere are predicted, not measured."]
        if self.typical_factor is not None:
            notes[0] += f" {several(self.checked, 'work')} ran in both: off by a factor of {self.typical_factor:.2f}."
        if count:
            notes.append(
                "waits elsewhere are those of others there within an hour; these jobs would have lengthened them."
            )
        if any("," in names for names in self.moved):
            notes.append("a job with a list counts as if it had run in the first partition of it.")
        if count > self.compared:
            notes.append(f"{several(count - self.compared, 'job')} had no other to compare waits with.")
        return notes

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON's own types."""
        return dict(to_json(self))


def _saved(seconds: float) -> str:
    return f"{'-' if seconds < 0 else ''}{duration(abs(seconds))}"


def report(jobs: Iterable[FinishedJob]) -> ShadowReport:
    """Return what would have become of the jobs that were noted in shadow mode."""
    done = [job for job in jobs if job.state == _DONE and job.seconds > 0]
    noted = [choice for choice in map(_choice, done) if choice is not None]
    moved = [choice for choice in noted if choice.moves]
    waits = _Waits(done)
    pairs = [
        (wait_s, near) for c in moved if (wait_s := _wait_s(c.job)) is not None and (near := waits.of(c)) is not None
    ]
    factors = _checks(noted, done)
    run_s = sum(choice.job.seconds for choice in moved)
    would_s, best_s, worst_s = (
        sum(choice.job.seconds * ratio for choice, ratio in zip(moved, ratios, strict=True))
        for ratios in ([c.ratio for c in moved], [c.low for c in moved], [c.high for c in moved])
    )
    return ShadowReport(
        noted=len(noted),
        moved=dict(Counter(",".join(choice.partitions) for choice in moved)),
        run_s=run_s,
        would_run_s=would_s,
        low_s=run_s - worst_s,
        high_s=run_s - best_s,
        compared=len(pairs),
        wait_s=sum(own for own, _ in pairs),
        would_wait_s=sum(near for _, near in pairs),
        checked=len(factors),
        typical_factor=math.exp(statistics.fmean(map(abs, map(math.log, factors)))) if factors else None,
    )


def _choice(job: FinishedJob) -> _Choice | None:
    words = words_of(job.tag) if job.tag.startswith("crossperf ") else {}
    elsewhere, here = (_numbers(words.get(name, "")) for name in ("there", "here"))
    if "would" not in words or not elsewhere or not here:
        return None
    ratio, low, high = (end / here[0] for end in elsewhere)
    return _Choice(job, tuple(words["would"].split(",")), ratio, low, high)


def _numbers(text: str) -> tuple[float, ...]:
    try:
        numbers = tuple(map(float, text.split(",")))
    except ValueError:
        return ()
    return numbers if len(numbers) == 3 and all(0 < number < math.inf for number in numbers) else ()


def _wait_s(job: FinishedJob) -> float | None:
    submitted, started = _time_s(job.submitted), _time_s(job.started)
    return None if submitted is None or started is None else max(0.0, started - submitted)


def _time_s(text: str) -> float | None:
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None


class _Waits:
    """What jobs have waited in each partition, by when they were submitted."""

    def __init__(self, jobs: Iterable[FinishedJob]) -> None:
        waits: dict[str, list[tuple[float, float]]] = defaultdict(list)
        for job in jobs:
            submitted, wait_s = _time_s(job.submitted), _wait_s(job)
            if submitted is not None and wait_s is not None:
                waits[job.partition].append((submitted, wait_s))
        self._waits = {name: sorted(pairs) for name, pairs in waits.items()}

    def of(self, choice: _Choice) -> float | None:
        """Return what a job would have waited: the shortest of its list; ``None`` where nobody can tell."""
        own_s, then = _wait_s(choice.job), _time_s(choice.job.submitted)
        known = [own_s] if choice.job.partition in choice.partitions else []
        for name in choice.partitions:
            pairs = self._waits.get(name, []) if name != choice.job.partition else []
            first = bisect.bisect_left(pairs, ((then or 0.0) - _NEAR_S, -math.inf))
            last = bisect.bisect_right(pairs, ((then or 0.0) + _NEAR_S, math.inf))
            if first < last:
                known.append(statistics.median(wait_s for _, wait_s in pairs[first:last]))
        return min((wait_s for wait_s in known if wait_s is not None), default=None)


def _checks(noted: Sequence[_Choice], done: Sequence[FinishedJob]) -> list[float]:
    """Return measured over predicted ratios of works that ran both here and where they would have gone."""
    times: dict[tuple[str, ...], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for job in done:
        if work := _work(job):
            times[work][job.partition].append(job.seconds)
    predicted = {work: choice for choice in noted if (work := _work(choice.job))}
    factors = []
    for work, choice in predicted.items():
        here, elsewhere = times[work].get(choice.job.partition), times[work].get(choice.partitions[0])
        if here and elsewhere and choice.job.partition != choice.partitions[0]:
            factors.append(statistics.median(elsewhere) / statistics.median(here) / choice.ratio)
    return factors


def _work(job: FinishedJob) -> tuple[str, ...] | None:
    words = words_of(job.tag) if job.tag.startswith("crossperf ") else {}
    return (job.user, str(job.nodes), words["app"], words["input"], words["work"]) if "work" in words else None
