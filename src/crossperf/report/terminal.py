"""Results as a person reads them in a terminal: tables and sentences on stdout."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from crossperf.display import CellView, TableView
from crossperf.report import answers, tables

if TYPE_CHECKING:
    from crossperf.adaptation.adapt import Adaptation, Suggestion
    from crossperf.adaptation.result import Transfer
    from crossperf.evaluation.result import Evaluation
    from crossperf.model.trained import TrainedModel
    from crossperf.prediction.answer import Answer
    from crossperf.prediction.explain import Explanation
    from crossperf.runs.summary import TableInfo

#: Up to this many predictions with intervals are shown in full.
_IN_FULL = 5
#: A prediction of many runs shows these first ones; all are in the JSON file.
_SHOWN = 20


def console() -> Console:
    """Return a console that never breaks a table that goes to a file or a pipe."""
    screen = Console(highlight=False, soft_wrap=True)
    return screen if screen.is_terminal else Console(highlight=False, soft_wrap=True, width=160)


def rich_table(view: TableView) -> Table:
    """Return a table for the terminal: the best in bold with a star, reference rows dimmed."""
    table = Table(title=escape(view.caption))
    for column in view.columns:
        table.add_column(escape(column.name), justify="right" if column.number else "left")
    for row, reference in view.all_rows:
        table.add_row(*map(_rich_cell, row), style="dim" if reference else None)
    return table


def _rich_cell(cell: CellView) -> str:
    text = escape(cell.text) + "*" * cell.best
    return f"[bold]{text}[/bold]" if cell.best or cell.bold else text


def evaluation(result: Evaluation) -> None:
    """Print the scores of the models, best marked, what they are compared with below, and what they mean."""
    from crossperf.report.sentences import sentences

    out = console()
    out.print(escape(result.about))
    out.print(rich_table(tables.scores(result)))
    for sentence in sentences(result):
        out.print(escape(sentence))


def training(model: TrainedModel) -> None:
    """Print what was trained, on what, and what the fit tells of itself."""
    out, cells = console(), model.cells
    out.print(
        f"trained {model.name} on {len(cells):,} cells: {len(cells.workloads):,} workloads of {len(cells.apps):,} "
        f"apps, {len(cells.platforms)} platforms, {len(model.counters)} counters"
    )
    summary = model.summary
    if "active_units" in summary:
        out.print(
            f"latent space: {summary['active_units']} of {summary['latent_dim']} units active"
            + (" (collapsed: the regressor sees nothing)" if summary["collapsed"] else "")
        )


def predictions(answer: Answer) -> None:
    """Print relative times: a few runs with intervals as a table each, platforms below one another; many in a table."""
    out = console()
    if answer.predictions[0].low and len(answer.predictions) <= _IN_FULL:
        for prediction in answer.predictions:
            out.print(rich_table(answers.single(prediction)))
            out.print(escape(answers.familiarity(prediction)))
        return
    out.print(rich_table(answers.many(answer.predictions[:_SHOWN])))
    if len(answer.predictions) > _SHOWN:
        out.print(f"the first {_SHOWN} of {len(answer.predictions):,} predictions; --json FILE holds all")


def explanation(result: Explanation) -> None:
    """Print the features that pushed a prediction most, as factors, and the nearest known workloads."""
    out = console()
    run = f"{result.app} {result.input}, run on {result.source}"
    if result.attribution:
        out.print(rich_table(answers.contributions(result.attribution, result)))
        out.print(
            f"{escape(run)}: {math.exp(result.attribution.prediction):,.2f}x is predicted on "
            f"{escape(result.platform)}, and {math.exp(result.attribution.base):,.2f}x on average for "
            f"{result.attribution.background:,} known runs; the effects lead from there to here"
        )
    if result.neighbours:
        out.print(rich_table(answers.nearest(result.neighbours, run)))


def transfer(result: Transfer) -> None:
    """Print how far off a new platform is by how many workloads were measured there, and what that means."""
    out = console()
    out.print(escape(result.about))
    out.print(rich_table(result.view()))
    out.print(
        "adapted: a head on workloads drawn at random; suggested: on those that 'adapt --suggest' names; scratch: the "
        "model retrained on those drawn; full: retrained on all. RPV: over all platforms but the source"
    )
    if result.noise is not None:
        out.print(f"noise: half of the repeats is off from the other half by {result.noise:.3f}")


def adaptation(result: Adaptation) -> None:
    """Print what a platform was learned from and how well."""
    console().print(
        f"added {escape(result.platform)} ({escape(result.platform_class)}) to {len(result.model.platforms) - 1} "
        f"platforms from {len(result.workloads):,} workloads; each of them, predicted from the others and its true "
        f"times on the known platforms, is off by a factor of {result.left_out_factor:.2f} typically"
    )


def suggestions(chosen: list[Suggestion]) -> None:
    """Print which workloads to measure next, the best first."""
    out = console()
    out.print(rich_table(answers.suggestions(chosen)))
    out.print("takes away: the share of what is still unknown, as variance over all known workloads")


def info(facts: TableInfo) -> None:
    """Print what a runs table holds."""
    out = console()
    out.print(
        f"{escape(facts.path)}: {facts.runs:,} runs ({sum(facts.failed.values()):,} failed), {facts.apps:,} apps, "
        f"{facts.workloads:,} workloads ({facts.complete_workloads:,} on every platform), {len(facts.platforms)} "
        f"platforms, {facts.counters} counters; fingerprint {facts.fingerprint}"
    )
    repeats, noise = facts.repeats, facts.noise
    spread = (
        "no repeats, so the noise is not known"
        if noise.median is None
        else f"variation of repeats {noise.median:.1%} in the median, {noise.p90:.1%} at the 90th percentile"
    )
    if facts.cells:
        out.print(f"repeats of a cell: {repeats.min} to {repeats.max}, median {repeats.median:g}; {spread}")
    for status, count in facts.failed.items():
        out.print(f"failed with status {escape(repr(status))}: {count:,} runs")
    out.print(rich_table(tables.platforms(facts)))
    if facts.missing_counters:
        out.print(rich_table(tables.missing(facts, _SHOWN)))
        if len(facts.missing_counters) > _SHOWN:
            out.print("--json FILE lists all")
