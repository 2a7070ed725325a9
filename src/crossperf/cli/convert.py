"""``crossperf convert``: a model or a result that an earlier crossperf wrote, in today's format."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from crossperf.cli.options import NEW_FOLDER, PATH
from crossperf.cli.output import refuse_existing, wrote
from crossperf.documents import MEGABYTE, parse, read_bytes
from crossperf.errors import CrossperfError

if TYPE_CHECKING:
    from crossperf.adaptation.result import Transfer
    from crossperf.evaluation import Evaluation


@click.command()
@click.argument("old", type=PATH)
@click.option("-o", "--output", metavar="NEW", type=NEW_FOLDER, required=True, help="Where the rewritten one goes.")
def convert(old: Path, output: Path) -> None:
    """Rewrite OLD, a model folder or what 'evaluate --json' wrote, in today's format.

    OLD stays as it is, and nothing that stands at NEW is replaced.
    """
    refuse_existing(output)
    if old.is_dir():
        from crossperf.model import store

        # Whoever converts a folder of before digests knows where it comes from.
        store.load(old, trust=True).save(output)
    else:
        _result(old).write(output)
    wrote(output)


def _result(path: Path) -> Evaluation | Transfer:
    """Return what 'crossperf evaluate --json' wrote."""
    from crossperf.adaptation.result import Transfer
    from crossperf.evaluation import Evaluation

    try:
        facts = parse(read_bytes(path, 1024 * MEGABYTE))
        known = isinstance(facts, dict) and {"format", "split"} <= facts.keys()
        strange = "" if known else "JSON of another program, or of another command"
    except OSError as error:
        strange = error.strerror or "nothing that can be read"
    except ValueError as error:
        strange = f"a file that is not JSON ({error})"
    if strange:
        expected = "a model folder or a result of 'crossperf evaluate --json'"
        raise CrossperfError(f"{path}: found {strange}, expected {expected}. Nothing was written.", path=str(path))
    return (Transfer if facts["split"] == "platform" else Evaluation).from_json(facts, str(path))
