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
    except OSError as error:
        raise _stranger(path, error.strerror or "nothing that can be read") from error
    except (ValueError, TypeError) as error:
        raise _stranger(path, "a file that is no JSON object") from error
    if not {"format", "split"} <= facts.keys():
        raise _stranger(path, "JSON of another program, or of another command")
    return (Transfer if facts["split"] == "platform" else Evaluation).from_json(facts, str(path))


def _stranger(path: Path, what: str) -> CrossperfError:
    return CrossperfError(
        f"{path}: found {what}, expected a model folder or a result of 'crossperf evaluate --json'. Nothing was "
        "written.",
        path=str(path),
    )
