"""Results as a person reads them in a terminal: tables and sentences on stdout."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from crossperf.display import CellView, RowView, TableView, number, numbers, words
from crossperf.records import FAMILIAR, NO_VERSION_KNOWN, UNKNOWN, UNUSUAL
from crossperf.report import tables
from crossperf.report.columns import fitting, folded, least, least_widths, natural
from crossperf.text import safe

if TYPE_CHECKING:
    from crossperf.adaptation.adapt import Adaptation, Suggestion
    from crossperf.adaptation.result import Transfer
    from crossperf.evaluation.compare import TableComparison
    from crossperf.evaluation.result import Evaluation
    from crossperf.evaluation.seeds import SeedStudy
    from crossperf.model.trained import TrainedModel
    from crossperf.prediction.answer import Answer
    from crossperf.prediction.explain import Explanation
    from crossperf.prediction.shapley import Attribution
    from crossperf.records import Prediction
    from crossperf.runs.summary import Noise, TableInfo

_IN_FULL = 5  # up to this many predictions with intervals are shown in full
_SHOWN = 20  # a prediction of many runs shows these first ones; all are in the JSON file
_STRONGEST = 8  # an explanation shows the features that pushed most, and the rest together
#: What stands below a table of scores.
_BEST, _BETTER = "*: the best of the models. ", "↑: more is better, ↓: less is better."
#: What to do with a run, by how familiar it looks.
_ADVICE = {
    FAMILIAR: "",
    UNUSUAL: ": believe the interval, not the number",
    UNKNOWN: ": the model has seen nothing like it, so measure it where it matters",
}


def console() -> Console:
    """Return a console that never breaks a table that goes to a file or a pipe."""
    screen = Console(highlight=False, soft_wrap=True)
    return screen if screen.is_terminal else Console(highlight=False, soft_wrap=True, width=160)


def rich_table(view: TableView, width: int = 160) -> Table:
    """Return a table for the terminal: the best in bold with a star, reference rows dimmed, numbers never cut."""
    table = Table(title=plain(view.caption))
    whole, widths = natural(view) <= width, least_widths(view)
    # The names of the rows stay in one line where there is room.
    names = max((len(row[0].text) for row, _ in view.all_rows), default=0)
    widths[0] = max(widths[0], min(names, widths[0] + width - least(view)))
    for place, column in enumerate(view.columns):
        side: Literal["left", "right"] = "right" if column.number else "left"
        lines = [column.name] if whole or not column.number else folded(column.name, widths[place])
        head, numeric = "\n".join(map(plain, lines)), column.number
        table.add_column(head, justify=side, min_width=widths[place], no_wrap=numeric, overflow="fold")
    for row, reference in view.all_rows:
        table.add_row(*map(_rich_cell, row), style="dim" if reference else None)
    return table


def _rich_cell(cell: CellView) -> str:
    text = plain(cell.text) + "*" * cell.best
    return f"[bold]{text}[/bold]" if cell.best or cell.bold else text


def show(*parts: TableView | str, style: str | None = None) -> None:
    """Print tables and sentences to stdout; whatever names they hold, a terminal only shows them."""
    out = console()
    for part in parts:
        if isinstance(part, str):
            out.print(plain(part), style=style)
            continue
        for table in fitting(part, out.width):
            out.print(rich_table(table, out.width), style=style)


def plain(text: str) -> str:
    """Return a text without what a terminal would obey, and without what rich takes for markup."""
    return escape(safe(text))


def evaluation(result: Evaluation) -> None:
    """Print the scores of the models, best marked, what they are compared with below, and what they mean."""
    from crossperf.report.sentences import CELL, sentences

    legend = _BEST * (len(result.scores) > 1) + _BETTER
    show(result.about, tables.scores(result), legend, CELL, *sentences(result))


def seeds(result: SeedStudy) -> None:
    """Print the mean scores of the models over seeds, with the interval of each mean."""
    show(result.about, result.table())


def training(model: TrainedModel) -> None:
    """Print what was trained, on what, and what the fit tells of itself."""
    cells, summary, count = model.cells, model.summary, len(model.columns.events)
    events = f" and {count} events" if count else ""
    show(
        f"trained {model.name} on {len(cells):,} cells: {len(cells.workloads):,} workloads of {len(cells.apps):,} "
        f"apps, {len(cells.platforms)} platforms, {len(model.counters)} counters{events}"
    )
    if "active_units" in summary:
        collapsed = " (collapsed: the regressor sees nothing)" if summary["collapsed"] else ""
        line = f"{summary['active_units']} of {summary['latent_dim']} units active"
        if "kl_nats" in summary and "decoder_gain" in summary:
            line = (
                f"{summary['informed_units']} of {summary['latent_dim']} units carry information, "
                f"{summary['kl_nats']:.1f} nats in all; the decoder restores {summary['decoder_gain']:.0%} of the "
                "features' variance"
            )
        show(f"latent space: {line}{collapsed}")


def predictions(answer: Answer) -> None:
    """Print relative times: a few runs with intervals as a table each, platforms below one another; many in a table."""
    if answer.predictions[0].low and len(answer.predictions) <= _IN_FULL:
        for prediction in answer.predictions:
            show(_single(prediction), _familiarity(prediction))
        show(*_how_to_say_where(answer))
        return
    show(_many(answer.predictions[:_SHOWN]), "*: the fastest platform", *_how_to_say_where(answer))
    if len(answer.predictions) > _SHOWN:
        show(f"the first {_SHOWN} of {len(answer.predictions):,} predictions; --json FILE holds all")


def _how_to_say_where(answer: Answer) -> list[str]:
    """Return what to do where it is not known whether there is a version of a program for a platform."""
    unsure = {name for own in answer.predictions for name, why in own.cannot.items() if why == NO_VERSION_KNOWN}
    names = ", ".join(sorted(unsure))
    return [f"no version known for {names}: if there is one, name its class or platform with --can"] if unsure else []


def _many(predictions: Sequence[Prediction]) -> TableView:
    """Return predictions, a row each, the fastest platform marked."""
    first, rows = predictions[0], list[RowView]()
    for own in predictions:
        times = [_relative(own, name) for name in first.relative_time]
        rows.append((own.app, own.input, own.source, *times, *([own.familiarity.word] if own.familiarity else [])))
    columns = (*words("app", "input", "run on"), *numbers(*first.relative_time))
    return TableView(_title(first), (*columns, *(words("looks") if first.familiarity else ())), tuple(rows))


def _relative(prediction: Prediction, platform: str) -> CellView:
    value = prediction.relative_time[platform]
    if platform in prediction.cannot:
        return CellView(prediction.cannot[platform])
    seconds = f" ({prediction.seconds[platform]:,.3g} s)" if platform in prediction.seconds else ""
    return CellView(f"{value:,.2f}x{seconds}", value, best=platform == prediction.fastest)


def _title(prediction: Prediction) -> str:
    names = {"source": "the run's own platform", "fastest": "the fastest predicted", "slowest": "the slowest predicted"}
    return f"time relative to {names.get(prediction.relative_to, prediction.relative_to)} (2.0x is twice as slow)"


def _single(prediction: Prediction) -> TableView:
    """Return a prediction with its intervals, a row for each platform, the fastest first."""
    rows = []
    for name in sorted(prediction.offered, key=prediction.relative_time.__getitem__):
        low, high = prediction.low[name], prediction.high[name]
        texts = (
            name,
            f"{prediction.relative_time[name]:,.2f}x",
            f"{low:,.2f}x to {high:,.2f}x" if low < high else "",
            f"{prediction.seconds[name]:,.3g}" if name in prediction.seconds else "-",
            f"{prediction.chance_fastest[name]:.0%}",
        )
        rows.append(tuple(CellView(text, bold=name == prediction.fastest) for text in texts))
    rows += [(CellView(name), CellView(why), *[CellView("")] * 3) for name, why in prediction.cannot.items()]
    columns = numbers("relative time", f"interval, {prediction.level:.0%}", "seconds", "fastest?")
    run = f"{prediction.app} {prediction.input}, run on {prediction.source}"
    return TableView(f"{run}: {_title(prediction)}", (*words("platform"), *columns), tuple(rows))


def _familiarity(prediction: Prediction) -> str:
    looks = prediction.familiarity
    if looks is None:
        return ""
    because = f" ({', '.join(looks.because)})" if looks.because else ""
    return f"this run looks {looks.word} to the model{because}{_ADVICE[looks.word]}"


def explanation(result: Explanation) -> None:
    """Print the features that pushed a prediction most, as factors, and the nearest known workloads."""
    run, attribution = f"{result.app} {result.input}, run on {result.source}", result.attribution
    if attribution:
        show(
            _contributions(attribution, result),
            f"{run}: {math.exp(attribution.prediction):,.2f}x is predicted on {result.platform}, and "
            f"{math.exp(attribution.base):,.2f}x on average for {attribution.background:,} known runs; the effects "
            "lead from there to here",
        )
    if result.neighbours:
        show(_nearest(result, run))


def _contributions(attribution: Attribution, explanation: Explanation) -> TableView:
    parts = [part for part in attribution.contributions if part.contribution != 0.0]
    rows = []
    for part in parts[:_STRONGEST]:
        values = ("not measured" if value is None else f"{value:,.4g}" for value in (part.value, part.median))
        rows.append((part.feature, _effect(part.contribution), f"{part.standard_error:.1%}", *values))
    if rest := parts[_STRONGEST:]:
        rows.append((f"{len(rest)} others together", _effect(sum(part.contribution for part in rest)), "", "", ""))
    run = f"{explanation.app} {explanation.input} on {explanation.platform}"
    return TableView(
        f"contributions to the time of {run}, relative to {explanation.source}",
        (*words("counter"), *numbers("effect", "standard error", "this run", "median of known runs")),
        tuple(rows),
    )


def _effect(contribution: float) -> str:
    return f"x{math.exp(abs(contribution)):,.2f} {'slower' if contribution > 0 else 'faster'}"


def _nearest(explanation: Explanation, run: str) -> TableView:
    platforms = list(explanation.neighbours[0].relative_time)
    rows: list[RowView] = []
    for near in explanation.neighbours:
        times = [number(near.relative_time[name], 2, unit="x") for name in platforms]
        rows.append((near.app, near.input, f"{near.distance:.3g}", near.relative_to, *times))
    columns = (*words("app", "input"), *numbers("distance"), *words("relative to"), *numbers(*platforms))
    return TableView(f"known workloads nearest to {run}, and their true relative times", columns, tuple(rows))


def transfer(result: Transfer) -> None:
    """Print how far off a new platform is by how many workloads were measured there, and what that means."""
    show(
        result.about,
        result.view(),
        "adapted: a head on workloads drawn at random; suggested: on those that 'adapt --suggest' names; scratch: the "
        "model retrained on those drawn; full: retrained on all. RPV: over all platforms but the source",
    )
    if result.noise is not None:
        show(f"noise: half of the repeats is off from the other half by {result.noise:.3f}")


def adaptation(result: Adaptation) -> None:
    """Print what a platform was learned from and how well."""
    show(
        f"added {result.platform} ({result.platform_class}) to {len(result.model.platforms) - 1} platforms from "
        f"{len(result.workloads):,} workloads; each of them, predicted from the others and its true times on the "
        f"known platforms, is off by a factor of {result.left_out_factor:.2f} typically"
    )


def suggestions(chosen: list[Suggestion]) -> None:
    """Print which workloads to measure next, the best first."""
    rows = [(str(place), own.app, own.input, f"{own.gain:.0%}", own.why) for place, own in enumerate(chosen, start=1)]
    columns = (*numbers(""), *words("app", "input"), *numbers("takes away"), *words("why"))
    show(
        TableView("measure these next on the new platform", columns, tuple(rows)),
        "takes away: the share of what is still unknown, as variance over all known workloads",
    )


def comparison(result: TableComparison) -> None:
    """Print how the times of two tables differ, and how well they agree."""
    show(
        f"{result.cells:,} cells are in both tables; {result.only_in_first:,} in {result.first} alone, "
        f"{result.only_in_second:,} in {result.second} alone"
    )
    show(tables.changes(result), tables.most_changed(result))
    own = result.agreement
    if own.typical_factor is not None:
        show(
            f"times relative to another platform differ by a factor of {own.typical_factor:.3f} (typical); "
            f"the fastest platform is the same for {own.top1 or 0:.0%} of the cells "
            f"({own.top1_within_noise or 0:.0%} within noise), "
            f"and the whole order for {own.same_order or 0:.0%} ({own.order_beyond_noise or 0:.0%} beyond noise)"
        )


def _variation(noise: Noise) -> str:
    if noise.median is None or noise.p90 is None:
        return ""
    return f"variation {noise.median:.1%} in the median, {noise.p90:.1%} at the 90th percentile"


def info(facts: TableInfo) -> None:
    """Print what a runs table holds."""
    able = " that can run them" if facts.limited_workloads else ""
    complete = f"{facts.complete_workloads:,} on every platform{able}"
    show(
        f"{facts.path}: {facts.runs:,} runs ({sum(facts.failed.values()):,} failed), {facts.apps:,} apps, "
        f"{facts.workloads:,} workloads ({complete}), {len(facts.platforms)} "
        f"platforms, {facts.counters} counters; fingerprint {facts.fingerprint}"
    )
    repeats, noise = facts.repeats, facts.noise
    if facts.cells:
        if repeats.max == 1 and not facts.visits:
            show("one run of each cell: without repeats the noise is not known")
        else:
            spread = _variation(noise) or "one a visit"
            show(f"repeats of a cell: {repeats.min} to {repeats.max}, median {repeats.median:g}; {spread}")
    if facts.visits and facts.noise_between_visits:
        visits, spread = facts.visits, _variation(facts.noise_between_visits) or "one each"
        show(f"visits of a cell: {visits.min} to {visits.max}, median {visits.median:g}; {spread}")
    elif noise.median is not None:
        show("The table does not tell visits apart (measured_in): repeats in a row flatter, the noise is larger.")
    show(*(f"failed with status {status!r}: {count:,} runs" for status, count in facts.failed.items()))
    show(tables.platforms(facts))
    if facts.limited_workloads:
        show(
            f"{facts.limited_workloads:,} workloads cannot run on some platforms (column runnable), which is no gap: "
            "'not measured' counts what is missing"
        )
    if facts.missing_counters:
        show(tables.missing(facts, _SHOWN))
        show("--json FILE lists each")
