"""A profiled command in words: what was measured, by which tool, at which cost, what is missing and why."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence

from crossperf import catalog
from crossperf.collect.backends import BackendChoice
from crossperf.collect.profile import Profile
from crossperf.errors import several
from crossperf.records import OK


def lines(result: Profile) -> list[str]:
    """Return the lines that a person reads after profiling."""
    return [
        f"{result.app} {result.input} on {result.platform_name}: {_outcome(result)}".replace("  ", " "),
        *_region(result),
        *_counters(result),
        *_tools(result),
        *_missing(result),
    ]


def interval(values: Sequence[float]) -> tuple[float, float, str]:
    """Return where the median of repeats lies, and in words how sure that is.

    From six repeats on these are the order statistics between which the median of the distribution lies with
    at least 95 %, whatever the distribution; below six there are none, and the whole range is returned.

    >>> interval([3.0, 1.0, 2.0])
    (1.0, 3.0, 'range')
    >>> interval([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    (1.0, 6.0, '95 % interval')
    """
    ordered = sorted(values)
    n = len(ordered)
    tail, lowest, coefficient = 0.0, 0, 1.0
    for rank in range(n // 2):
        tail += coefficient * 0.5**n
        if tail > 0.025:
            break
        lowest = rank + 1
        coefficient *= (n - rank) / (rank + 1)
    if lowest == 0:
        return ordered[0], ordered[-1], "range"
    return ordered[lowest - 1], ordered[n - lowest], "95 % interval"


def _outcome(result: Profile) -> str:
    succeeded = [done.runtime_s for done in result.executions if done.status == OK]
    failed = [done.status for done in result.executions if done.status != OK]
    words = []
    if succeeded:
        low, high, kind = interval(succeeded)
        spread = f"; {kind} {low:.4g} to {high:.4g} s" if len(succeeded) > 1 else ""
        words.append(f"{statistics.median(succeeded):.4g} s (median of {len(succeeded)}{spread})")
    if not result.executions:
        return "interrupted before the first execution ended; nothing was measured"
    words += [f"failed: {status}" for status in failed]
    if result.interrupted:
        words.append("interrupted; what was measured before is kept")
    return ", ".join(words)


def _region(result: Profile) -> list[str]:
    texts = [f"  note: {note}" for note in result.region_notes]
    if region := next((done.marked for done in result.executions if done.marked), None):
        whole_s = statistics.median(done.wall_s for done in result.executions if done.marked)
        times = "once" if region.visits == 1 else several(region.visits, "time")
        texts.insert(0, f"  in the marked region, entered {times}; the whole took {whole_s:.4g} s")
    return texts


def _counters(result: Profile) -> list[str]:
    values, tools = result.counted.values, result.counted.measured_by
    units = {name: "" if known.unit == "ratio" else known.unit for name, known in catalog.COUNTERS.items()}
    known = {name: unit for name, unit in units.items() if name in values}
    return [f"  {name:<22}{values[name]:>14.6g} {unit:<8} {tools[name]}" for name, unit in known.items()]


def _tools(result: Profile) -> list[str]:
    texts = []
    for measurement in result.measurements:
        cost = f": {measurement.runtime_s:.3g} s" if measurement.runtime_s else ""
        if measurement.slowdown:
            times = f"{measurement.slowdown:.0f}" if measurement.slowdown >= 10 else f"{measurement.slowdown:.1f}"
            cost += f", {times} times as long as without it"
        texts.append(f"{measurement.tool} {measurement.version or ''}".rstrip() + cost)
        texts += [f"  note: {note}" for note in measurement.notes]
    return texts


def _missing(result: Profile) -> list[str]:
    if not any(done.status == OK for done in result.executions):
        return []
    names_by_reason: dict[str, list[str]] = defaultdict(list)
    for name in sorted(catalog.COUNTERS.keys() - result.counted.values):
        names_by_reason[result.why_missing(name)].append(name)
    return [f"missing: {', '.join(names)} ({reason})" for reason, names in sorted(names_by_reason.items())]


def choices(of_backends: Sequence[BackendChoice]) -> list[str]:
    """Return one line for each back end: whether it works here, and why not."""
    words = {"os": "works"}
    for choice in of_backends:
        limits = f" ({choice.limits})" if choice.limits else ""
        words[choice.backend.name] = (f"no: {choice.why_not}" if choice.why_not else "works") + limits
    return [f"{name:<10} {word}" for name, word in words.items()]
