"""What the commands for Slurm share: their common options, and the site that these name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from crossperf.errors import SettingsError

if TYPE_CHECKING:
    from crossperf.schedule.slurm.site import Site

PARTITIONS = click.option(
    "--partitions",
    metavar="P=PLATFORM,...|FILE",
    envvar="CROSSPERF_PARTITIONS",
    help="The platform of each partition: cpu=epyc-2,gpu=h200, or a JSON or CSV file of them.",
)
DEFAULT = click.option("--default", metavar="PARTITION", help="The partition that jobs fall to without any advice.")
POLICY = click.option("--policy", help="How to choose: a policy's name or FILE.py:FUNCTION.")
SCALE_LIMITS = click.option(
    "--scale-limits", is_flag=True, help="Scale the time limit of a job that is sent elsewhere."
)


def site_of(partitions: str | None, default: str | None = None) -> Site:
    """Return the site that ``--partitions`` and ``--default`` name."""
    from crossperf.schedule.slurm.site import Site

    if not partitions:
        raise SettingsError(
            "--partitions: found nothing, expected partition=platform,... or a file of them; 'crossperf slurm setup' "
            "writes crossperf-partitions.json."
        )
    return Site.of(partitions, default)
