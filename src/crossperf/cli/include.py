"""``crossperf include``: where the header that marks a region of a C or C++ program lies."""

from __future__ import annotations

import click

from crossperf.cli.output import tell
from crossperf.collect.mark import include_path


@click.command(epilog='Such as: cc -I"$(crossperf include)" app.c')
def include() -> None:
    """Print the folder of crossperf.h, for a compiler's -I."""
    tell(include_path())
