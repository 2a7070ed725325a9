"""One command per stage, one sentence per error: the result first, then doubts, then the files written."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from crossperf import __version__
from crossperf.cli import adapting, collecting, learning, reporting, schedule, slurm, tables
from crossperf.errors import CrossperfError


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; what goes wrong is one sentence and an exit code."""
    try:
        status = commands.main(arguments, prog_name="crossperf", standalone_mode=False)
    except CrossperfError as error:
        _fail(str(error))
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        sys.exit(error.exit_code)
    except click.ClickException as error:
        _fail(f"{error.format_message()} 'crossperf --help' and 'crossperf COMMAND --help' tell more.", error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        _fail("interrupted; nothing was written.", status=130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(141)
    except OSError as error:
        _fail(f"{error.filename or 'a file'}: {error.strerror or error}.")
    else:
        sys.exit(status if isinstance(status, int) else 0)


def _fail(sentence: str, status: int = 1) -> None:
    click.echo(f"error: {sentence}", err=True)
    sys.exit(status)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, package_name="crossperf")
def commands() -> None:
    """I ran this application here; how fast would it be over there?"""


for command in (
    collecting.profile,
    collecting.import_,
    collecting.platforms,
    collecting.campaign,
    tables.runs,
    learning.evaluate,
    learning.train,
    learning.predict,
    adapting.adapt,
    reporting.report,
    reporting.plot,
    schedule.schedule,
    slurm.slurm,
    learning.toy,
    learning.demo,
):
    commands.add_command(command)
