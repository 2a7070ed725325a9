"""What ``report`` and ``plot`` show: evaluations from files, or a trained model on a table of runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from crossperf.cli.options import PATH
from crossperf.errors import CrossperfError, some_of

if TYPE_CHECKING:
    from crossperf.evaluation.result import Evaluation
    from crossperf.platforms import Platform

SOURCE = click.argument("source", metavar="EVALUATION.json|MODEL", type=PATH)
SOURCES = click.argument("sources", metavar="EVALUATION.json...|MODEL [TABLE]", type=PATH, nargs=-1, required=True)
TABLE = click.argument("table", metavar="[TABLE]", required=False, type=PATH)
RPV = click.option(
    "--rpv",
    type=click.Choice(["fastest", "slowest", "source"]),
    help="What times are relative to in figures: the fastest or slowest platform, or the one profiled on.  "
    "[each figure's own]",
)


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
    from crossperf.runs import read_runs

    evaluation = read(source)
    expected = evaluation.table.fingerprint
    fingerprint = read_runs(table).fingerprint if table else expected
    if fingerprint != expected:
        raise CrossperfError(
            f"{table}: its runs have the fingerprint {fingerprint}, expected {expected}, those that {source} was made "
            f"from ({evaluation.table.path}). Evaluate this table, or leave it out.",
            found=fingerprint,
            expected=expected,
        )
    return evaluation


def evaluations_of(sources: Sequence[Path]) -> list[Evaluation]:
    """Return the evaluations of files, or that of a trained model; a table may stand last."""
    folders = [path for path in sources if path.is_dir()]
    if folders:
        if folders[0] != sources[0] or len(sources) > 2:
            raise CrossperfError(
                f"{folders[0]}: found a model's folder among {len(sources)} arguments, expected MODEL [TABLE], or "
                "evaluations alone. Make a report of its own for the model."
            )
        return [evaluation_of(sources[0], sources[1] if len(sources) > 1 else None)]
    files = list(sources)
    # A table is known by its suffix: an evaluation is always JSON, and JSON lines are not.
    tables = [path for path in files if path.suffix.lower() != ".json" and path != files[0]]
    if len(tables) > 1 or (tables and tables[0] != files[-1]):
        raise CrossperfError(
            f"{some_of([str(path) for path in tables])}: found more than evaluations (.json) and a last TABLE, "
            "expected EVALUATION.json... [TABLE]. Leave the others out."
        )
    return [evaluation_of(path, tables[0] if tables else None) for path in files if path not in tables]


def known_platforms(evaluations: Sequence[Evaluation], registry: Path) -> list[Platform]:
    """Return what is known of the platforms of evaluations: from the user's file, and of the testbed's from its own.

    The testbed's facts count only where all platforms carry its names: a stranger's ``h200`` may be another machine.
    """
    from crossperf.datasets import testbed
    from crossperf.platforms import read

    names = {name for own in evaluations for name in own.table.platforms}
    shipped = {platform.name: platform for platform in testbed.platforms()}
    known = shipped if names <= {*shipped} else {}
    mine = {platform.name: platform for platform in read(registry)}
    return [platform for name, platform in {**known, **mine}.items() if name in names]
