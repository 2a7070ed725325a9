"""``crossperf report``: an evaluation, or a trained model, as a page."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from crossperf.cli.evaluations import SOURCE, TABLE, evaluation_of
from crossperf.cli.options import PATH, overwrite
from crossperf.cli.output import draw_into_files, say, tell, wrote


@click.command()
@SOURCE
@TABLE
@click.option("-o", "--output", metavar="DIR", type=PATH, required=True, help="The folder to make.")
@overwrite("report", "DIR")
def report(source: Path, table: Path | None, output: Path, overwrite: bool) -> None:
    """Make a page of an evaluation, or of a trained MODEL on the runs of TABLE.

    DIR holds index.html, which needs nothing beside it, and each figure as SVG and PNG. Of a MODEL without a TABLE
    the page shows what it was trained on; beside an evaluation, TABLE is only checked to be the one evaluated.
    """
    from crossperf.report import FOLDER, PAGE, write
    from crossperf.report import sentences as meaning

    draw_into_files()
    FOLDER.refuse_unless_free(output, overwrite=overwrite)
    evaluation = evaluation_of(source, table)
    command = ["crossperf", "report", str(source), *([str(table)] if table else []), "-o", str(output)]
    write(evaluation, output, overwrite=overwrite, command=shlex.join(command) if source.is_dir() else None)
    tell(meaning.headline(evaluation))
    for caveat in evaluation.caveats:
        say(f"caveat: {caveat}")
    wrote(output / PAGE)
