"""``crossperf plot``: one figure of an evaluation, or of a trained model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from crossperf.cli.completion import completing, figures, models
from crossperf.cli.evaluations import RPV, SOURCE, TABLE, evaluation_of
from crossperf.cli.options import NEW_FILE
from crossperf.cli.output import draw_into_files, tell, wrote
from crossperf.report.figures import FIGURES, plot_named
from crossperf.report.figures.drawn import refuse_unless_figure

_QUESTIONS = "\n".join(f"  {name:14}{figure.question}" for name, figure in FIGURES.items())


@click.command(epilog=f"\b\nFigures:\n{_QUESTIONS}")
@click.argument("figure", shell_complete=completing(figures))
@SOURCE
@TABLE
@click.option("-o", "--output", metavar="FILE", type=NEW_FILE, required=True, help=".svg, .png or .pdf")
@click.option("--app", help="The application to show.")
@click.option("--model", help="The model to show.", shell_complete=completing(models))
@RPV
def plot(figure: str, source: Path, table: Path | None, output: Path, **asked: str | None) -> None:
    """Draw one FIGURE of an evaluation, or of a trained MODEL on the runs of TABLE."""
    chosen: dict[str, Any] = {name: value for name, value in asked.items() if value is not None}
    draw_into_files()
    refuse_unless_figure(output)
    drawn = plot_named(figure)(evaluation_of(source, table), **chosen)
    drawn.save(output)
    tell(drawn.caption)
    wrote(output)
