"""What the table of runs is like: how much repeats vary, and which counters are missing."""

# R rows, C columns

from __future__ import annotations

import numpy as np
from matplotlib.ticker import FuncFormatter

from crossperf.evaluation.result import Evaluation
from crossperf.report.figures import cells
from crossperf.report.figures.axes import named_rows
from crossperf.report.figures.colours import FAINT
from crossperf.report.figures.drawn import NothingToDraw
from crossperf.report.figures.heat import MOST_ROWS, Classes, Map, heat
from crossperf.report.figures.sheet import Sheet
from crossperf.report.figures.words import count, how_often, left_out, percent, plain
from crossperf.runs.summary import TableInfo

_SHARES = Classes((0.0, 0.05, 0.25, 0.5, 0.75, 1.0), ("under 5%", "5% up", "25% up", "50% up", "75% up", "all"))


def noise(sheet: Sheet, evaluation: Evaluation) -> None:
    """Draw how much repeats of the same run vary on each platform, the steadiest first."""
    info = _info(evaluation)
    noisy = sorted((own.noise, own.name, own) for own in info.platforms if own.noise is not None)
    middle, tail = info.noise.median, info.noise.p90
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
        axes.text(1.1, row, text, transform=axes.get_yaxis_transform(), ha="right", va="center", fontsize=10)
        measured = f"{count(platform.workloads, 'workload')}, {count(platform.runs, 'run')}"
        tooltip = f"{plain(name)}: {text} in the median of {measured}"
        sheet.box(axes, (0, variation), (row - 0.4, row + 0.4), tooltip)
    axes.axvline(middle, color=FAINT, linewidth=1.2, linestyle="--", zorder=1)
    axes.set_xlim(0, max(noisy[-1][0], middle, 1e-4) * 1.05)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.3g}%"))
    axes.set_xlabel("variation of repeats: standard deviation over mean")
    axes.grid(True, axis="x")
    sheet.caption = (
        f"{count(info.cells, 'cell')} of {count(info.runs, 'run')}, each measured {how_often(info.repeats)}; the mark "
        f"is the median over a platform's cells, the dashed line of all ({middle:.1%}; one cell in ten varies by "
        f"{tail:.1%} or more)."
    )


def missing(sheet: Sheet, evaluation: Evaluation) -> None:
    """Draw which share of each platform's runs lacks a counter, for the counters with gaps."""
    info = _info(evaluation)
    gaps = info.missing_counters
    if not gaps:
        raise NothingToDraw(f"None of {count(info.counters, 'counter')} is missing from any run.")
    platforms = [platform.name for platform in info.platforms]
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
        f"{count(len(gaps), 'counter')} of {info.counters:,} with gaps, over {count(info.runs, 'run')}; a dot: "
        f"in every run.{left}"
    )


def _info(evaluation: Evaluation) -> TableInfo:
    if evaluation.table.info is None:
        raise NothingToDraw("This evaluation does not keep what is in its table. Evaluate again with this crossperf.")
    return evaluation.table.info
