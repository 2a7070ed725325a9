"""What finished jobs teach: how much longer the same work took on one platform than on another, user by user.

Two jobs of one name need not do the same, so times are compared only where the work is the same: the same script,
arguments and nodes, or an input that the user has named. Other runs tell how long a job takes, and leave the predicted
ratios as they are. What one user's jobs teach holds for that user; for all it holds where several users agree.
"""

from __future__ import annotations

import math
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from crossperf.errors import several
from crossperf.records import OK, Run
from crossperf.schedule.slurm.ranking import Span, WorkloadTimes, is_duration, with_apps
from crossperf.schedule.slurm.table import Key
from crossperf.schedule.times import LARGEST, SMALLEST

#: Users agree where at least this share of their ratios lies within this factor of the median.
_SHARE, _FACTOR = 2 / 3, 2.0
_DAY_S = 86400.0


@dataclass(frozen=True)
class Trust:
    """When finished jobs outweigh predictions.

    `enough` runs on each of two platforms teach their ratio; a run of `half_life_days` ago counts half; `users` must
    agree before a ratio holds for those who have not run it.
    """

    enough: int = 3
    users: int = 3
    half_life_days: float = 90.0

    def weighs(self, weight: float) -> bool:
        """Tell whether runs of this weight are enough, age taken off."""
        return weight >= self.enough - 0.5


@dataclass(frozen=True)
class _Sample:
    """A finished job: where, how long, how much it counts, and what work it did; ``None`` where that is not known."""

    platform: str
    seconds: float
    weight: float
    work: tuple[Any, ...] | None
    nodes: int


@dataclass(frozen=True)
class _Lesson:
    """What one user's jobs of a key teach; `anchor` is the platform that ratios were measured against."""

    times: WorkloadTimes
    anchor: str | None = None

    def measured(self) -> dict[str, Span]:
        return {name: span for name, span in self.times.spans.items() if span.runs}


def with_learned(
    known: Mapping[Key, WorkloadTimes],
    runs: Iterable[Run],
    reference: str,
    trust: Trust | None = None,
    now_s: float | None = None,
) -> tuple[dict[Key, WorkloadTimes], list[str]]:
    """Return what is known with what finished jobs teach, and in words what was not learned.

    Parameters
    ----------
    known
        Predicted times, whose ratios stay where no work was run on two platforms.
    now_s
        Seconds since 1970 that ages are reckoned from; ``None`` takes the present.
    """
    trust = trust or Trust()
    general, learned = with_apps(known), dict(known)
    votes: dict[tuple[str, str], list[_Lesson]] = defaultdict(list)
    unlearned: Counter[str] = Counter()
    for (app, user, input_), samples in _by_key(runs, trust, time.time() if now_s is None else now_s).items():
        base = known.get((app, "", input_)) or general.get((app, "", "")) or WorkloadTimes({})
        lesson = _lesson(samples, base, reference, trust)
        if lesson.anchor is None:
            unlearned["no work ran often enough on two platforms"] += 1
        if lesson.times.spans and (lesson.anchor or lesson.times.seconds):
            votes[app, input_].append(lesson)
            if user:
                learned[app, user, input_] = lesson.times
    for (app, input_), lessons in votes.items():
        base = known.get((app, "", input_)) or general.get((app, "", "")) or WorkloadTimes({})
        agreed = _agreed(lessons, base, trust)
        if agreed is not None:
            learned[app, "", input_] = agreed
        elif any(lesson.anchor for lesson in lessons):
            unlearned[f"fewer than {trust.users} users agree, so it holds for the users alone who ran it"] += 1
    return learned, [
        f"the ratios of {several(count, 'key')} were not learned: {why}." for why, count in unlearned.items()
    ]


def _by_key(runs: Iterable[Run], trust: Trust, now_s: float) -> dict[Key, list[_Sample]]:
    samples: dict[Key, list[_Sample]] = defaultdict(list)
    for run in runs:
        if run.status == OK and is_duration(run.runtime_s):
            nodes = _count(run.metadata.get("nodes"))
            weight = 0.5 ** (_age_s(run.started, now_s) / (trust.half_life_days * _DAY_S))
            sample = _Sample(run.platform, float(run.runtime_s or 0.0), weight, _work(run, nodes), nodes)
            samples[run.app, str(run.metadata.get("user") or ""), run.input].append(sample)
    return samples


def _count(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 1


def _age_s(started: Any, now_s: float) -> float:
    try:
        return max(0.0, now_s - datetime.fromisoformat(started).timestamp())
    except (TypeError, ValueError, OverflowError):
        return 0.0


def _work(run: Run, nodes: int) -> tuple[Any, ...] | None:
    """Return what tells the same work: the input that a user named, or the sum over script and arguments."""
    if not run.input.startswith("nodes-"):
        return (run.input, nodes)
    work = run.metadata.get("work")
    return (work, nodes) if work else None


def _lesson(samples: Sequence[_Sample], base: WorkloadTimes, reference: str, trust: Trust) -> _Lesson:
    same: dict[tuple[Any, ...], dict[str, list[_Sample]]] = defaultdict(lambda: defaultdict(list))
    for sample in samples:
        if sample.work is not None:
            same[sample.work][sample.platform].append(sample)
    both = [platforms for platforms in same.values() if len(platforms) > 1]
    weights: Counter[str] = Counter()
    for platforms in both:
        weights.update({name: sum(sample.weight for sample in ours) for name, ours in platforms.items()})
    anchor = reference if reference in weights else max(weights, key=weights.__getitem__, default=None)
    ratios = {} if anchor is None else {n: r for n in weights if (r := _ratio(n, anchor, both, trust)) and n != anchor}
    spans = dict(base.spans)
    if anchor is None or not ratios:
        anchor = None
    else:
        if anchor not in (*spans, reference):
            spans = {}  # neither measured nor predicted on the reference: the measured ones compare with each other
        scale = 1.0 if anchor == reference or anchor not in spans else spans[anchor].relative
        ratios[anchor] = _spread([1.0], [1.0], round(weights[anchor]))
        spans |= {name: _scaled(span, scale) for name, span in ratios.items()}
    nodes = round(statistics.median(sample.nodes for sample in samples))
    times = WorkloadTimes(spans, _seconds(samples, spans, trust), nodes, base.cannot - {*ratios})
    return _Lesson(times, anchor)


def _ratio(name: str, anchor: str, both: Sequence[Mapping[str, Sequence[_Sample]]], trust: Trust) -> Span | None:
    """Return time on a platform over time on the anchor, of works that ran on both; ``None`` where they are too few."""
    pairs = [platforms for platforms in both if name in platforms and anchor in platforms]
    if not all(trust.weighs(sum(s.weight for pair in pairs for s in pair[place])) for place in (name, anchor)):
        return None
    ratios, weights = [], []
    for pair in pairs:
        anchor_s = quantile([s.seconds for s in pair[anchor]], [s.weight for s in pair[anchor]], 0.5)
        ratios += [sample.seconds / anchor_s for sample in pair[name]]
        weights += [sample.weight for sample in pair[name]]
    return _spread(ratios, weights, len(ratios))


def _spread(ratios: Sequence[float], weights: Sequence[float], runs: int) -> Span:
    low, middle, high = (quantile(ratios, weights, share) for share in (0.1, 0.5, 0.9))
    return Span(middle, low, high, max(runs, 1))


def _scaled(span: Span, scale: float) -> Span:
    relative, low, high = (min(max(n * scale, SMALLEST), LARGEST) for n in (span.relative, span.low, span.high))
    return Span(relative, low, high, span.runs)


def _seconds(samples: Sequence[_Sample], spans: Mapping[str, Span], trust: Trust) -> float | None:
    """Return the seconds on the reference that the runs on each platform tell, by their mean log."""
    by_platform: dict[str, list[_Sample]] = defaultdict(list)
    for sample in samples:
        by_platform[sample.platform].append(sample)
    logs = [
        math.log(quantile([s.seconds for s in ours], [s.weight for s in ours], 0.5) / spans[name].relative)
        for name, ours in by_platform.items()
        if name in spans and trust.weighs(sum(s.weight for s in ours))
    ]
    return math.exp(statistics.fmean(logs)) if logs else None


def _agreed(lessons: Sequence[_Lesson], base: WorkloadTimes, trust: Trust) -> WorkloadTimes | None:
    """Return what several users' jobs agree on, each user having one voice; ``None`` where that is nothing."""
    anchors = Counter(lesson.anchor for lesson in lessons if lesson.anchor)
    usual = anchors.most_common(1)[0][0] if anchors else None
    heard = [lesson for lesson in lessons if base.spans or lesson.anchor == usual]
    voices: dict[str, list[Span]] = defaultdict(list)
    for lesson in heard:
        for name, span in lesson.measured().items():
            voices[name].append(span)
    spans = {name: _common(ours) for name, ours in voices.items() if _agree(ours, trust)}
    times_s = [lesson.times.seconds for lesson in heard if lesson.times.seconds]
    seconds = statistics.median(times_s) if len(times_s) >= trust.users else base.seconds
    if len(spans) < 2:
        return None
    nodes = round(statistics.median(lesson.times.nodes for lesson in heard))
    return WorkloadTimes({**base.spans, **spans}, seconds, nodes, base.cannot - {*spans})


def _agree(spans: Sequence[Span], trust: Trust) -> bool:
    middle = statistics.median(span.relative for span in spans)
    near = sum(middle / _FACTOR <= span.relative <= middle * _FACTOR for span in spans)
    return len(spans) >= trust.users and near >= _SHARE * len(spans)


def _common(spans: Sequence[Span]) -> Span:
    ends = zip(*((span.relative, span.low, span.high) for span in spans), strict=True)
    relative, low, high = map(statistics.median, ends)
    return Span(relative, low, high, sum(span.runs for span in spans))


def quantile(values: Sequence[float], weights: Sequence[float], share: float) -> float:
    """Return a quantile of weighted values, between the middles of their weights.

    >>> quantile([1.0, 2.0, 9.0], [1.0, 1.0, 1.0], 0.5), quantile([1.0, 9.0], [1.0, 3.0], 0.5)
    (2.0, 7.0)
    """
    order = np.argsort(values)
    sorted_n, weight_n = np.asarray(values, float)[order], np.asarray(weights, float)[order]
    return float(np.interp(share, (weight_n.cumsum() - 0.5 * weight_n) / weight_n.sum(), sorted_n))
