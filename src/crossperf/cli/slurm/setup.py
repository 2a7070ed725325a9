"""``crossperf slurm setup``: writes what a site installs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from crossperf.cli.options import PATH
from crossperf.cli.output import say, wrote
from crossperf.cli.slurm.options import DEFAULT, PARTITIONS, SCALE_LIMITS, site_of
from crossperf.errors import CrossperfError, some_of

if TYPE_CHECKING:
    from crossperf.schedule.slurm.site import Site


@click.command()
@click.option("-o", "--output", type=PATH, required=True, help="The folder: that of slurm.conf, or one to copy from.")
@PARTITIONS
@DEFAULT
@SCALE_LIMITS
@click.option("--no-tags", is_flag=True, help="Do not note the application and input in the job's AdminComment.")
@click.option("--module-only", is_flag=True, help="Write no job_submit.lua; the site has one of its own.")
@click.option("--overwrite", is_flag=True, help="Replace files that differ.")
def setup(
    output: Path,
    partitions: str | None,
    default: str | None,
    scale_limits: bool,
    no_tags: bool,
    module_only: bool,
    overwrite: bool,
) -> None:
    """Write what the controller needs into a folder: job_submit.lua, what it runs, and the partitions' platforms."""
    from crossperf.schedule.slurm import setup

    site, notes = _against_the_controller(site_of(partitions, default), default)
    folder = output.absolute()
    contents = setup.files(folder, site, scale_limits=scale_limits, tag_jobs=not no_tags)
    if module_only:
        del contents[setup.PLUGIN]
    folder.mkdir(parents=True, exist_ok=True)
    fresh = setup.write(folder, contents, overwrite=overwrite)
    click.echo(setup.what_to_do(folder, module_only))
    for note in notes:
        say(f"warning: {note}")
    for path in fresh:
        wrote(path)
    if not fresh:
        say(f"{folder} holds the same files already")


def _against_the_controller(site: Site, default: str | None) -> tuple[Site, list[str]]:
    """Return the site with the controller's own default partition, and what the controller knows better."""
    from crossperf.schedule.slurm import controller

    try:
        known = controller.partitions()
    except CrossperfError as error:
        return site, [f"{error} Whether the partitions exist was not checked."]
    names = [place.partition for place in site.places]
    missing = [name for name in names if name not in known]
    notes = [f"the controller has no partition {some_of(missing)}; it has {some_of(known, 20)}."] if missing else []
    its_own = next((name for name, is_default in known.items() if is_default), None)
    if its_own in names and default is None:
        return replace(site, default=its_own), notes
    if its_own is not None and its_own != site.default:
        notes.append(f"the default partition of the controller is {its_own}, not {site.default}.")
    return site, notes
