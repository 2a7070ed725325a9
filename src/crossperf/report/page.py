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
from crossperf.dataset.build import SPLITS
from crossperf.errors import MissingDependencyError
from crossperf.evaluation.run import Evaluation
from crossperf.report import sentences as meaning
from crossperf.report import tables
from crossperf.report.chooser import chooser
from crossperf.report.figures import FIGURES, Drawn, NothingToDraw, Plot, colours
from crossperf.report.figures.words import count
from crossperf.report.inline import inline

try:
    from jinja2 import Environment
    from markupsafe import Markup
except ImportError as error:
    raise MissingDependencyError("The report needs Jinja2: pip install 'crossperf[report]'") from error

#: Tells a page of ours from anybody else's.
GENERATOR = "crossperf report"
#: How the parts of a drawing are called that the script moves.
_MOVED = ("line-", "dot-")
_COMMAND = "crossperf report evaluation.json -o report"
#: What stands for each neutral ink of a drawing, so that one drawing serves light and dark.
_INKS = {colours.INK: "var(--ink)", colours.FAINT: "var(--quiet)"}


@dataclass(frozen=True)
class Drawing:
    """A figure on the page; without a drawing the caption says why there is none."""

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
    marks = {name: _marks(one) for name, one in drawn.items() if isinstance(one, Drawn)}
    script, style = _read("script.js"), _read("style.css")
    return (
        Environment(autoescape=True)
        .from_string(_read("template.html"))
        .render(
            **_content(evaluation),
            drawings={name: _drawing(name, one) for name, one in drawn.items()},
            left_out_of_choice=choice.left_out if choice else "",
            commands=[*filter(None, [meaning.command(evaluation)]), command or _COMMAND],
            data=_json({"marks": marks, "chooser": choice.facts if choice else None}),
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
    """Return what the page says, apart from its figures."""
    facts, info, held_out = evaluation.table, evaluation.table.get("info"), evaluation.held_out
    return {
        "table_name": PurePath(facts["path"]).name,
        "headline": meaning.headline(evaluation),
        "about": meaning.about(evaluation),
        "scores": tables.scores(evaluation) if evaluation.models else None,
        "scores_command": f"crossperf evaluate {shlex.quote(facts['path'])} --json evaluation.json",
        "columns": {name.replace("_", " "): hint for name, hint in meaning.COLUMNS.items()},
        "sentences": meaning.sentences(evaluation),
        "doubts": evaluation.doubts,
        "applications": tables.applications(held_out) if held_out and held_out.said else None,
        "data_summary": _summary(evaluation),
        "platforms": tables.platforms(info) if info else None,
        "missing": tables.missing(info) if info and info["missing_counters"] else None,
        "left_out": tables.left_out(evaluation),
        "facts": _facts(evaluation),
    }


def _summary(evaluation: Evaluation) -> str:
    """Return what is in the table, in two sentences."""
    facts, info = evaluation.table, evaluation.table.get("info")
    whole = info or facts
    counts = (
        f"{whole['runs']:,} runs of {whole['workloads']:,} workloads ({count(whole['apps'], 'application')}) on "
        f"{len(whole['platforms'])} platforms"
    )
    if not info:
        return f"{counts}."
    least, most, noise = info["repeats"]["min"], info["repeats"]["max"], info["noise"]["median"]
    times = count(most, "time") if least == most else f"{least} to {most} times"
    spread = "" if noise is None else f"; repeats vary by {noise:.1%} in the median"
    return (
        f"{counts}, with {info['counters']} counters. {info['complete_workloads']:,} workloads ran on every platform. "
        f"A cell, one workload on one platform, was measured {times}{spread}."
    )


def _facts(evaluation: Evaluation) -> dict[str, str]:
    """Return what the numbers depend on: table, fingerprint, seed, versions."""
    facts = evaluation.table
    return {
        "table": facts["path"],
        "fingerprint": facts["fingerprint"],
        **({"split": f"{evaluation.split}, {meaning.folds(evaluation)}"} if evaluation.split in SPLITS else {}),
        "seed": str(evaluation.seed),
        "made with": ", ".join(f"{name} {version}" for name, version in evaluation.versions.items()) or "not told",
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


def _marks(drawn: Drawn) -> list[list[Any]]:
    return [
        [round(mark.x, 4), round(mark.y, 4), mark.text]
        + ([round(mark.width, 4), round(mark.height, 4)] if mark.width else [])
        for mark in drawn.marks
    ]


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
