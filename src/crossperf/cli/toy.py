"""``crossperf toy``: a runs table drawn from a known law, for tests and first steps."""

from __future__ import annotations

from pathlib import Path

import click

from crossperf.cli.options import NEW_FILE, seed
from crossperf.cli.output import refuse_existing, wrote


@click.command()
@click.option("-o", "--output", type=NEW_FILE, required=True, help=".jsonl, .csv or .parquet")
@click.option("--apps", default=12, help="Applications.")
@click.option("--inputs", default=8, help="Inputs of each application.")
@click.option("--platforms", default=4, help="Platforms.")
@click.option("--repeats", default=3, help="Repeats of each input on each platform.")
@click.option("--noise", default=0.03, help="Standard deviation of log runtime.")
@seed("applications, inputs and noise: the same seed draws the same table")
def toy(output: Path, apps: int, inputs: int, platforms: int, repeats: int, noise: float, seed: int) -> None:
    """Write a runs table drawn from a known law, for tests and first steps."""
    from crossperf.datasets.toy import make_table

    refuse_existing(output)
    make_table(apps, inputs, platforms, repeats, noise, seed).write(output)
    wrote(output)
