"""Commands for a site with Slurm: what to install, the table of predictions, advice, and what finished jobs teach."""

from __future__ import annotations

import click

from crossperf.cli.slurm import advise, learn, setup, table


@click.group()
def slurm() -> None:
    """Place the jobs of a Slurm site: set it up, write its table, advise a submission, learn from finished jobs."""


for command in (setup.setup, table.table, advise.advise, learn.learn):
    slurm.add_command(command)
