"""What ``report`` and ``plot`` show: an evaluation from a file, or a trained model on a table of runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from crossperf.cli.options import PATH
from crossperf.errors import CrossperfError

if TYPE_CHECKING:
    from crossperf.evaluation.result import Evaluation

SOURCE = click.argument("source", metavar="EVALUATION.json|MODEL", type=PATH)
TABLE = click.argument("table", metavar="[TABLE]", required=False, type=PATH)


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
