"""How the times of two tables differ: every workload of each platform, the second time over the first."""

# W workloads

from __future__ import annotations

import numpy as np

from crossperf.evaluation.compare import TableComparison
from crossperf.evaluation.latent import sample
from crossperf.report.figures.axes import line_at_1x, named_rows, ratio_axis
from crossperf.report.figures.colours import INK, looks_of
from crossperf.report.figures.drawn import Drawn
from crossperf.report.figures.sheet import Sheet, settings
from crossperf.report.figures.words import plain, times

_MOST = 400  # workloads drawn as points; the lines are of all
_NAME = "changes"
_QUESTION = "How do the times of the second table differ from the first?"


def changes(comparison: TableComparison, *, bare: bool = False) -> Drawn:
    """Return the figure of a comparison, with its caption and tooltips."""
    with settings(_NAME):
        sheet = Sheet(_NAME, _QUESTION)
        _draw(sheet, comparison)
        return sheet.finish(bare=bare)


def _draw(sheet: Sheet, comparison: TableComparison) -> None:
    names = [platform.name for platform in comparison.platforms]
    ratio_wp = np.exp(comparison.log_ratio_wp[:, ~np.isnan(comparison.log_ratio_wp).all(axis=0)])
    axes = sheet.panel(0.95 + 0.5 * len(names))
    named_rows(sheet, axes, names)
    for row, (platform, look) in enumerate(zip(comparison.platforms, looks_of(names).values(), strict=True)):
        ratio_w = ratio_wp[:, row][~np.isnan(ratio_wp[:, row])]
        drawn_w = ratio_w[sample(len(ratio_w), _MOST, 0)]
        height_w = row + np.random.default_rng(row).uniform(-0.32, 0.02, len(drawn_w))
        axes.scatter(drawn_w, height_w, s=9, color=look.colour, alpha=0.6, linewidths=0)
        low, first, middle, third, high = np.quantile(ratio_w, [0.05, 0.25, 0.5, 0.75, 0.95])
        axes.plot([low, high], [row + 0.2] * 2, color=look.colour, linewidth=1.4)
        axes.plot([first, third], [row + 0.2] * 2, color=look.colour, linewidth=5, solid_capstyle="butt")
        axes.plot([middle], [row + 0.2], marker=look.shape, markersize=8, color=look.colour, markeredgecolor=INK)
        text = f"{plain(platform.name)}: bias {times(platform.bias)}, typical factor {times(platform.typical_factor)}"
        sheet.box(axes, (float(low), float(high)), (row - 0.4, row + 0.4), f"{text}, {platform.workloads:,} workloads")
    ratio_axis(axes.xaxis, ratio_wp[~np.isnan(ratio_wp)], "time in the second table over time in the first")
    line_at_1x(axes)
    points = "Each point is a workload" if len(ratio_wp) <= _MOST else f"Points: a random {_MOST} workloads"
    sheet.caption = (
        f"{comparison.cells:,} cells that both tables have. {points}; the mark is the median, the thick line the "
        "middle half, the thin line the 5th to the 95th percentile."
    )
