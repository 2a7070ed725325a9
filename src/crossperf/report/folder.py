"""The report as a folder: ``index.html``, and each figure as SVG and PNG."""

from __future__ import annotations

import os
from pathlib import Path

from crossperf.evaluation.result import Evaluation
from crossperf.files import Folder
from crossperf.report.figures import Drawn
from crossperf.report.page import GENERATOR, draw, render

PAGE = "index.html"
_FIGURES = "figures"
_KINDS = ("svg", "png")
#: The head of a page holds what tells that it is ours.
_HEAD = 2000


def _ours(folder: Path) -> bool:
    """Tell whether a folder holds a report and nothing else."""
    page, figures = folder / PAGE, folder / _FIGURES
    if {path.name for path in folder.iterdir()} - {PAGE, _FIGURES} or not page.is_file():
        return False
    if figures.exists() and any(path.suffix.removeprefix(".") not in _KINDS for path in figures.iterdir()):
        return False
    with page.open(encoding="utf-8", errors="replace") as file:
        return f'<meta name="generator" content="{GENERATOR}' in file.read(_HEAD)


FOLDER = Folder("report", _ours)


def write(
    evaluation: Evaluation,
    folder: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    command: str | None = None,
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
        for name, drawn in draw(evaluation, bare=False).items():
            if isinstance(drawn, Drawn):
                for kind in _KINDS:
                    (part / _FIGURES / f"{name}.{kind}").write_bytes(drawn.as_bytes(kind))
