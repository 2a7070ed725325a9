"""Results as a person reads them in a terminal: tables and sentences on stdout."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from crossperf.records import FAMILIAR, UNKNOWN, UNUSUAL
from crossperf.report import sentences as meaning

if TYPE_CHECKING:
    from crossperf.adaptation.adapt import Adaptation, Suggestion
    from crossperf.adaptation.score import Transfer
    from crossperf.dataset.build import Dataset
    from crossperf.evaluation.run import Evaluation
    from crossperf.model.base import Predictor
    from crossperf.prediction.answer import Answer
    from crossperf.prediction.explain import Explanation
    from crossperf.prediction.neighbours import Neighbour
    from crossperf.prediction.shapley import Attribution
    from crossperf.records import Prediction
    from crossperf.runs.summary import TableInfo

#: So few predictions with ranges are shown in full.
_IN_FULL = 5
#: A prediction of many runs shows these first ones; all are in the JSON file.
_SHOWN = 20
#: An explanation shows the features that pushed most, and the rest together.
_PUSHES = 8


def console() -> Console:
    """Return a console that never breaks a table that goes to a file or a pipe."""
    screen = Console(highlight=False, soft_wrap=True)
    return screen if screen.is_terminal else Console(highlight=False, soft_wrap=True, width=160)


def evaluation(result: Evaluation) -> None:
    """Print the scores of the models, best marked, the noise ceiling below, and what they mean."""
    out = console()
    out.print(escape(meaning.about(result)))
    columns = list(meaning.COLUMNS)
    table = Table("model", *columns, "fit_s", "predict_s")
    for column in table.columns[1:]:
        column.justify = "right"
    best = {name: meaning.best(result, name) for name in columns}
    for name, scores in result.models.items():
        marks = {column: best[column] is not None and scores[column] == best[column] for column in columns}
        cells = [_number(scores[column], mark=marks[column]) for column in columns]
        table.add_row(name, *cells, _number(scores["fit_s"], 2), _number(scores["predict_s"], 3))
    ceiling = result.noise_ceiling
    table.add_row("noise ceiling", *(_number(ceiling[column]) for column in columns), "", "", style="dim")
    out.print(table)
    for sentence in meaning.sentences(result):
        out.print(escape(sentence))


def _number(value: float | None, digits: int = 3, mark: bool = False) -> str:
    text = "-" if value is None else f"{value:,.{digits}f}"
    return f"[bold]{text}*[/bold]" if mark else text


def training(model: Predictor, data: Dataset) -> None:
    """Print what was trained, on what, and what the fit says of itself."""
    facts = data.table
    out = console()
    out.print(
        f"trained {model.name} on {len(data):,} cells: {facts['workloads']:,} workloads of {facts['apps']:,} apps, "
        f"{len(data.platforms)} platforms, {len(data.counters)} counters"
    )
    summary = model.summary_
    if "active_units" in summary:
        out.print(
            f"latent space: {summary['active_units']} of {summary['latent_dim']} units active"
            + (" (collapsed: the regressor sees nothing)" if summary["collapsed"] else "")
        )


def predictions(answer: Answer) -> None:
    """Print relative times: a few runs with ranges as one table each, platforms below one another; many as one."""
    out = console()
    if answer.predictions[0].low and len(answer.predictions) <= _IN_FULL:
        for prediction in answer.predictions:
            out.print(_one(prediction))
            out.print(escape(_looks(prediction)))
        return
    platforms = list(answer.predictions[0].relative_time)
    words = ["looks"] if answer.predictions[0].familiarity else []
    title = f"time relative to {escape(_against(answer.predictions[0]))} (2.0x is twice as slow)"
    table = Table("app", "input", "run on", *map(escape, platforms), *words, title=title)
    for column in table.columns[3 : 3 + len(platforms)]:
        column.justify = "right"
    for prediction in answer.predictions[:_SHOWN]:
        cells = [_answer_cell(prediction, name) for name in platforms]
        looks = [prediction.familiarity.word] if prediction.familiarity else []
        table.add_row(*map(escape, (prediction.app, prediction.input, prediction.source)), *cells, *looks)
    out.print(table)
    if len(answer.predictions) > _SHOWN:
        out.print(f"the first {_SHOWN} of {len(answer.predictions):,} predictions; --json FILE holds all")


def _against(prediction: Prediction) -> str:
    names = {"source": "the run's own platform", "fastest": "the fastest predicted"}
    return names.get(prediction.relative_to, prediction.relative_to)


def _one(prediction: Prediction) -> Table:
    """Return a prediction with its ranges, one row a platform, the fastest first."""
    run = f"{prediction.app} {prediction.input}, run on {prediction.source}"
    title = f"{escape(run)}: time relative to {escape(_against(prediction))} (2.0x is twice as slow)"
    table = Table("platform", "relative time", f"range, {prediction.level:.0%}", "seconds", "fastest?", title=title)
    for column in table.columns[1:]:
        column.justify = "right"
    for name in sorted(prediction.relative_time, key=prediction.relative_time.__getitem__):
        low, high = prediction.low[name], prediction.high[name]
        table.add_row(
            escape(name),
            f"{prediction.relative_time[name]:,.2f}x",
            f"{low:,.2f}x to {high:,.2f}x" if low < high else "",
            f"{prediction.seconds[name]:,.3g}" if name in prediction.seconds else "-",
            f"{prediction.chance_fastest[name]:.0%}",
            style="bold" if name == prediction.fastest else None,
        )
    return table


def _looks(prediction: Prediction) -> str:
    """Return how familiar a run looks, in a sentence."""
    looks = prediction.familiarity
    if looks is None:
        return ""
    because = f" ({', '.join(looks.because)})" if looks.because else ""
    advice = {
        FAMILIAR: "",
        UNUSUAL: ": believe the range, not the number",
        UNKNOWN: ": the model has seen nothing like it, so measure it where it matters",
    }
    return f"this run looks {looks.word} to the model{because}{advice[looks.word]}"


def _answer_cell(prediction: Prediction, platform: str) -> str:
    text = f"{prediction.relative_time[platform]:,.2f}x"
    if platform in prediction.seconds:
        text += f" ({prediction.seconds[platform]:,.3g} s)"
    return f"[bold]{text}*[/bold]" if platform == prediction.fastest else text


def explanation(result: Explanation) -> None:
    """Print the features that pushed a prediction most, as factors, and the nearest known workloads."""
    out = console()
    run = escape(f"{result.app} {result.input}, run on {result.source}")
    if result.attribution:
        out.print(_pushes(result.attribution, result))
        out.print(
            f"{run}: {math.exp(result.attribution.prediction):,.2f}x is predicted on {escape(result.platform)}, and "
            f"{math.exp(result.attribution.base):,.2f}x on average for {result.attribution.background:,} known runs; "
            "the effects lead from there to here"
        )
    if result.neighbours:
        out.print(_nearest(result.neighbours, run))


def _pushes(attribution: Attribution, result: Explanation) -> Table:
    title = f"what pushed the time of {result.app} {result.input} on {result.platform}, relative to {result.source}"
    table = Table("counter", "effect", "standard error", "this run", "median of known runs", title=escape(title))
    for column in table.columns[1:]:
        column.justify = "right"
    pushed = [push for push in attribution.pushes if push.contribution != 0.0]
    for push in pushed[:_PUSHES]:
        values = ("not measured" if value is None else f"{value:,.4g}" for value in (push.value, push.median))
        table.add_row(escape(push.feature), _effect(push.contribution), f"{push.standard_error:.1%}", *values)
    rest = pushed[_PUSHES:]
    if rest:
        table.add_row(f"{len(rest)} others together", _effect(sum(push.contribution for push in rest)), "", "", "")
    return table


def _effect(contribution: float) -> str:
    """Return a contribution in words.

    >>> _effect(math.log(1.8)), _effect(-math.log(2.0))
    ('x1.80 slower', 'x2.00 faster')
    """
    return f"x{math.exp(abs(contribution)):,.2f} {'slower' if contribution > 0 else 'faster'}"


def _nearest(neighbours: tuple[Neighbour, ...], run: str) -> Table:
    platforms = list(neighbours[0].relative_time)
    title = f"known workloads nearest to {run}, and their true relative times"
    table = Table("app", "input", "distance", "relative to", *map(escape, platforms), title=title)
    for column in (table.columns[2], *table.columns[4:]):
        column.justify = "right"
    for one in neighbours:
        times = [
            _number(one.relative_time[name], 2) + ("" if one.relative_time[name] is None else "x") for name in platforms
        ]
        table.add_row(escape(one.app), escape(one.input), f"{one.distance:.3g}", escape(one.relative_to), *times)
    return table


def transfer(result: Transfer) -> None:
    """Print how far off a new platform is by how many workloads were measured there, and what that means."""
    facts = result.table
    out = console()
    out.print(
        f"split platform, {len(result.left_out)} left out in turn, {result.scored_folds} of {result.folds} folds, seed "
        f"{result.seed}, {result.draws} draws: {facts['workloads']:,} workloads of {facts['apps']:,} apps "
        f"({escape(facts['path'])}, fingerprint {facts['fingerprint']})"
    )
    ways = ("adapted", "suggested", "scratch", "full")
    table = Table(
        "model", "shots", "workloads", *ways, *(f"{way} RPV" for way in ways), title="typical factor on a new platform"
    )
    for column in table.columns[1:]:
        column.justify = "right"
    for name, by_shots in result.scores.items():
        for label, there in by_shots.items():
            if there:
                figures = [result.mean(name, label, way, kind) for kind in ("column", "vector") for way in ways]
                table.add_row(name, label, f"{result.shots[label]:.0f}", *map(_number, figures))
    out.print(table)
    out.print(
        "adapted: a head on workloads drawn at random; suggested: on those that 'adapt --suggest' names; scratch: the "
        "model retrained on those drawn; full: retrained on all. RPV: the whole relative performance vector"
    )
    if result.noise is not None:
        out.print(f"noise: half of the repeats is off from the other half by {result.noise:.3f}")


def adaptation(result: Adaptation) -> None:
    """Print what a platform was learned from and how well."""
    console().print(
        f"added {escape(result.platform)} ({escape(result.platform_class)}) to {len(result.saved.platforms) - 1} "
        f"platforms from {len(result.workloads):,} workloads; each of them, predicted from the others and its true "
        f"times on the known platforms, is off by a factor of {result.left_out_factor:.2f} typically"
    )


def suggestions(found: list[Suggestion]) -> None:
    """Print which workloads to measure next, the best first."""
    table = Table("", "app", "input", "takes away", "why", title="measure these next on the new platform")
    for number, one in enumerate(found, start=1):
        table.add_row(str(number), escape(one.app), escape(one.input), f"{one.gain:.0%}", escape(one.why))
    out = console()
    out.print(table)
    out.print("takes away: the share of what is still unknown, as variance over all known workloads")


def info(facts: TableInfo) -> None:
    """Print what a runs table holds."""
    out = console()
    out.print(
        f"{escape(facts.path)}: {facts.runs:,} runs ({sum(facts.failed.values()):,} failed), "
        f"{facts.apps:,} apps, {facts.workloads:,} workloads ({facts.complete_workloads:,} on every "
        f"platform), {len(facts.platforms)} platforms, {facts.counters} counters; "
        f"fingerprint {facts.fingerprint}"
    )
    repeats = facts.repeats
    noise = facts.noise
    spread = (
        "no repeats, so the noise is not known"
        if noise.median is None
        else f"variation of repeats {noise.median:.1%} in the median, {noise.p90:.1%} at the 90th percentile"
    )
    if facts.cells:
        out.print(f"repeats of a cell: {repeats.min} to {repeats.max}, median {repeats.median:g}; {spread}")
    for status, count in facts.failed.items():
        out.print(f"failed with status {escape(repr(status))}: {count:,} runs")
    table = Table("platform", "class", "runs", "workloads", "variation")
    for platform in facts.platforms:
        share = f"{platform.workloads / max(facts.workloads, 1):.0%}"
        table.add_row(
            escape(platform.name),
            escape(platform.platform_class or "-"),
            f"{platform.runs:,}",
            f"{platform.workloads:,} ({share})",
            "-" if platform.noise is None else f"{platform.noise:.1%}",
        )
    out.print(table)
    if facts.missing_counters:
        missing = Table("missing counter", "share of runs without it, by platform")
        for name, shares in list(facts.missing_counters.items())[:_SHOWN]:
            by_platform = ", ".join(f"{platform} {share:.0%}" for platform, share in shares.items())
            missing.add_row(escape(name), escape(by_platform))
        out.print(missing)
        more = len(facts.missing_counters) - _SHOWN
        if more > 0:
            out.print(f"and {more:,} more counters with gaps; --json FILE lists all")
