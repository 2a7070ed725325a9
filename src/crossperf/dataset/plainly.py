"""A fast road for runs that are plainly sound: many records become one matrix without a look at each value by name.

Whatever is unusual about records (a repeat of a cell, a failed run, a text where a number should be, an unknown key)
sends all of them down the careful road, which finds every problem. What comes back is the same on both.
"""

# N cells, C counters and events

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from crossperf.dataset.measured import Measured, counters_first
from crossperf.records import COLUMNS, FORMAT, OK, RUNS_FORMAT, can_run, versions
from crossperf.runs.events import EVENTS, event_name, events_of
from crossperf.runs.rules import COUNTER_PREFIX, MISSING_WORDS, WHOLE_NUMBERS, bounds

_KEYS = frozenset((*COLUMNS, "counters", EVENTS, "tools", "missing", "measured_by", RUNS_FORMAT))
_CELL = itemgetter("app", "input", "platform")
_NUMBERS = frozenset((float, int, type(None)))
_TEXTS = frozenset(("run_id", "source_tool", "host", "started", "measured_in", "platform_class", "runnable"))


def measured_plainly(runs: Sequence[Any], where: str = "runs") -> Measured | None:
    """Return the cells of records that are plainly sound, or ``None``.

    >>> run = {"app": "a", "input": "1", "platform": "p", "runtime_s": 2.0, "counters": {"cycles": 7}}
    >>> measured_plainly([run]).values_nc, measured_plainly([run, run]), measured_plainly([run | {"runtime_s": -1}])
    (array([[7.]]), None, None)
    """
    if not runs or not all(type(run) is dict and _is_plain(run) for run in runs):
        return None
    cells = list(map(_CELL, runs))
    order = sorted(range(len(runs)), key=cells.__getitem__)
    if len(set(cells)) < len(cells) or not _agree(runs):
        return None
    known = [_counted(runs[place]) for place in order]
    if any(own is None for own in known):
        return None
    names, values_nc = _matrix([own for own in known if own is not None])
    if values_nc is None:
        return None
    stated = {(run["app"], run["input"]): run["runnable"] for run in runs if run.get("runnable") is not None}
    runtimes = [runs[place].get("runtime_s") for place in order]
    app_n, input_n, platform_n = zip(*(cells[place] for place in order), strict=True)
    return Measured(
        where=where,
        names=names,
        app_n=app_n,
        input_n=input_n,
        platform_n=platform_n,
        values_nc=values_nc,
        runtime_s_n=np.array(runtimes, dtype=np.float64),
        runtime_s_halves_hn=np.full((2, len(runs)), np.nan),
        runnable_n=tuple(stated.get((app, input_)) for app, input_ in zip(app_n, input_n, strict=True)),
    )


def _is_plain(run: dict[str, Any]) -> bool:
    """Tell whether a record has known keys, names, and a runtime that is none or above 0."""
    if not run.keys() <= _KEYS or run.get("status", OK) != OK or run.get(RUNS_FORMAT, FORMAT) != FORMAT:
        return False
    runtime_s = run.get("runtime_s")
    if runtime_s is not None and not (type(runtime_s) in (float, int) and 0.0 < runtime_s <= sys.float_info.max):
        return False
    return (
        _is_name(run.get("app"))
        and _is_name(run.get("platform"))
        and type(run.get("input")) is str
        and all(type(run.get(name)) in (str, type(None)) for name in _TEXTS)
        and all(run.get(name) is None or _is_count(run[name]) for name in WHOLE_NUMBERS)
    )


def _is_name(text: Any) -> bool:
    return type(text) is str and _means_something(text)


@functools.lru_cache(maxsize=65_536)
def _means_something(text: str) -> bool:
    return text.strip().lower() not in MISSING_WORDS


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= 2**53


def _agree(runs: Sequence[Mapping[str, Any]]) -> bool:
    """Tell whether records do not contradict one another: ids, classes of platforms, where workloads can run."""
    ids = [run["run_id"] for run in runs if run.get("run_id") is not None]
    kinds = {(run["platform"], run["platform_class"]) for run in runs if run.get("platform_class") is not None}
    stated = {(run["app"], run["input"], run["runnable"]) for run in runs if run.get("runnable") is not None}
    return (
        len(set(ids)) == len(ids)
        and len({platform for platform, _ in kinds}) == len(kinds)
        and len({(app, input_) for app, input_, _ in stated}) == len(stated)
        and all(_ran_where_it_can(run) for run in runs if run.get("runnable") is not None)
    )


def _ran_where_it_can(run: Mapping[str, Any]) -> bool:
    text, kind = run["runnable"], run.get("platform_class")
    return _means_something(text) and (kind is None or can_run(versions(text), run["platform"], kind))


def _counted(run: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the counters and events of a record by name, or ``None`` where one is not plainly a number."""
    counters, recorded = run.get("counters"), run.get(EVENTS)
    if type(counters) is not dict or not _NUMBERS.issuperset(map(type, counters.values())):
        return None
    if not recorded:
        return counters
    if type(recorded) is not dict or not all(type(own) is dict for own in recorded.values()):
        return {**counters, **events_of(recorded)}
    together = dict(counters)
    for tool, events in recorded.items():
        if not {float, int}.issuperset(map(type, events.values())):
            return {**counters, **events_of(recorded)}
        together.update(zip(map(_names_of(tool), events), events.values(), strict=True))
    return together


@functools.lru_cache(maxsize=256)
def _names_of(tool: str) -> Any:
    """Return what names the events of a tool, each made once."""
    return functools.lru_cache(maxsize=4_096)(functools.partial(event_name, tool))


def _matrix(known: Sequence[dict[str, Any]]) -> tuple[tuple[str, ...], Any]:
    """Return the names of columns and their values; no values where one is not finite or below what it can be."""
    first = known[0].keys()
    same = all(own.keys() == first for own in known)
    every = first if same else {name for own in known for name in own}
    names = sorted(every, key=counters_first)
    if not names or not any(map(_is_counter, names)):
        return (), None
    if same and len(names) > 1:
        rows: list[Any] = list(map(itemgetter(*names), known))
    else:
        rows = [list(map(own.get, names)) for own in known]
    try:
        values_nc = np.array(rows, dtype=np.float64)
    except OverflowError:
        return (), None
    least_c = np.array([bounds(COUNTER_PREFIX + name)[0] if _is_counter(name) else -np.inf for name in names])
    if np.isinf(values_nc).any() or (values_nc < least_c).any():
        return (), None
    kept = np.flatnonzero(~np.isnan(values_nc).all(axis=0)).tolist()
    if len(kept) < len(names):
        values_nc, names = np.ascontiguousarray(values_nc[:, kept]), [names[place] for place in kept]
    return tuple(names), values_nc


def _is_counter(name: str) -> bool:
    return not counters_first(name)[0]
