"""The predictions that are furthest off, each with what is known of why."""

# N cells, W workloads, P platforms

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from crossperf.arrays import Floats, Mask
from crossperf.display import CellView, ColumnView, RowView, TableView, number, words
from crossperf.evaluation import metrics
from crossperf.evaluation.heldout import HeldOut
from crossperf.evaluation.result import Evaluation
from crossperf.records import FAMILIAR, looks
from crossperf.report.figures.words import times

#: Rows of the table.
MOST = 10
#: Reasons that a row names at the most, the most telling first.
_REASONS = 3
_SHORT_S = 0.01  # below this a run is mostly its own start
_UNLIKE = 1.5  # a workload that lies this factor beyond the other inputs of its application is unlike them
_RIGHT = 1.25  # another model within this factor is nearly right
_NOISY = 0.1  # variation of repeats from which on a platform's times are doubtful
_LACKING = 0.25  # share of the counters from which on their absence is worth a word
_CROSSING = 1.15  # how much larger the typical error between classes must be to be a reason


@dataclass(frozen=True, eq=False)
class _Errors:
    """What was held out, and the log errors of one model: predicted over measured, NaN where nothing was predicted."""

    evaluation: Evaluation
    held: HeldOut
    model: str
    truth_np: Floats
    error_np: Floats


def worst(evaluation: Evaluation, model: str, most: int = MOST) -> TableView:
    """Return the worst predictions of a model, the furthest off of each workload, with reasons."""
    held = evaluation.held_out
    if held is None:
        raise ValueError("an evaluation without held-out cells has no predictions")
    truth_np, predicted_np = held.to_source(model)
    errors = _Errors(evaluation, held, model, truth_np, predicted_np - truth_np)
    rows: list[RowView] = []
    for n, p in _furthest(errors, most):
        app, input_ = held.workloads[held.workload_n[n]]
        measured, predicted = float(np.exp(truth_np[n, p])), float(np.exp(predicted_np[n, p]))
        factor = float(np.exp(abs(errors.error_np[n, p])))
        side = "too slow" if predicted > measured else "too fast"
        reasons = "; ".join(list(_reasons(errors, n, p))[:_REASONS]) or "nothing known here tells why"
        where = f"{held.platforms[held.source_n[n]]} → {held.platforms[p]}"
        ratios = CellView(times(predicted), predicted), CellView(times(measured), measured)
        rows.append((f"{app} {input_}".strip(), where, *ratios, number(factor, 2), side, reasons))
    return TableView(
        f"The worst {len(rows)} predictions of {model}, one for each workload",
        (
            *words("workload", "from → to"),
            ColumnView("predicted", "time over that on the platform profiled on"),
            ColumnView("measured", "time over that on the platform profiled on"),
            ColumnView("off by", "factor between the two"),
            *words("error", "why"),
        ),
        tuple(rows),
    )


def _furthest(errors: _Errors, most: int) -> list[tuple[int, int]]:
    """Return cell and platform of the worst prediction of each workload, the furthest off first."""
    known = np.nan_to_num(np.abs(errors.error_np), nan=-1.0)
    order_k = np.argsort(-known, axis=None, kind="stable")
    chosen: list[tuple[int, int]] = []
    seen: set[int] = set()
    for n, p in zip(*(axis.tolist() for axis in np.unravel_index(order_k, known.shape)), strict=True):
        if len(chosen) == most or known[n, p] < 0:
            break
        if (workload := int(errors.held.workload_n[n])) not in seen:
            seen.add(workload)
            chosen.append((n, p))
    return chosen


def _reasons(errors: _Errors, n: int, p: int) -> Iterator[str]:
    yield from _odd(errors, n)
    yield from _unlike_its_application(errors, n, p)
    yield from _short(errors, n, p)
    yield from _other_models(errors, n, p)
    yield from _lacking(errors, n)
    yield from _noisy(errors, p)
    yield from _crossing(errors, n, p)


def _odd(errors: _Errors, n: int) -> Iterator[str]:
    oddness_n = errors.held.predictions[errors.model].oddness_n
    if oddness_n is not None and (word := looks(float(oddness_n[n]))) != FAMILIAR:
        yield f"the run looked {word} to the model"


def _unlike_its_application(errors: _Errors, n: int, p: int) -> Iterator[str]:
    """Yield how the other inputs of the application do there: those that the model could have learned from."""
    held, source = errors.held, int(errors.held.source_n[n])
    own = int(held.workload_n[n])
    if errors.evaluation.split == "app":
        yield "no run of this application was known"
        return
    log_w = held.log_time_wp[:, p] - held.log_time_wp[:, source]
    others_w = log_w[(held.app_w == held.app_w[own]) & (np.arange(len(log_w)) != own) & ~np.isnan(log_w)]
    if not len(others_w):
        yield "no other input of this application ran on both"
        return
    low, high, truth = float(others_w.min()), float(others_w.max()), float(log_w[own])
    if truth > high + np.log(_UNLIKE) or truth < low - np.log(_UNLIKE):
        ends = times(float(np.exp(low))), times(float(np.exp(high)))
        span = ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"
        yield f"unlike the other {len(others_w)} inputs of its application, which take {span}"


def _short(errors: _Errors, n: int, p: int) -> Iterator[str]:
    held = errors.held
    for place in (int(held.source_n[n]), p):
        seconds = float(np.exp(held.log_time_wp[held.workload_n[n], place]))
        if seconds < _SHORT_S:
            yield f"it takes {1000 * seconds:.2g} ms on {held.platforms[place]}, most of that start-up"
            return


def _other_models(errors: _Errors, n: int, p: int) -> Iterator[str]:
    """Yield whether other models know better, or all err the same way."""
    held, own = errors.held, float(errors.error_np[n, p])
    others = {
        name: float(np.subtract(*held.to_source(name)[::-1])[n, p]) for name in held.predictions if name != errors.model
    }
    if not others:
        return
    nearest = min(others, key=lambda name: abs(others[name]))
    if abs(others[nearest]) <= np.log(_RIGHT):
        yield f"{nearest} is off by {times(float(np.exp(abs(others[nearest]))))} alone"
    elif all(error * own > 0 and abs(error) > abs(own) / 2 for error in others.values()):
        yield "every model errs the same way, so the counters do not show it"


def _lacking(errors: _Errors, n: int) -> Iterator[str]:
    info, source = errors.evaluation.table.info, errors.held.platforms[int(errors.held.source_n[n])]
    if info is None or not info.counters:
        return
    lacking = sum(shares.get(source, 0.0) == 1.0 for shares in info.missing_counters.values())
    if lacking / info.counters >= _LACKING:
        yield f"{lacking} of {info.counters} counters are never measured on {source}"


def _noisy(errors: _Errors, p: int) -> Iterator[str]:
    info = errors.evaluation.table.info
    for own in info.platforms if info else ():
        noise = own.noise_between_visits if own.noise_between_visits is not None else own.noise
        if own.name == errors.held.platforms[p] and noise is not None and noise >= _NOISY:
            yield f"times on {own.name} vary by {noise:.0%} from run to run"


def _crossing(errors: _Errors, n: int, p: int) -> Iterator[str]:
    """Yield that the prediction crosses classes, where this model is worse at that."""
    held = errors.held
    class_p = np.array(held.platform_classes)
    source, target = str(class_p[held.source_n[n]]), str(class_p[p])
    crosses_np: Mask = class_p[held.source_n][:, None] != class_p[None, :]
    if source == target:
        return
    across, within = (
        metrics.typical_factor(np.zeros(errors.error_np[mask_np].shape), errors.error_np[mask_np])
        for mask_np in (crosses_np, ~crosses_np)
    )
    if across is not None and within is not None and across > within * _CROSSING:
        yield (
            f"from {source} to {target}: such predictions are off by {times(across)} typically, "
            f"those within a class by {times(within)}"
        )
