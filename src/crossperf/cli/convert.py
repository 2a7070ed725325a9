"""``crossperf convert``: a model or a result that an earlier crossperf wrote, in today's format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from crossperf.cli.options import PATH
from crossperf.cli.output import refuse_existing, wrote
from crossperf.errors import CrossperfError

if TYPE_CHECKING:
    from crossperf.adaptation.result import Transfer
    from crossperf.evaluation import Evaluation


@click.command()
@click.argument("old", type=PATH)
@click.option("-o", "--output", metavar="NEW", type=PATH, required=True, help="Where the rewritten one goes.")
def convert(old: Path, output: Path) -> None:
    """Rewrite OLD, a model folder or what 'evaluate --json' wrote, in today's format.

    OLD stays as it is, and nothing that stands at NEW is replaced.
    """
    refuse_existing(output)
    if old.is_dir():
        from crossperf.model import store

        store.load(old).save(output)
    else:
        _result(old).write(output)
    wrote(output)


def _result(path: Path) -> Evaluation | Transfer:
    """Return what 'crossperf evaluate --json' wrote."""
    from crossperf.adaptation.result import Transfer
    from crossperf.evaluation import Evaluation

    try:
        facts = dict(json.loads(path.read_text(encoding="utf-8")))
        strange = "" if {"format", "split"} <= facts.keys() else "JSON of another program, or of another command"
    except OSError as error:
        strange = error.strerror or "nothing that can be read"
    except (ValueError, TypeError):
        strange = "a file that is no JSON object"
    if strange:
        expected = "a model folder or a result of 'crossperf evaluate --json'"
        raise CrossperfError(f"{path}: found {strange}, expected {expected}. Nothing was written.", path=str(path))
    return (Transfer if facts["split"] == "platform" else Evaluation).from_json(facts, str(path))
