"""``crossperf slurm advise``: submits a job to the partition where it should run."""

from __future__ import annotations

import getpass
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from crossperf.cli.options import PATH
from crossperf.cli.output import say
from crossperf.cli.slurm.options import POLICY, SCALE_LIMITS
from crossperf.errors import CrossperfError, SettingsError

if TYPE_CHECKING:
    from crossperf.schedule.slurm.advise import Advice
    from crossperf.schedule.slurm.submission import Submission


@click.command(context_settings={"allow_interspersed_args": False})
@click.option("--table", "table_file", type=PATH, envvar="CROSSPERF_TABLE", help="The table of predictions.")
@POLICY
@click.option("--deadline", "deadline_s", type=float, help="Seconds from now until which the job should have ended.")
@SCALE_LIMITS
@click.option("--dry-run", is_flag=True, help="Print the command instead of running it.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- sbatch ARGS...")
def advise(
    table_file: Path | None,
    policy: str | None,
    deadline_s: float | None,
    scale_limits: bool,
    dry_run: bool,
    command: tuple[str, ...],
) -> int:
    """Submit a job to the partition where it should run, by a table and the queues as they are now.

    What sbatch prints and its exit status come through untouched. Whatever keeps this from choosing, the job is
    submitted as it was written.
    """
    from crossperf.schedule.slurm import advise, submission

    sbatch, *arguments = command
    if Path(sbatch).name != "sbatch":
        raise SettingsError(f"advise: found {sbatch!r}, expected sbatch and its arguments after --.")
    asked = submission.parse(arguments, os.environ)
    stdin = sys.stdin.buffer.read() if asked.takes_stdin else None
    words = list(command)
    try:
        asked = submission.parse(arguments, os.environ, stdin)
        advice = _advice(asked, table_file, policy, deadline_s, stdin, sbatch)
        words = advise.command(sbatch, asked, advice, scale_limits=scale_limits)
        say(f"crossperf: {advice.reason}{'.' if advice.partition else '; submitted as it is.'}")
    except CrossperfError as error:
        say(f"crossperf: {error} Submitted as it is.")
    except Exception as error:  # a policy of the user's own may raise anything, and the job must not be lost for it
        say(f"crossperf: no advice ({type(error).__name__}: {error}). Submitted as it is.")
    if dry_run:
        click.echo(shlex.join(words))
        return 0
    status = subprocess.run(words, input=stdin, check=False).returncode
    return status if status >= 0 else 128 - status


def _advice(
    asked: Submission,
    table_file: Path | None,
    policy: str | None,
    deadline_s: float | None,
    stdin: bytes | None,
    sbatch: str,
) -> Advice:
    import numpy as np

    from crossperf.schedule import policies
    from crossperf.schedule.slurm import table
    from crossperf.schedule.slurm.advise import advise

    if table_file is None:
        raise SettingsError("advise: found no table, expected --table FILE or the variable CROSSPERF_TABLE.")
    known = table.read(table_file)
    if not policy and known.policy not in policies.POLICIES:
        # Data must not decide which program is run: it might be one of this folder that only bears the name.
        raise SettingsError(f"advise: {table_file} was made by {known.policy!r}, expected --policy to name it as well.")
    chosen, user = policies.make(policy or known.policy), getpass.getuser()
    rng = np.random.default_rng()
    return advise(asked, known, chosen, user, rng, stdin=stdin, deadline_s=deadline_s, sbatch=sbatch)
