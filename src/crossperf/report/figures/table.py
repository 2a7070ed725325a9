"""What the table of runs is like: how much repeats vary, and which counters are missing."""

# R rows, C columns

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.ticker import FuncFormatter

from crossperf.report.figures import cells
from crossperf.report.figures.axes import named_rows
from crossperf.report.figures.colours import FAINT
from crossperf.report.figures.drawn import NothingToDraw
from crossperf.report.figures.heat import MOST_ROWS, Classes, Map, heat
from crossperf.report.figures.sheet import Sheet
from crossperf.report.figures.words import count, left_out, percent, plain

if TYPE_CHECKING:
    from crossperf.evaluation.run import Evaluation

_SHARES = Classes((0.0, 0.05, 0.25, 0.5, 0.75, 1.0), ("under 5%", "5% up", "25% up", "50% up", "75% up", "all"))


def noise(sheet: Sheet, evaluation: Evaluation) -> None:
    """Draw how much repeats of the same run vary on each platform, the steadiest first."""
    info = _info(evaluation)
    noisy = [one for one in info["platforms"] if one["noise"] is not None]
    if not noisy:
        raise NothingToDraw("No run was repeated, so the noise is not known. Measure each run twice or more.")
    noisy.sort(key=lambda one: (one["noise"], one["name"]))
    axes = sheet.panel(1.0 + 0.36 * len(noisy))
    named_rows(sheet, axes, [one["name"] for one in noisy])
    top = max(*(one["noise"] for one in noisy), info["noise"]["median"] or 0.0, 1e-4) * 1.05
    looks = cells.looks(evaluation)
    for row, one in enumerate(noisy):
        look = looks[one["name"]]
        axes.plot([0, one["noise"]], [row, row], color=look.colour, linewidth=2)
        axes.plot(one["noise"], row, marker=look.shape, markersize=9, color=look.colour, clip_on=False)
        text = f"{one['noise']:.1%}"
        axes.text(1.1, row, text, transform=axes.get_yaxis_transform(), ha="right", va="center", fontsize=10)
        sheet.box(
            axes,
            (0, one["noise"]),
            (row - 0.4, row + 0.4),
            f"{plain(one['name'])}: {text} in the median of {count(one['workloads'], 'workload')}, "
            f"{count(one['runs'], 'run')}",
        )
    axes.axvline(info["noise"]["median"], color=FAINT, linewidth=1.2, linestyle="--", zorder=1)
    axes.set_xlim(0, top)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.3g}%"))
    axes.set_xlabel("variation of repeats: standard deviation over mean")
    axes.grid(True, axis="x")
    least, most = info["repeats"]["min"], info["repeats"]["max"]
    often = count(most, "time") if least == most else f"{least} to {most} times"
    sheet.caption = (
        f"{count(info['cells'], 'cell')} of {count(info['runs'], 'run')}, each measured {often}; the mark is the "
        f"median over a platform's cells, the dashed line of all ({info['noise']['median']:.1%}; one cell in ten "
        f"varies by {info['noise']['p90']:.1%} or more)."
    )


def missing(sheet: Sheet, evaluation: Evaluation) -> None:
    """Draw which share of each platform's runs lacks a counter, for the counters with gaps."""
    info = _info(evaluation)
    gaps: dict[str, dict[str, float]] = info["missing_counters"]
    if not gaps:
        raise NothingToDraw(f"None of {count(info['counters'], 'counter')} is missing from any run.")
    platforms = [one["name"] for one in info["platforms"]]
    counters = sorted(gaps, key=lambda name: (-sum(gaps[name].values()), name))[:MOST_ROWS]
    share_rc = np.array([[gaps[name].get(platform, np.nan) for platform in platforms] for name in counters])
    heat(
        sheet,
        Map(
            counters,
            platforms,
            share_rc,
            list(map(float, range(len(counters)))),
            list(map(float, range(len(platforms)))),
            _SHARES,
            percent,
            lambda row, column: (
                f"{plain(counters[row])} is missing from {percent(float(share_rc[row, column]))} of the runs on "
                f"{plain(platforms[column])}"
            ),
        ),
        cells.looks(evaluation),
        "missing from",
    )
    left = left_out(len(gaps) - len(counters), "counter", "with smaller gaps")
    sheet.caption = (
        f"{count(len(gaps), 'counter')} of {info['counters']:,} with gaps, over {count(info['runs'], 'run')}; a dot: "
        f"there in every run.{left}"
    )


def _info(evaluation: Evaluation) -> dict[str, Any]:
    info = evaluation.table.get("info")
    if not info:
        raise NothingToDraw("This evaluation does not tell what is in its table. Evaluate again with this crossperf.")
    return dict(info)
