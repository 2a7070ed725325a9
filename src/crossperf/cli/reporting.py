"""Commands that show an evaluation: as a page, or as one figure."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from crossperf.cli.words import say, wrote
from crossperf.errors import CrossperfError
from crossperf.report.figures import FIGURES, plot_named

if TYPE_CHECKING:
    from crossperf.evaluation.result import Evaluation

SOURCE = click.argument("source", metavar="EVALUATION.json|MODEL", type=click.Path(path_type=Path))
TABLE = click.argument("table", metavar="[TABLE]", required=False, type=click.Path(path_type=Path))


@click.command()
@SOURCE
@TABLE
@click.option(
    "-o", "--output", metavar="DIR", type=click.Path(path_type=Path), required=True, help="The folder to make."
)
@click.option("--overwrite", is_flag=True, help="Replace the report that stands at DIR.")
def report(source: Path, table: Path | None, output: Path, overwrite: bool) -> None:
    """Make a page of an evaluation, or of a trained MODEL on the runs of TABLE.

    DIR holds index.html, which needs nothing beside it, and each figure as SVG and PNG. Of a MODEL without a TABLE
    the page shows what it was trained on; beside an evaluation, TABLE is only checked to be the one evaluated.
    """
    from crossperf.report import FOLDER, PAGE, write
    from crossperf.report import sentences as meaning

    FOLDER.refuse_unless_free(output, overwrite=overwrite)
    evaluation = evaluation_of(source, table)
    asked = ["crossperf", "report", str(source), *([str(table)] if table else []), "-o", str(output)]
    write(evaluation, output, overwrite=overwrite, command=shlex.join(asked) if source.is_dir() else None)
    click.echo(meaning.headline(evaluation))
    for caveat in evaluation.caveats:
        say(f"caveat: {caveat}")
    wrote(output / PAGE)


@click.command(epilog="\b\nFigures:\n" + "\n".join(f"  {name:14}{figure.question}" for name, figure in FIGURES.items()))
@click.argument("figure")
@SOURCE
@TABLE
@click.option(
    "-o", "--output", metavar="FILE", type=click.Path(path_type=Path), required=True, help=".svg, .png or .pdf"
)
@click.option("--app", help="The application to show.")
@click.option("--model", help="The model to show.")
def plot(figure: str, source: Path, table: Path | None, output: Path, app: str | None, model: str | None) -> None:
    """Draw one FIGURE of an evaluation, or of a trained MODEL on the runs of TABLE."""
    chosen = {name: value for name, value in (("app", app), ("model", model)) if value is not None}
    drawn = plot_named(figure)(evaluation_of(source, table), bare=False, **chosen)
    drawn.save(output)
    click.echo(drawn.caption)
    wrote(output)


def evaluation_of(source: Path, table: Path | None) -> Evaluation:
    """Return the evaluation of a file, or of a trained model on a table of runs."""
    if source.is_dir():
        from crossperf.evaluation.trained import assess
        from crossperf.model import store

        return assess(store.load(source), table)
    if not source.exists():
        raise CrossperfError(
            f"{source}: no such file or folder, expected an evaluation or a model. 'crossperf evaluate --json' and "
            "'crossperf train' make them."
        )
    from crossperf.evaluation import read

    evaluation = read(source)
    if table is not None:
        _refuse_another(evaluation, source, table)
    return evaluation


def _refuse_another(evaluation: Evaluation, source: Path, table: Path) -> None:
    """Raise unless an evaluation was made from the runs of this table."""
    from crossperf.runs.table import read

    found, expected = read(table).fingerprint, evaluation.table.fingerprint
    if found != expected:
        raise CrossperfError(
            f"{table}: its runs have the fingerprint {found}, expected {expected}, those that {source} was made from "
            f"({evaluation.table.path}). Evaluate this table, or leave it out.",
            found=found,
            expected=expected,
        )
