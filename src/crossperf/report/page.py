"""The report: a page with everything an evaluation holds, which needs nothing beside it, and its figures as files."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shlex
from collections.abc import Mapping
from importlib import resources
from pathlib import Path, PurePath
from typing import Any

from crossperf import __version__
from crossperf.display import to_html
from crossperf.errors import MissingDependencyError
from crossperf.evaluation.result import Evaluation
from crossperf.evaluation.scores import METRICS
from crossperf.files import Folder
from crossperf.report import sentences, tables
from crossperf.report.figures import FIGURES, Drawn, NothingToDraw, colours
from crossperf.report.inline import inline

try:
    from jinja2 import Environment
    from markupsafe import Markup
except ImportError as error:
    raise MissingDependencyError("The report needs Jinja2: pip install 'crossperf[report]'") from error

PAGE = "index.html"
_FIGURES, _KINDS = "figures", ("svg", "png")
#: Distinguishes a page of ours from anybody else's.
GENERATOR = "crossperf report"
_MOVED = ("line-", "dot-")  # how the parts of a drawing are called that the script moves
_COMMAND = "crossperf report evaluation.json -o report"
#: What stands for each neutral ink of a drawing, so that one drawing serves light and dark.
_INKS = {colours.INK: "var(--ink)", colours.FAINT: "var(--quiet)"}


def _ours(folder: Path) -> bool:
    """Tell whether a folder holds a report and nothing else."""
    page, figures = folder / PAGE, folder / _FIGURES
    if {path.name for path in folder.iterdir()} - {PAGE, _FIGURES} or not page.is_file():
        return False
    if figures.exists() and any(path.suffix.removeprefix(".") not in _KINDS for path in figures.iterdir()):
        return False
    with page.open(encoding="utf-8", errors="replace") as file:
        return f'<meta name="generator" content="{GENERATOR}' in file.read(2000)  # the head of a page


FOLDER = Folder("report", _ours)


def write(
    evaluation: Evaluation, folder: str | os.PathLike[str], *, overwrite: bool = False, command: str | None = None
) -> None:
    """Write the report of an evaluation; the folder appears whole or not at all.

    Parameters
    ----------
    overwrite
        Replace a report that stands there; anything else is never replaced.
    command
        The command line that makes it again, for the page to show.
    """
    with FOLDER.whole(folder, overwrite=overwrite) as part:
        (part / PAGE).write_text(render(evaluation, command), encoding="utf-8")
        (part / _FIGURES).mkdir()
        for name, drawn in _draw(evaluation, bare=False).items():
            if isinstance(drawn, Drawn):
                for kind in _KINDS:
                    (part / _FIGURES / f"{name}.{kind}").write_bytes(drawn.as_bytes(kind))


def render(evaluation: Evaluation, command: str | None = None) -> str:
    """Return the page of an evaluation.

    Parameters
    ----------
    command
        The command line that makes the page; ``None`` stands for that of an evaluation's file.
    """
    drawings, choice = _draw(evaluation, bare=True), None
    if isinstance(drawings["vector"], Drawn):
        from crossperf.report.figures.vector import chooser  # as matplotlib, which it takes, has just drawn

        choice = chooser(evaluation)
        drawings["vector"] = choice.drawn
    drawn = {name: own for name, own in drawings.items() if isinstance(own, Drawn)}
    tooltips = {name: _tooltips(own) for name, own in drawn.items()}
    script, style = _read("script.js"), _read("style.css")
    template = Environment(autoescape=True).from_string(_read("template.html"))
    return template.render(
        evaluation=evaluation,
        figures=FIGURES,
        drawings=drawings,
        svgs={name: _svg(name, own) for name, own in drawn.items()},
        metrics=METRICS,
        sentences=sentences,
        tables=tables,
        to_html=lambda view, identity: Markup(to_html(view, identity)),  # noqa: S704 - it escapes what it writes
        table_name=PurePath(evaluation.table.path).name,
        quote=shlex.quote,
        left_out_of_choice=choice.left_out if choice else "",
        commands=[*filter(None, [sentences.command(evaluation)]), command or _COMMAND],
        data=_json({"tooltips": tooltips, "chooser": choice.facts if choice else None}),
        generator=f"{GENERATOR} {__version__}",
        script=Markup(script),  # noqa: S704 - our own files, not data
        style=Markup(style),  # noqa: S704
        script_hash="sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def _draw(evaluation: Evaluation, *, bare: bool) -> dict[str, Drawn | NothingToDraw]:
    """Return every figure of an evaluation by name, or the reason why there is none."""
    drawings: dict[str, Drawn | NothingToDraw] = {}
    for name, plot in FIGURES.items():
        try:
            drawings[name] = plot(evaluation, bare=bare)
        except NothingToDraw as reason:
            drawings[name] = reason
    return drawings


def _svg(name: str, drawn: Drawn) -> Markup:
    svg = inline(drawn.as_bytes("svg").decode("utf-8"), f"{name}-", _INKS, _MOVED)
    labels = f'<svg role="img" aria-labelledby="{name}-title" aria-describedby="{name}-caption"'
    return Markup(svg.replace("<svg", labels, 1))  # noqa: S704 - matplotlib escapes what it writes, and so does `inline`


def _tooltips(drawn: Drawn) -> list[list[Any]]:
    return [
        [round(own.x, 4), round(own.y, 4), own.text]
        + ([round(own.width, 4), round(own.height, 4)] if own.width else [])
        for own in drawn.tooltips
    ]


def _json(facts: Mapping[str, Any]) -> Markup:
    """Return facts as JSON that no text in them can lead out of its ``<script>``."""
    text = json.dumps(facts, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # noqa: S704 - just made safe


def _read(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
