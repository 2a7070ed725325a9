"""``crossperf report``: evaluations, or a trained model, as a page."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from crossperf.cli.evaluations import RPV, SOURCES, evaluations_of, known_platforms
from crossperf.cli.options import NEW_FOLDER, REGISTRY, overwrite
from crossperf.cli.output import draw_into_files, say, tell, wrote


@click.command()
@SOURCES
@click.option("-o", "--output", metavar="DIR", type=NEW_FOLDER, required=True, help="The folder to make.")
@RPV
@REGISTRY
@overwrite("report", "DIR")
def report(sources: tuple[Path, ...], output: Path, rpv: str | None, registry: Path, overwrite: bool) -> None:
    """Make a page of one evaluation or several, or of a trained MODEL on the runs of TABLE.

    DIR holds index.html, which needs nothing beside it, and each figure as SVG and PNG. Several evaluations stand on
    one page, and the reader switches between them. Of a MODEL without a TABLE the page shows what it was trained on;
    beside evaluations, a TABLE is only checked to be the one evaluated.
    """
    from crossperf.report import FOLDER, PAGE, write
    from crossperf.report import sentences as meaning

    draw_into_files()
    FOLDER.refuse_unless_free(output, overwrite=overwrite)
    evaluations = evaluations_of(sources)
    options = ["--rpv", rpv] if rpv else []
    command = shlex.join(["crossperf", "report", *map(str, sources), *options, "-o", str(output)])
    write(
        evaluations,
        output,
        overwrite=overwrite,
        command=command if len(evaluations) > 1 or rpv or sources[0].is_dir() else None,
        platforms=known_platforms(evaluations, registry),
        rpv=rpv,
    )
    for evaluation in evaluations:
        tell(meaning.headline(evaluation))
        for caveat in evaluation.caveats:
            say(f"caveat{f' ({evaluation.split})' if len(evaluations) > 1 else ''}: {caveat}")
    wrote(output / PAGE)
