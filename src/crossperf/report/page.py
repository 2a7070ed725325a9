"""The page: everything an evaluation holds, as one HTML file that needs nothing beside it."""

from __future__ import annotations

import base64
import hashlib
import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import PurePath
from typing import Any

from crossperf import __version__
from crossperf.display import TableView, to_html
from crossperf.errors import MissingDependencyError
from crossperf.evaluation.result import Evaluation
from crossperf.evaluation.scores import METRICS
from crossperf.report import sentences, tables
from crossperf.report.chooser import chooser
from crossperf.report.figures import FIGURES, Drawn, NothingToDraw, Plot, colours
from crossperf.report.figures.words import count, how_often
from crossperf.report.inline import inline

try:
    from jinja2 import Environment
    from markupsafe import Markup
except ImportError as error:
    raise MissingDependencyError("The report needs Jinja2: pip install 'crossperf[report]'") from error

#: Distinguishes a page of ours from anybody else's.
GENERATOR = "crossperf report"
#: How the parts of a drawing are called that the script moves.
_MOVED = ("line-", "dot-")
_COMMAND = "crossperf report evaluation.json -o report"
#: What stands for each neutral ink of a drawing, so that one drawing serves light and dark.
_INKS = {colours.INK: "var(--ink)", colours.FAINT: "var(--quiet)"}


@dataclass(frozen=True)
class Drawing:
    """A figure on the page; without a drawing the caption tells why."""

    title: str
    caption: str
    paper: int | None
    svg: Markup | None = None
    #: Inches.
    width: float = 0.0


def draw(evaluation: Evaluation, *, bare: bool = False) -> dict[str, Drawn | NothingToDraw]:
    """Return every figure of an evaluation by name, or the reason why there is none."""
    return {name: _attempt(plot, evaluation, bare=bare) for name, plot in FIGURES.items()}


def render(evaluation: Evaluation, command: str | None = None) -> str:
    """Return the page of an evaluation.

    Parameters
    ----------
    command
        The command line that makes the page; ``None`` stands for that of an evaluation's file.
    """
    drawn = draw(evaluation, bare=True)
    choice = chooser(evaluation) if isinstance(drawn["vector"], Drawn) else None
    if choice:
        drawn["vector"] = choice.drawn
    tooltips = {name: _tooltips(own) for name, own in drawn.items() if isinstance(own, Drawn)}
    script, style = _read("script.js"), _read("style.css")
    return (
        Environment(autoescape=True)
        .from_string(_read("template.html"))
        .render(
            **_content(evaluation),
            drawings={name: _drawing(name, own) for name, own in drawn.items()},
            table=_table,
            left_out_of_choice=choice.left_out if choice else "",
            commands=[*filter(None, [sentences.command(evaluation)]), command or _COMMAND],
            data=_json({"tooltips": tooltips, "chooser": choice.facts if choice else None}),
            generator=f"{GENERATOR} {__version__}",
            script=Markup(script),  # noqa: S704 - our own files, not data
            style=Markup(style),  # noqa: S704
            script_hash="sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        )
    )


def _attempt(plot: Plot, evaluation: Evaluation, *, bare: bool) -> Drawn | NothingToDraw:
    try:
        return plot(evaluation, bare=bare)
    except NothingToDraw as reason:
        return reason


def _content(evaluation: Evaluation) -> dict[str, Any]:
    """Return what the page shows, apart from its figures."""
    facts, info, held_out = evaluation.table, evaluation.table.info, evaluation.held_out
    return {
        "table_name": PurePath(facts.path).name,
        "headline": sentences.headline(evaluation),
        "about": evaluation.about,
        "scores": tables.scores(evaluation) if len(evaluation.scores) else None,
        "scores_command": f"crossperf evaluate {shlex.quote(facts.path)} --json evaluation.json",
        "columns": {name.replace("_", " "): hint for name, hint in METRICS.items()},
        "sentences": sentences.sentences(evaluation),
        "caveats": evaluation.caveats,
        "applications": tables.applications(held_out) if held_out and held_out.predictions else None,
        "data_summary": _summary(evaluation),
        "platforms": tables.platforms(info) if info else None,
        "missing": tables.missing(info) if info and info.missing_counters else None,
        "left_out": sentences.left_out(evaluation),
        "facts": _facts(evaluation),
    }


def _summary(evaluation: Evaluation) -> str:
    """Return what is in the table, in two sentences."""
    info = evaluation.table.info
    whole = info or evaluation.table
    counts = (
        f"{whole.runs:,} runs of {whole.workloads:,} workloads ({count(whole.apps, 'application')}) on "
        f"{len(whole.platforms)} platforms"
    )
    if not info:
        return f"{counts}."
    spread = "" if info.noise.median is None else f"; repeats vary by {info.noise.median:.1%} in the median"
    return (
        f"{counts}, with {info.counters} counters. {info.complete_workloads:,} workloads ran on every platform. "
        f"A cell, one workload on one platform, was measured {how_often(info.repeats)}{spread}."
    )


def _facts(evaluation: Evaluation) -> dict[str, str]:
    """Return what the numbers depend on: table, fingerprint, seed, versions."""
    facts = evaluation.table
    return {
        "table": facts.path,
        "fingerprint": facts.fingerprint,
        **({"split": f"{evaluation.split}, {evaluation.folds_in_words}"} if evaluation.is_split else {}),
        "seed": str(evaluation.seed),
        "made with": ", ".join(f"{name} {version}" for name, version in evaluation.versions.items()) or "not known",
    }


def _drawing(name: str, drawn: Drawn | NothingToDraw) -> Drawing:
    plot = FIGURES[name]
    if isinstance(drawn, NothingToDraw):
        return Drawing(plot.question, str(drawn), plot.paper)
    svg = inline(drawn.as_bytes("svg").decode("utf-8"), f"{name}-", _INKS, _MOVED)
    labels = f'<svg role="img" aria-labelledby="{name}-title" aria-describedby="{name}-caption"'
    return Drawing(
        drawn.title or plot.question,
        drawn.caption,
        plot.paper,
        Markup(svg.replace("<svg", labels, 1)),  # noqa: S704 - matplotlib escapes what it writes, and so does `inline`
        drawn.size[0],
    )


def _tooltips(drawn: Drawn) -> list[list[Any]]:
    return [
        [round(own.x, 4), round(own.y, 4), own.text]
        + ([round(own.width, 4), round(own.height, 4)] if own.width else [])
        for own in drawn.tooltips
    ]


def _table(view: TableView, identity: str) -> Markup:
    return Markup(to_html(view, identity))  # noqa: S704 - `to_html` escapes what it writes


def _json(facts: Mapping[str, Any]) -> Markup:
    r"""Return facts as JSON that no text in them can lead out of its ``<script>``.

    >>> print(_json({"app": "</script>&"}))
    {"app":"\u003c/script\u003e\u0026"}
    """
    text = json.dumps(facts, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # noqa: S704 - just made safe


def _read(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
