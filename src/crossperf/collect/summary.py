"""A profiled command in words: what was measured, by which tool, at which cost, what is missing and why."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence

from crossperf import catalog
from crossperf.collect.backends import BackendChoice
from crossperf.collect.process import Execution
from crossperf.collect.profiled import COLLECTED, GPU_TOOLS, Profile
from crossperf.errors import several
from crossperf.records import OK

#: Repeats are steady up to this standard deviation over their mean, as pyperf has it.
_STEADY = 0.1
#: Below this many seconds starting the process is much of the time.
_SHORT_S = 0.1


def lines(result: Profile) -> list[str]:
    """Return the lines that a person reads after profiling."""
    return [
        f"{result.app} {result.input} on {result.platform_name}: {_outcome(result)}".replace("  ", " "),
        *_region(result),
        *_unstable(result),
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
    failed = [done for done in result.executions if done.status != OK]
    words = []
    if succeeded:
        low, high, kind = interval(succeeded)
        spread = f"; {kind} {low:.4g} to {high:.4g} s" if len(succeeded) > 1 else ""
        words.append(f"{statistics.median(succeeded):.4g} s (median of {len(succeeded)}{spread})")
    if not result.executions:
        return "interrupted before the first execution ended; nothing was measured"
    words += [f"failed: {done.status}{_if_no_failure(done)}" for done in failed]
    if result.interrupted:
        words.append("interrupted; what was measured before is kept")
    return ", ".join(words)


def _if_no_failure(done: Execution) -> str:
    """Return what to do about an exit status by which some programs tell a result, as diff and grep do."""
    advice = " (if that is a result and no failure, add --success 0,1)"
    return advice if done.time_limit_s is None and done.returncode == 1 else ""


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


def _unstable(result: Profile) -> list[str]:
    """Return a warning where repeats differ, by the rule of pyperf: a standard deviation above 10 % of the mean."""
    wall_s = [done.runtime_s for done in result.executions if done.status == OK]
    if len(wall_s) < 2:
        return []
    share = statistics.stdev(wall_s) / statistics.mean(wall_s)
    if share <= _STEADY:
        return []
    cause = "the command is short" if statistics.mean(wall_s) < _SHORT_S else "the machine is busy"
    rule = f"their standard deviation is {share:.0%} of the mean, steady is {_STEADY:.0%} or less"
    return [f"unstable: the {len(wall_s)} repeats differ ({rule}); {cause}, and more --repeats help"]


def _missing(result: Profile) -> list[str]:
    """Return which counters are missing, and each reason once: first Table I, then the rest in a line for each kind."""
    if not any(done.status == OK for done in result.executions):
        return []
    tools = {name: _tools_for(name) for name in catalog.COUNTERS if name not in result.counted.values}
    on_gpu = [name for name in tools if tools[name] and tools[name] <= set(GPU_TOOLS)]
    on_gpu = on_gpu if result.platform_class != "gpu" else []
    rest = {name: tools[name] - set(GPU_TOOLS) or tools[name] for name in tools if name not in on_gpu and tools[name]}
    required = [name for name in rest if not catalog.COUNTERS[name].optional]
    optional = [name for name in rest if catalog.COUNTERS[name].optional]
    reasons = _reasons(result, {name: rest[name] for name in required})
    texts = [f"missing: {', '.join(required)}"] if required else []
    texts += [f"  {' and '.join(by)}: {reason}" for reason, by in reasons.items()]
    more = {
        reason: by for reason, by in _reasons(result, {name: rest[name] for name in optional}).items()
        if reason not in reasons
    }  # fmt: skip
    if optional:
        why = "; ".join(f"{' and '.join(by)}: {reason}" for reason, by in more.items())
        texts.append(f"missing optional counters: {len(optional)}" + (f" ({why})" if why else ""))
    if on_gpu:
        why = next(iter(_reasons(result, {name: tools[name] for name in on_gpu})), "not counted")
        texts.append(f"missing GPU counters: {len(on_gpu)} ({why})")
    return texts


def _tools_for(counter: str) -> set[str]:
    return {formula.tool for formula in catalog.FORMULAS if formula.counter == counter} & COLLECTED


def _reasons(result: Profile, missing: Mapping[str, set[str]]) -> dict[str, list[str]]:
    """Return why counters are missing: each reason with the tools that it keeps from counting them."""
    tools_by_reason: dict[str, list[str]] = defaultdict(list)
    order = dict.fromkeys(formula.tool for formula in catalog.FORMULAS)
    for tool in order:
        counters = [name for name, tools in missing.items() if tool in tools]
        if counters:
            tools_by_reason[result.why_not(tool, counters)].append(tool)
    return tools_by_reason


def choices(of_backends: Sequence[BackendChoice]) -> list[str]:
    """Return one line for each back end: whether it works here, and why not."""
    words = {"os": "works"}
    for choice in of_backends:
        limits = f" ({choice.limits})" if choice.limits else ""
        words[choice.backend.name] = (f"no: {choice.why_not}" if choice.why_not else "works") + limits
    return [f"{name:<10} {word}" for name, word in words.items()]
