"""What is known of the times of workloads, and the order in which a policy takes the partitions for each."""

from __future__ import annotations

import math
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from crossperf.errors import PredictError, SettingsError, some_of
from crossperf.records import Prediction
from crossperf.schedule.policies import RANGE_SIGMAS, Ask, Options, Policy
from crossperf.schedule.slurm.controller import Queue
from crossperf.schedule.slurm.site import Site
from crossperf.schedule.slurm.table import Key, KeyRow, PartitionChoice, PartitionFacts, PlacementTable
from crossperf.schedule.times import LARGEST, SMALLEST

if TYPE_CHECKING:
    from crossperf.schedule.times import RelativeTimes

#: Where nobody knows how long a job takes, waits are weighed as for one of an hour.
UNKNOWN_S = 3600.0


@dataclass(frozen=True)
class Span:
    """Time on a platform over time on the reference, its interval, and the measured runs behind it (0: predicted)."""

    relative: float
    low: float
    high: float
    runs: int = 0

    def __post_init__(self) -> None:
        if odd := [number for number in (self.relative, self.low, self.high) if not _is_ratio(number)]:
            expected = f"a number from {SMALLEST:g} to {LARGEST:g}"
            raise SettingsError(f"times: found a relative time of {odd[0]!r}, expected {expected}.")


def _is_ratio(number: float) -> bool:
    return SMALLEST <= number <= LARGEST


def is_duration(seconds: Any) -> bool:
    """Tell whether a value is a number of seconds that something can take."""
    return isinstance(seconds, int | float) and 0.0 < seconds <= LARGEST


@dataclass(frozen=True)
class WorkloadTimes:
    """What is known of one key: spans by platform, seconds on the reference where known, and nodes of its jobs.

    No job of it goes to a platform in `cannot`. Without spans, jobs of the key stay as they are: its run looks unknown.
    """

    spans: Mapping[str, Span]
    seconds: float | None = None
    nodes: int = 1
    cannot: frozenset[str] = frozenset()


def from_predictions(predictions: Iterable[Prediction], reference: str) -> dict[Key, WorkloadTimes]:
    """Return predictions by key, relative to a platform; several of one workload are combined by their mean log.

    A prediction that is relative to another platform loses its intervals: they do not carry over. A workload that
    cannot run on the platform is relative to the one its run was profiled on. A run that looks unknown has no spans.
    """
    known: dict[Key, list[WorkloadTimes]] = defaultdict(list)
    problems: list[str] = []
    for prediction in predictions:
        if reference in prediction.relative_time:
            if odd := list(_odd_numbers(prediction, reference)):
                problems.append(f"{prediction.app} {prediction.input}: {some_of(odd, 3)}")
            else:
                known[prediction.app, "", prediction.input].append(_times_of(prediction, reference))
    if problems:
        raise PredictError(
            f"predictions: found numbers that are no times ({some_of(problems, 3)}), expected relative times from "
            f"{SMALLEST:g} to {LARGEST:g} and seconds above 0 on every platform that is offered. Predict again.",
            problems=problems,
        )
    return {key: several[0] if len(several) == 1 else _combined(several) for key, several in known.items()}


def _odd_numbers(prediction: Prediction, reference: str) -> Iterator[str]:
    """Yield the numbers of a prediction that must not reach a controller, in words."""
    if prediction.is_unknown:
        return
    if _base_of(prediction, reference) not in prediction.offered:
        yield f"no time on {_base_of(prediction, reference)}"
    for what, times in (("time", prediction.relative_time), ("low", prediction.low), ("high", prediction.high)):
        yield from (
            f"{what} of {name} {times[name]!r}"
            for name in prediction.offered
            if name in times and not _is_ratio(times[name])
        )
    yield from (
        f"{s!r} s on {name}"
        for name, s in prediction.seconds.items()
        if name in prediction.offered and not is_duration(s)
    )


def _base_of(prediction: Prediction, reference: str) -> str:
    return prediction.source if reference in prediction.cannot else reference


def _times_of(prediction: Prediction, reference: str) -> WorkloadTimes:
    cannot = frozenset(prediction.cannot)
    if prediction.is_unknown:
        return WorkloadTimes({}, cannot=cannot)
    base = _base_of(prediction, reference)
    relative_to = prediction.source if prediction.relative_to == "source" else prediction.relative_to
    low, high = (prediction.low, prediction.high) if relative_to == base else ({}, {})
    times = {name: prediction.relative_time[name] / prediction.relative_time[base] for name in prediction.offered}
    spans = {name: Span(own, low.get(name, own), high.get(name, own)) for name, own in times.items()}
    return WorkloadTimes(spans, prediction.seconds.get(base), cannot=cannot)


def from_times(times: RelativeTimes, reference: str) -> dict[Key, WorkloadTimes]:
    """Return a table of relative times by key; workloads that cannot run on the reference are left out."""
    if reference not in times.modes:
        return {}
    m = times.modes.index(reference)
    known: dict[Key, WorkloadTimes] = {}
    for w, (app, input_) in enumerate(times.workloads):
        base = times.relative_wm[w, m]
        cells = (times.relative_wm[w] / base, times.low_wm[w] / base, times.high_wm[w] / base)
        spans = {
            mode: Span(*numbers)
            for mode, *numbers in zip(times.modes, *(row.tolist() for row in cells), strict=True)
            if not math.isnan(numbers[0])
        }
        if spans:
            known[app, "", input_] = WorkloadTimes(spans)
    return known


def _combined(several: Sequence[WorkloadTimes]) -> WorkloadTimes:
    """Return the geometric mean of several predictions of one workload, of those whose run does not look unknown."""
    several = [known for known in several if known.spans] or several[:1]
    spans = {}
    for name, ours in _by_platform(several):
        relative, low, high = (
            math.exp(statistics.fmean(map(math.log, ends)))
            for ends in zip(*((span.relative, span.low, span.high) for span in ours), strict=True)
        )
        spans[name] = Span(relative, low, high)
    seconds = [known.seconds for known in several if known.seconds is not None]
    nodes, median = max(known.nodes for known in several), statistics.median(seconds) if seconds else None
    return WorkloadTimes(spans, median, nodes, frozenset.intersection(*(known.cannot for known in several)))


def _by_platform(several: Sequence[WorkloadTimes]) -> Iterator[tuple[str, list[Span]]]:
    for name in dict.fromkeys(name for known in several for name in known.spans):
        yield name, [known.spans[name] for known in several if name in known.spans]


def with_apps(known: Mapping[Key, WorkloadTimes]) -> dict[Key, WorkloadTimes]:
    """Return the same with a key for each application, for inputs nobody has seen.

    What one of its inputs cannot run on, an input nobody has seen is not sent to; where the runs of most of its inputs
    look unknown, it stays as it is.
    """
    inputs: dict[str, list[WorkloadTimes]] = defaultdict(list)
    for (app, user, input_), times in known.items():
        if not user and input_:
            inputs[app].append(times)
    general: dict[Key, WorkloadTimes] = {}
    for app, several in inputs.items():
        cannot = frozenset[str]().union(*(times.cannot for times in several))
        known_inputs = [times for times in several if times.spans]
        shown = known_inputs if 2 * len(known_inputs) > len(several) else []
        spans = {name: _any_input(ours) for name, ours in _by_platform(shown) if name not in cannot}
        nodes = round(statistics.median(times.nodes for times in several))
        general[app, "", ""] = WorkloadTimes(spans, None, nodes, cannot)
    return dict(known) | general


def _any_input(spans: Sequence[Span]) -> Span:
    """Return the span of an input drawn from these: the mean log, with the spread between them and within each."""
    logs = [math.log(span.relative) for span in spans]
    within = statistics.fmean((math.log(span.high / span.low) / RANGE_SIGMAS) ** 2 for span in spans)
    half = math.exp(0.5 * RANGE_SIGMAS * math.sqrt(statistics.pvariance(logs) + within))
    middle = math.exp(statistics.fmean(logs))
    low, high = max(middle / half, SMALLEST), min(middle * half, LARGEST)
    return Span(middle, low, high, min(span.runs for span in spans))


@dataclass(frozen=True)
class LiveQueues:
    """The queues of a controller, and what predicts the wait in one from the nodes of a job."""

    queues: Mapping[str, Queue]
    wait_s: Callable[[str, int], float]


def options(
    choices: Sequence[PartitionChoice],
    seconds: float,
    facts: Mapping[str, PartitionFacts],
    nodes: int,
    live: LiveQueues | None = None,
) -> Options:
    """Return choices as a policy sees them; without a live state every queue is idle."""
    names = [choice.partition for choice in choices]
    sizes = [facts[name].nodes or nodes for name in names]
    queues = [live.queues.get(name) for name in names] if live else [None] * len(names)
    return Options.of(
        names,
        run_s=[choice.relative * seconds for choice in choices],
        low_s=[choice.low * seconds for choice in choices],
        high_s=[choice.high * seconds for choice in choices],
        nodes=[queue.nodes if queue else size for queue, size in zip(queues, sizes, strict=True)],
        free_nodes=[queue.free_nodes if queue else size for queue, size in zip(queues, sizes, strict=True)],
        queued=[queue.queued if queue else 0 for queue in queues],
        price_per_node_hour=[facts[name].price_per_node_hour for name in names],
        wait_s=(lambda: np.array([live.wait_s(name, nodes) for name in names])) if live else None,
    )


def table(
    known: Mapping[Key, WorkloadTimes],
    site: Site,
    facts: Sequence[PartitionFacts],
    policy: Policy,
    policy_name: str,
    *,
    seed: int = 0,
    live: LiveQueues | None = None,
    good_for_s: int = 0,
) -> tuple[PlacementTable, int]:
    """Return the table, and how many keys were left out because fewer than two partitions can be compared for them.

    A key whose run looks unknown has a row without choices, so that no more general key moves its jobs; one that can
    run in a single partition of several has that alone.
    """
    rng = np.random.default_rng(seed)
    by_name = {partition.partition: partition for partition in facts}
    rows: dict[Key, KeyRow] = {}
    workloads = with_apps(known)
    for key, times in workloads.items():
        choices = [
            PartitionChoice(place.partition, span.relative, span.low, span.high, span.runs)
            for place in site.places
            if (span := times.spans.get(place.platform)) is not None
        ]
        limited = any(place.platform in times.cannot for place in site.places)
        if len(choices) > 1 or limited or not times.spans:
            app, user, input_ = key
            seconds = times.seconds or UNKNOWN_S
            ask = Ask(times.nodes, seconds, app, input_, user)
            ranked: list[PartitionChoice] = []  # what the policy takes, then what it takes of the rest, and so on
            while choices:
                ranked.append(choices.pop(policy(ask, options(choices, seconds, by_name, ask.nodes, live), rng)))
            rows[key] = KeyRow(tuple(ranked), times.seconds)
    made = int(time.time())
    expires = made + good_for_s if good_for_s else 0
    return PlacementTable(site.default, policy_name, tuple(facts), rows, made, expires), len(workloads) - len(rows)
