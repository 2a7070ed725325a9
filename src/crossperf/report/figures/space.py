"""A model's latent space: which runs lie together, and which counters determine it."""

# N cells on the map

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from crossperf.arrays import Floats
from crossperf.errors import several
from crossperf.evaluation.latent import LatentMap, sample
from crossperf.evaluation.result import Evaluation
from crossperf.report.figures import NothingToDraw, cells
from crossperf.report.figures.axes import cloud, named_rows
from crossperf.report.figures.colours import FAINT, GROUP_COLOURS, INK, Look
from crossperf.report.figures.sheet import Sheet
from crossperf.report.figures.words import fitted_apart, left_out, percent, plain

_MOST, _MOST_NARROW = 1000, 300  # cells drawn, in each of the three panels
#: Applications with a colour of their own; the rest stand back together. Classes take the colours after these.
_APPS = 5
_STANDS_BACK = Look(FAINT, ".")
_BEST = 6  # best platforms that the legend names
_DRIVERS = 15  # counters drawn


def space(sheet: Sheet, evaluation: Evaluation) -> None:
    """Draw the map three times: coloured by application, by class of the platform profiled on, by fastest platform."""
    latent = _latent(evaluation)
    drawn = sample(len(latent), _MOST_NARROW if sheet.narrow else _MOST, evaluation.seed)
    xy_n2 = latent.xy_n2[drawn]
    workloads = [latent.workloads[w] for w in latent.workload_n[drawn]]
    platforms = [evaluation.table.platforms[p] for p in latent.source_n[drawn]]
    fastest = [evaluation.table.platforms[latent.fastest_w[w]] for w in latent.workload_n[drawn]]
    looks, often = cells.looks(evaluation), {name for name, _ in Counter(fastest).most_common(_BEST)}
    colourings = (
        ("application", *_by_app([app for app, _ in workloads])),
        ("class profiled on", *_by_class(evaluation, platforms)),
        (
            "fastest platform",
            [looks[name] for name in fastest],
            {name: look for name, look in looks.items() if name in often},
        ),
    )
    rows = max(len(named) for _, _, named in colourings)
    shared = {"sharex": True, "sharey": True}
    panels = sheet.stacked(7.4, 3, **shared) if sheet.narrow else sheet.panels(3.05 + 0.235 * rows, 3, **shared)
    texts = [
        f"{cells.workload_name(workload)}, profiled on {plain(platform)}; fastest on {plain(best)}"
        f"{'; not trained on' if unseen else ''}"
        for workload, platform, best, unseen in zip(workloads, platforms, fastest, latent.unseen_n[drawn], strict=True)
    ]
    for axes, (title, looks_n, named) in zip(panels, colourings, strict=True):
        _panel(sheet, axes, xy_n2, looks_n, named, title)
        sheet.points(axes, xy_n2[:, 0], xy_n2[:, 1], texts)
    panels[-1 if sheet.narrow else 0].set_xlabel(f"first component ({percent(latent.explained[0])})", fontsize=10)
    panels[0].set_ylabel(f"second component ({percent(latent.explained[1])})", fontsize=10)
    sheet.title = f"Which runs does {plain(latent.model)} take for similar?"
    sheet.caption = _caption(evaluation, latent, len(drawn))
    if (count_fastest := len(set(fastest))) > _BEST:
        sheet.caption += f" The last legend names the {_BEST} of {count_fastest} platforms that are fastest most often."


def _latent(evaluation: Evaluation) -> LatentMap:
    latent = evaluation.latent
    if latent is None or not len(latent):
        raise NothingToDraw("No model here has a latent space. 'crossperf' and 'vae-dnn' have one.")
    return latent


def _by_app(app_n: Sequence[str]) -> tuple[list[Look], dict[str, Look]]:
    """Return the look of each cell's application, and those applications that have one of their own."""
    often = [app for app, _ in Counter(app_n).most_common(_APPS)]
    named = {app: Look(GROUP_COLOURS[i], "o") for i, app in enumerate(sorted(often))}
    rest = len(set(app_n)) - len(often)
    legend = named | ({f"{rest} others": _STANDS_BACK} if rest else {})
    return [named.get(app, _STANDS_BACK) for app in app_n], legend


def _by_class(evaluation: Evaluation, platform_n: Sequence[str]) -> tuple[list[Look], dict[str, Look]]:
    info = evaluation.table.info
    known = {own.name: own.platform_class or "unknown" for own in info.platforms} if info else {}
    class_n = [known.get(name, "unknown") for name in platform_n]
    names, shapes, colours = sorted(set(class_n)), ("o", "^", "s"), GROUP_COLOURS[_APPS:]
    named = {name: Look(colours[i % len(colours)], shapes[i % 3]) for i, name in enumerate(names)}
    return [named[name] for name in class_n], named


def _panel(sheet: Sheet, axes: Axes, xy_n2: Floats, looks_n: list[Look], named: dict[str, Look], title: str) -> None:
    cloud(axes, xy_n2[:, 0], xy_n2[:, 1], looks_n, seed=0, size=14)
    axes.set_title(f"by {title}", fontsize=11, color=INK, loc="left")
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set(visible=True, alpha=0.4)
    place = {"bbox_to_anchor": (1.0, 1.04)} if sheet.narrow else {"bbox_to_anchor": (-0.06, -0.11)}
    handles = [Line2D([], [], color=look.colour, marker=look.shape, ls="none", ms=7) for look in named.values()]
    labels = fitted_apart(sheet, named, 1.3 if sheet.narrow else 1.7, 10)
    spacing = {"borderaxespad": 0.2, "handletextpad": 0.3, "labelspacing": 0.45}
    axes.legend(handles, labels, loc="upper left", **place, **spacing)


def _caption(evaluation: Evaluation, latent: LatentMap, drawn: int) -> str:
    fold = " of the first fold" if cells.folds_scored(evaluation) > 1 else ""
    shown = "" if drawn == latent.cells else f" A random {drawn:,} are drawn."
    return (
        f"{several(latent.cells, 'cell')}: workloads, each as profiled on one platform; two that lie together look "
        f"similar to the model.{shown} The axes are the first two principal components of its latent space{fold}: "
        f"{percent(sum(latent.explained))} of the variance."
    )


def drivers(sheet: Sheet, evaluation: Evaluation) -> None:
    """Draw the rank correlation of counters with the two principal components of the map, the strongest first."""
    latent = _latent(evaluation)
    shown = latent.drivers[:_DRIVERS]
    if not shown:
        raise NothingToDraw("No counter of this table varies enough to correlate with the map.")
    first, second = sheet.panels(0.95 + 0.2 * sheet.narrow + 0.27 * len(shown), 2, sharey=True)
    for axes, values, name, share in (
        (first, [driver.x for driver in shown], "first component", latent.explained[0]),
        (second, [driver.y for driver in shown], "second component", latent.explained[1]),
    ):
        axes.barh(range(len(shown)), values, height=0.62, color=INK, linewidth=0)
        axes.axvline(0, color=FAINT, linewidth=1.2)
        ticks = [-1, 0, 1] if sheet.narrow else [-1, -0.5, 0, 0.5, 1]
        axes.set(xlim=(-1, 1), xticks=ticks, xlabel="correlation" if sheet.narrow else "rank correlation")
        title = name.replace(" ", "\n") if sheet.narrow else name
        axes.set_title(f"{title} ({percent(share)})", fontsize=11, color=INK)
        axes.grid(True, axis="x")
        for row, (driver, value) in enumerate(zip(shown, values, strict=True)):
            sheet.box(axes, (-1, 1), (row - 0.5, row + 0.5), f"{plain(driver.counter)}, {name}: {value:+.2f}")
    for axes in (second, first):  # the rows are shared, so the names set last stand before the first panel
        named_rows(sheet, axes, [driver.counter for driver in shown], room=2.4)
    sheet.caption = (
        f"Spearman's rank correlation of each counter with the map of {plain(latent.model)} over "
        f"{several(len(latent), 'cell')}: near 1 or -1 the counter determines where a run lies, near 0 it does not. "
        f"The strongest first.{left_out(len(latent.drivers) - len(shown), 'counter', 'with weaker correlations')}"
    )
