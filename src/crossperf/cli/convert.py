"""``crossperf convert``: a model or a result that an earlier crossperf wrote, in today's format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from crossperf.cli.options import PATH
from crossperf.cli.output import refuse_existing, wrote
from crossperf.errors import CrossperfError


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

        store.save(store.load(old), output)
    elif _split(old) == "platform":
        _convert_transfer(old, output)
    else:
        from crossperf.evaluation import read

        read(old).write(output)
    wrote(output)


def _split(path: Path) -> str:
    """Return the split of the evaluation that a file holds."""
    facts = _facts(path)
    if "format" not in facts or "split" not in facts:
        raise _stranger(path, "JSON of another program, or of another command")
    return str(facts["split"])


def _facts(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise _stranger(path, error.strerror or "nothing that can be read") from error
    except (ValueError, TypeError) as error:
        raise _stranger(path, "a file that is no JSON object") from error


def _convert_transfer(path: Path, output: Path) -> None:
    """Write what ``evaluate --split platform`` wrote."""
    from crossperf.adaptation.result import Transfer

    Transfer.from_json(_facts(path), str(path)).write(output)


def _stranger(path: Path, what: str) -> CrossperfError:
    return CrossperfError(
        f"{path}: found {what}, expected a model folder or a result of 'crossperf evaluate --json'. Nothing was "
        "written.",
        path=str(path),
    )
