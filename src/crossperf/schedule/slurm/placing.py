"""From what is known of workloads to the rows of a table: predictions, measured times over them, a policy's order."""

from __future__ import annotations

import math
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from crossperf.records import OK, Prediction, Run
from crossperf.schedule.policies import RANGE_SIGMAS, Ask, Choices, Policy
from crossperf.schedule.slurm.controller import Queue
from crossperf.schedule.slurm.site import Site
from crossperf.schedule.slurm.table import Choice, Facts, Key, Row, Table

if TYPE_CHECKING:
    from crossperf.schedule.tables import RelativeTimes

#: So many successful runs of a key on a platform count for more than a prediction.
ENOUGH = 3
#: Where nobody knows how long a job takes, waits are weighed as for one of an hour.
UNKNOWN_S = 3600.0


@dataclass(frozen=True)
class Span:
    """Time on a platform over time on the reference, its range, and the measured runs behind it (0: predicted)."""

    relative: float
    low: float
    high: float
    runs: int = 0


@dataclass(frozen=True)
class Known:
    """What is known of one key: spans by platform, seconds on the reference where known, and nodes of its jobs."""

    spans: Mapping[str, Span]
    seconds: float | None = None
    nodes: int = 1


def from_predictions(predictions: Iterable[Prediction], reference: str) -> dict[Key, Known]:
    """Return predictions by key, relative to a platform; several of one workload are combined by their mean log.

    A prediction that is relative to another platform loses its ranges: they do not carry over.
    """
    found: dict[Key, list[Known]] = defaultdict(list)
    for one in predictions:
        if reference not in one.relative_time:
            continue
        base = one.relative_time[reference]
        ranged = one.source if one.relative_to == "source" else one.relative_to
        low, high = (one.low, one.high) if ranged == reference else ({}, {})
        spans = {
            name: Span(time_ / base, low.get(name, time_ / base), high.get(name, time_ / base))
            for name, time_ in one.relative_time.items()
        }
        found[one.app, "", one.input].append(Known(spans, one.seconds.get(reference)))
    return {key: several[0] if len(several) == 1 else _combined(several) for key, several in found.items()}


def from_times(times: RelativeTimes, reference: str) -> dict[Key, Known]:
    """Return a table of relative times by key; workloads that cannot run on the reference are left out."""
    if reference not in times.modes:
        return {}
    m = times.modes.index(reference)
    found = {}
    for w, (app, input_) in enumerate(times.workloads):
        base = times.relative_wm[w, m]
        cells = (times.relative_wm[w] / base, times.low_wm[w] / base, times.high_wm[w] / base)
        spans = {
            mode: Span(*numbers)
            for mode, *numbers in zip(times.modes, *(row.tolist() for row in cells), strict=True)
            if not math.isnan(numbers[0])
        }
        if spans:
            found[app, "", input_] = Known(spans)
    return found


def _combined(several: Sequence[Known]) -> Known:
    """Return the mean log of what several predictions say of one workload."""
    spans = {}
    for name, ours in _by_platform(several):
        relative, low, high = (
            math.exp(statistics.fmean(map(math.log, ends)))
            for ends in zip(*((span.relative, span.low, span.high) for span in ours), strict=True)
        )
        spans[name] = Span(relative, low, high)
    seconds = [known.seconds for known in several if known.seconds is not None]
    return Known(spans, statistics.median(seconds) if seconds else None, max(known.nodes for known in several))


def _by_platform(several: Sequence[Known]) -> Iterator[tuple[str, list[Span]]]:
    for name in dict.fromkeys(name for known in several for name in known.spans):
        yield name, [known.spans[name] for known in several if name in known.spans]


def with_apps(known: Mapping[Key, Known]) -> dict[Key, Known]:
    """Return the same with a key for each application, for inputs nobody has seen."""
    inputs: dict[str, list[Known]] = defaultdict(list)
    for (app, user, input_), one in known.items():
        if not user and input_:
            inputs[app].append(one)
    general: dict[Key, Known] = {}
    for app, several in inputs.items():
        spans = {name: _any_input(ours) for name, ours in _by_platform(several)}
        general[app, "", ""] = Known(spans, None, round(statistics.median(one.nodes for one in several)))
    return dict(known) | general


def _any_input(spans: Sequence[Span]) -> Span:
    """Return the span of an input drawn from these: the mean log, with the spread between them and within each."""
    logs = [math.log(span.relative) for span in spans]
    within = statistics.fmean((math.log(span.high / span.low) / RANGE_SIGMAS) ** 2 for span in spans)
    half = math.exp(0.5 * RANGE_SIGMAS * math.sqrt(statistics.pvariance(logs) + within))
    middle = math.exp(statistics.fmean(logs))
    return Span(middle, middle / half, middle * half, min(span.runs for span in spans))


def with_learned(
    known: Mapping[Key, Known], runs: Iterable[Run], reference: str, enough: int = ENOUGH
) -> dict[Key, Known]:
    """Return the same with what finished jobs tell: where `enough` runs were measured their median is taken.

    Runs of a user count for that user's key and for the one of all users.
    """
    measured: dict[Key, dict[str, list[Run]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        if run.status == OK and run.runtime_s:
            for user in {str(run.metadata.get("user") or ""), ""}:
                measured[run.app, user, run.input][run.platform].append(run)
    general = with_apps(known)
    found = dict(known)
    for (app, user, input_), by_platform in measured.items():
        there = {name: several for name, several in by_platform.items() if len(several) >= enough}
        base = known.get((app, "", input_)) or general.get((app, "", "")) or Known({})
        if there:
            found[app, user, input_] = _measured(base, there, reference)
    return found


def _measured(base: Known, runs: Mapping[str, Sequence[Run]], reference: str) -> Known:
    """Return spans with measured medians in the place of predictions, on the scale of the reference."""
    seconds = {name: sorted(run.runtime_s or 0.0 for run in several) for name, several in runs.items()}
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    anchors = [math.log(median / base.spans[name].relative) for name, median in medians.items() if name in base.spans]
    if reference in medians:
        scale_s = medians[reference]
    elif anchors:
        scale_s = math.exp(statistics.fmean(anchors))
    else:
        # Neither measured nor predicted there: the measured ones are still comparable with each other.
        scale_s = min(medians.values())
    spans = dict(base.spans) if anchors or reference in medians else {}
    for name, values in seconds.items():
        low, high = np.quantile(values, (0.1, 0.9)).tolist()
        spans[name] = Span(medians[name] / scale_s, low / scale_s, high / scale_s, len(values))
    nodes = [int(run.metadata.get("nodes") or 1) for several in runs.values() for run in several]
    return Known(spans, scale_s, round(statistics.median(nodes)))


# A policy's order


#: The predicted wait of a job of so many nodes in a partition.
Wait = Callable[[str, int], float]


@dataclass(frozen=True)
class Live:
    """The queues of a controller, and a way to ask how long a job of so many nodes would wait in one."""

    queues: Mapping[str, Queue]
    wait_s: Wait


def options(
    choices: Sequence[Choice], seconds: float, facts: Mapping[str, Facts], nodes: int, live: Live | None = None
) -> Choices:
    """Return choices as a policy sees them; without a live state every queue is idle."""
    names = [choice.partition for choice in choices]
    sizes = [facts[name].nodes or nodes for name in names]
    queues = [live.queues.get(name) for name in names] if live else [None] * len(names)
    return Choices.of(
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


def ranked(
    choices: Sequence[Choice],
    ask: Ask,
    seconds: float,
    facts: Mapping[str, Facts],
    policy: Policy,
    rng: np.random.Generator,
    live: Live | None = None,
) -> tuple[Choice, ...]:
    """Return choices in the order in which a policy takes them: its choice, then that among the rest, and so on."""
    left, order = list(choices), []
    while left:
        order.append(left.pop(policy(ask, options(left, seconds, facts, ask.nodes, live), rng)))
    return tuple(order)


def table(
    known: Mapping[Key, Known],
    site: Site,
    facts: Sequence[Facts],
    policy: Policy,
    policy_name: str,
    *,
    seed: int = 0,
    live: Live | None = None,
    good_for_s: int = 0,
) -> tuple[Table, int]:
    """Return the table, and how many keys were left out because fewer than two partitions can be compared for them."""
    rng = np.random.default_rng(seed)
    by_name = {one.partition: one for one in facts}
    rows: dict[Key, Row] = {}
    for key, one in with_apps(known).items():
        choices = [
            Choice(place.partition, span.relative, span.low, span.high, span.runs)
            for place in site.places
            if (span := one.spans.get(place.platform)) is not None
        ]
        if len(choices) > 1:
            app, user, input_ = key
            seconds = one.seconds or UNKNOWN_S
            ask = Ask(one.nodes, seconds, app, input_, user)
            rows[key] = Row(ranked(choices, ask, seconds, by_name, policy, rng, live), one.seconds)
    made = int(time.time())
    expires = made + good_for_s if good_for_s else 0
    left_out = len(with_apps(known)) - len(rows)
    return Table(site.default, policy_name, tuple(facts), rows, made, expires), left_out
