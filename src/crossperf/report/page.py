"""The report: a page with everything that evaluations hold, which needs nothing beside it, and its figures as files."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shlex
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path, PurePath
from typing import Any

from crossperf import __version__
from crossperf.display import to_html
from crossperf.errors import MissingDependencyError, SettingsError
from crossperf.evaluation.result import Evaluation
from crossperf.evaluation.scores import METRICS
from crossperf.files import Folder
from crossperf.platforms import Platform, in_a_line
from crossperf.report import sentences, tables
from crossperf.report.figures import FIGURES
from crossperf.report.worst import worst

try:
    from jinja2 import Environment
    from markupsafe import Markup

    from crossperf.report.key import machines
    from crossperf.report.views import View, all_tooltips, files_of, views_of
except ImportError as error:
    raise MissingDependencyError("The report needs Jinja2: pip install 'crossperf[report]'") from error

PAGE = "index.html"
_FIGURES, _KINDS = "figures", ("svg", "png")
#: Distinguishes a page of ours from anybody else's.
GENERATOR = "crossperf report"
_COMMAND = "crossperf report evaluation.json -o report"


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
    evaluations: Evaluation | Sequence[Evaluation],
    folder: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    command: str | None = None,
    platforms: Sequence[Platform] = (),
    rpv: str | None = None,
) -> None:
    """Write the report of one evaluation or of several; the folder appears whole or not at all.

    Parameters
    ----------
    evaluations
        Several stand on one page, and a reader switches between them: usually those of several splits.
    overwrite
        Replace a report that stands there; anything else is never replaced.
    command
        The command line that makes it again, for the page to show.
    platforms
        What is known of the platforms, to describe them by.
    rpv
        What times are relative to in figures of them: ``fastest``, ``slowest`` or ``source``; ``None`` leaves that to
        each figure.
    """
    views = views_of(_several(evaluations), rpv)
    with FOLDER.whole(folder, overwrite=overwrite) as part:
        (part / PAGE).write_text(_render(views, command, platforms), encoding="utf-8")
        (part / _FIGURES).mkdir()
        for name, drawn in files_of(views):
            for kind in _KINDS:
                (part / _FIGURES / f"{name}.{kind}").write_bytes(drawn.as_bytes(kind))


def render(
    evaluations: Evaluation | Sequence[Evaluation],
    command: str | None = None,
    *,
    platforms: Sequence[Platform] = (),
    rpv: str | None = None,
) -> str:
    """Return the page of one evaluation or of several.

    Parameters
    ----------
    command
        The command line that makes the page; ``None`` stands for that of an evaluation's file.
    platforms
        What is known of the platforms, to describe them by.
    rpv
        What times are relative to in figures of them; ``None`` leaves that to each figure.
    """
    return _render(views_of(_several(evaluations), rpv), command, platforms)


def _several(evaluations: Evaluation | Sequence[Evaluation]) -> Sequence[Evaluation]:
    several = [evaluations] if isinstance(evaluations, Evaluation) else list(evaluations)
    if not several:
        raise SettingsError("evaluations: found none, expected one or more.", argument="evaluations")
    return several


def _render(views: Sequence[View], command: str | None, platforms: Sequence[Platform]) -> str:
    script, style = _read("script.js"), _read("style.css")
    template = Environment(autoescape=True).from_string(_read("template.html"))
    names = list(dict.fromkeys(PurePath(view.evaluation.table.path).name for view in views))
    evaluate = [sentences.command(view.evaluation, _file(views, view)) for view in views]
    return template.render(
        views=views,
        models=list(dict.fromkeys(model for view in views for model in view.models)),
        figures=FIGURES,
        metrics=METRICS,
        sentences=sentences,
        tables=tables,
        worst=worst,
        machines=machines,
        known={platform.name: line for platform in platforms if (line := in_a_line(platform))},
        to_html=lambda view, identity: Markup(to_html(view, identity)),  # noqa: S704 - it escapes what it writes
        table_name=", ".join(names[:3]) + (" and others" if len(names) > 3 else ""),
        quote=shlex.quote,
        commands=[*filter(None, evaluate), command or _command(views)],
        data=_json({**all_tooltips(views), "views": [view.facts for view in views]}),
        generator=f"{GENERATOR} {__version__}",
        script=Markup(script),  # noqa: S704 - our own files, not data
        style=Markup(style),  # noqa: S704
        script_hash="sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def _file(views: Sequence[View], view: View) -> str:
    return "evaluation.json" if len(views) == 1 else f"{view.key}.json"


def _command(views: Sequence[View]) -> str:
    return (
        _COMMAND
        if len(views) == 1
        else shlex.join(["crossperf", "report", *(_file(views, view) for view in views), "-o", "report"])
    )


def _json(facts: Mapping[str, Any]) -> Markup:
    """Return facts as JSON that no text in them can lead out of its ``<script>``."""
    text = json.dumps(facts, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # noqa: S704 - just made safe


def _read(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
