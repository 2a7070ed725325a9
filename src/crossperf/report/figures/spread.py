"""How times spread: over the workloads of each platform (the paper's Figure 2), and over repeats of a run."""

# W workloads, P platforms

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from crossperf.arrays import Floats
from crossperf.errors import several
from crossperf.evaluation.latent import sample
from crossperf.evaluation.result import Evaluation
from crossperf.report.figures import NothingToDraw, cells
from crossperf.report.figures.axes import line_at_1x, most_marks, named_rows, ratio_axis
from crossperf.report.figures.colours import FAINT, INK, Look
from crossperf.report.figures.sheet import Sheet
from crossperf.report.figures.words import how_often, percent, plain, times

_MOST = 400  # workloads drawn as points; the lines are of all
_AS_IMAGE = 250  # more points of a platform than this are held as an image rather than as shapes
#: Where the points of a row lie and where its line, in rows: points above, line below.
_POINTS, _LINE = (-0.32, 0.02), 0.2
_COLUMNS = ((54, 110), (44, 90))  # where the numbers beside rows end, in points from the axes, and on a narrow sheet


def distribution(sheet: Sheet, evaluation: Evaluation, *, rpv: str | None = None) -> None:
    """Draw the relative times of each platform: every workload as a point, median and middle as a line below."""
    held, reference = cells.held_out(evaluation), cells.rpv_of(rpv, "fastest")
    log_time_wp = held.log_time_wp[(~np.isnan(held.log_time_wp)).sum(axis=1) >= 2]
    if not len(log_time_wp):
        raise NothingToDraw("No workload ran on two platforms, so there is nothing to compare.")
    relative_wp = np.exp(_relative(log_time_wp, reference))
    rows_p = [p for p in cells.places(evaluation, held) if not np.isnan(relative_wp[:, p]).all()]
    names = [held.platforms[p] for p in rows_p]
    axes = sheet.panel(0.85 + len(names) * (0.5 if len(names) <= 10 else 0.4))
    named_rows(sheet, axes, names)
    drawn_w = sample(len(relative_wp), _MOST, evaluation.seed)
    looks, fastest_wp = cells.looks(evaluation), log_time_wp == np.nanmin(log_time_wp, axis=1, keepdims=True)
    for row, (p, name) in enumerate(zip(rows_p, names, strict=True)):
        ran_w = ~np.isnan(log_time_wp[:, p])
        fastest = float(fastest_wp[ran_w, p].mean())
        _row(sheet, axes, row, (relative_wp[:, p], relative_wp[drawn_w, p]), looks[name], name, (fastest, ran_w.sum()))
    _beside(sheet, axes, -0.5, ("median", "fastest"), va="bottom")
    label = f"time relative to {cells.RPV[reference]}"
    ratio_axis(axes.xaxis, relative_wp[~np.isnan(relative_wp)], label, most=most_marks(sheet))
    line_at_1x(axes)
    sheet.caption = _caption(evaluation, len(log_time_wp), len(relative_wp), len(drawn_w))


def _relative(log_time_wp: Floats, reference: str) -> Floats:
    """Return log times relative to a platform; to the one profiled on, a row for each platform that could be that."""
    if reference == "source":
        by_source_spw = log_time_wp.T[:, None, :] - log_time_wp.T[None, :, :]  # [p, s, w]
        for p in range(len(by_source_spw)):
            by_source_spw[p, p] = np.nan
        rows = by_source_spw.transpose(1, 2, 0).reshape(-1, log_time_wp.shape[1])
        return np.asarray(rows[~np.isnan(rows).all(axis=1)])
    best = np.nanmin if reference == "fastest" else np.nanmax
    return np.asarray(log_time_wp - best(log_time_wp, axis=1, keepdims=True))


def _row(
    sheet: Sheet,
    axes: Axes,
    row: int,
    relative: tuple[Floats, Floats],
    look: Look,
    name: str,
    fastest: tuple[float, int],
) -> None:
    """Draw one platform: points above, 5th to 95th percentile, quartiles and median below, two numbers beside."""
    relative_w, drawn_w = (own_w[~np.isnan(own_w)] for own_w in relative)
    share, workloads = fastest
    height_w = row + np.random.default_rng(row).uniform(*_POINTS, len(drawn_w))
    as_image = len(drawn_w) > _AS_IMAGE
    axes.scatter(drawn_w, height_w, s=9, color=look.colour, alpha=0.6, linewidths=0, rasterized=as_image)
    low, first, middle, third, high = np.quantile(relative_w, [0.05, 0.25, 0.5, 0.75, 0.95])
    axes.plot([low, high], [row + _LINE] * 2, color=look.colour, linewidth=1.4)
    axes.plot([first, third], [row + _LINE] * 2, color=look.colour, linewidth=5, solid_capstyle="butt")
    axes.plot([middle], [row + _LINE], marker=look.shape, markersize=8, color=look.colour, markeredgecolor=INK)
    _beside(sheet, axes, row, (times(middle), percent(share)))
    middle_half = f"median {times(middle)}, middle half {times(first)} to {times(third)}"
    often = f"fastest for {percent(share)} of {several(int(workloads), 'workload')}"
    sheet.box(axes, (float(low), float(high)), (row - 0.4, row + 0.4), f"{plain(name)}: {middle_half}, {often}")


def _beside(sheet: Sheet, axes: Axes, row: float, texts: tuple[str, str], va: str = "center") -> None:
    """Write two columns to the right of the axes, their right ends under one another."""
    for place, text in zip(_COLUMNS[sheet.narrow], texts, strict=True):
        beside = axes.annotate(text, (1, row), (place, 0), axes.get_yaxis_transform(), "offset points")
        beside.set(ha="right", va=va, fontsize=10)


def _caption(evaluation: Evaluation, workloads: int, points: int, drawn: int) -> str:
    held = cells.held_out(evaluation)
    whole = len(held.workloads) >= evaluation.table.workloads
    which = (
        f"{several(workloads, 'workload')} of the whole table"
        if whole
        else cells.those(evaluation, workloads, "workload")
    )
    noun = "a workload" if points == workloads else "a workload, seen from a platform it was profiled on"
    shown = f"Each point is {noun}" if drawn == points else f"Points: a random {drawn:,} of {points:,}"
    return (
        f"{which}. {shown}; the mark is the median of all, the thick line "
        "the middle half, the thin line the 5th to the 95th percentile. Fastest: the share of a platform's workloads "
        "that it runs fastest."
    )


def noise(sheet: Sheet, evaluation: Evaluation) -> None:
    """Draw how much repeats of the same run vary on each platform."""
    info = cells.table_info(evaluation)
    by_name = {own.name: own for own in info.platforms}
    ordered = [by_name[name] for name in cells.shown_order(evaluation) if name in by_name]
    # Visits, where a table tells them apart, are the honest witnesses: repeats in a row flatter.
    visited, whole = info.noise_between_visits is not None, info.noise_between_visits or info.noise
    by_platform = [(own.noise_between_visits if visited else own.noise, own) for own in ordered]
    noisy = [(noise, own.name, own) for noise, own in by_platform if noise is not None]
    middle, tail = whole.median, whole.p90
    if not noisy or middle is None or tail is None:
        raise NothingToDraw("No run was repeated, so the noise is not known. Measure each run twice or more.")
    axes = sheet.panel(1.0 + 0.36 * len(noisy))
    named_rows(sheet, axes, [name for _, name, _ in noisy])
    looks = cells.looks(evaluation)
    for row, (variation, name, platform) in enumerate(noisy):
        look = looks[name]
        axes.plot([0, variation], [row, row], color=look.colour, linewidth=2)
        axes.plot(variation, row, marker=look.shape, markersize=9, color=look.colour, clip_on=False)
        text = f"{variation:.1%}"
        axes.text(
            1.2 if sheet.narrow else 1.1,
            row,
            text,
            transform=axes.get_yaxis_transform(),
            ha="right",
            va="center",
            fontsize=10,
        )
        measured = f"{several(platform.workloads, 'workload')}, {several(platform.runs, 'run')}"
        tooltip = f"{plain(name)}: {text} in the median of {measured}"
        sheet.box(axes, (0, variation), (row - 0.4, row + 0.4), tooltip)
    axes.axvline(middle, color=FAINT, linewidth=1.2, linestyle="--", zorder=1)
    axes.set_xlim(0, max(*(own for own, _, _ in noisy), middle, 1e-4) * 1.05)
    axes.xaxis.set_major_locator(MaxNLocator(most_marks(sheet, 9)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.3g}%"))
    axes.set_xlabel(f"variation of {'visits' if visited else 'repeats'}: standard deviation over mean")
    axes.grid(True, axis="x")
    sheet.caption = (
        f"{several(info.cells, 'cell')} of {several(info.runs, 'run')}, each measured {how_often(info.repeats)}; the "
        f"mark is the median over a platform's cells, the dashed line of all ({middle:.1%}; one cell in ten varies by "
        f"{tail:.1%} or more)."
    )
