"""``crossperf campaign``: a list of inputs, timed and counted on this machine or on the nodes of a site."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crossperf.cli.group import GroupWithDefault
from crossperf.cli.options import NEW_FOLDER, PATH, FiniteRange
from crossperf.cli.output import JSON, say, tell, write_facts, wrote
from crossperf.errors import CollectError, SettingsError, several
from crossperf.files import whole
from crossperf.records import OK

if TYPE_CHECKING:
    from crossperf.campaign.spec import CountSet, Mode, Spec

Names = tuple[str, ...]


@click.group(cls=GroupWithDefault, default="run")
def campaign() -> None:
    """Time and count a list of inputs, on this machine or through Slurm on the nodes of a site.

    'crossperf campaign SPEC -o DIR' is short for 'crossperf campaign run SPEC -o DIR'.
    """


@campaign.command()
@click.argument("spec_file", metavar="SPEC", type=PATH)
@click.option("-o", "--output", type=NEW_FOLDER, help="The folder of the campaign.")
@click.option("--platform", "names", multiple=True, help="Platforms of SPEC to time here; may be repeated.")
@click.option("--counts", "count_names", multiple=True, help="Counts of SPEC to take here; may be repeated.")
@click.option("--resume", is_flag=True, help="Go on with the campaign that OUTPUT holds.")
@click.option("--visits", type=click.IntRange(1), help="Visits of each input, in place of what SPEC has.")
@click.option("--jobs", default=1, type=click.IntRange(1), help="Countings under valgrind at a time.")
@click.option("--minutes", type=FiniteRange(0, min_open=True), help="Stop after this time; go on with --resume.")
@click.option("--site", "site_file", metavar="SITE", type=PATH, help="Measure through Slurm, as SITE (TOML) tells.")
@click.option("--check", is_flag=True, help="With --site: ask the cluster whether it would take the jobs, no more.")
@click.option("--detach", is_flag=True, help="With --site: submit, leave a driver in the background, and return.")
@click.option("--retry-failed", "retry", is_flag=True, help="With --site: measure inputs that failed once more.")
def run(
    spec_file: Path,
    output: Path | None,
    names: Names,
    count_names: Names,
    resume: bool,
    visits: int | None,
    jobs: int,
    minutes: float | None,
    site_file: Path | None,
    check: bool,
    detach: bool,
    retry: bool,
) -> int:
    """Time and count the inputs of SPEC, and write OUTPUT/runs.jsonl.

    Without --platform and --counts, all platforms of SPEC and their counts. Inputs are visited in rounds of random
    order, on all platforms in turn and in other processes each time. Every result is kept as it comes: a campaign
    that was killed goes on with --resume, which completes the rounds that were cut off and adds new ones up to the
    number of visits.

    With --site, each platform is an array of jobs in its partition of Slurm. A driver that was killed goes on when the
    same command is started again; jobs do not wait for it.
    """
    from crossperf import campaign as campaigns

    spec = campaigns.read(spec_file)
    spec = replace(spec, visits=visits or spec.visits)
    modes, sets = _chosen(spec, names, count_names)
    _refuse_odd(site_file, output, check=check, detach=detach, retry=retry, minutes=minutes)
    if site_file is not None:
        from crossperf.cli import campaign_site

        chosen = campaign_site.SiteRequest(
            spec_file, site_file, output, spec, modes, [own.name for own in sets], visits
        )
        return chosen.check() if check else chosen.run(detach=detach, retry=retry)
    if output is None:
        raise SettingsError("--output: found none, expected the folder of the campaign.")
    if output.exists() and any(own.name != campaigns.LOCK for own in output.iterdir()) and not resume:
        raise CollectError(f"{output}: holds a campaign already. Go on with it by --resume, or choose another folder.")
    output.mkdir(parents=True, exist_ok=True)
    until = None if minutes is None else time.monotonic() + 60.0 * minutes
    with campaigns.alone(output):
        status = _measure(spec, modes, sets, output, jobs, until)
        write_runs(spec, output)
    return status


def _chosen(spec: Spec, names: Names, count_names: Names) -> tuple[list[Mode], list[CountSet]]:
    modes = [spec.mode(name) for name in names or ([] if count_names else spec.modes)]
    if unknown := [name for name in count_names if name not in spec.counts]:
        raise SettingsError(f"--counts: found {unknown[0]!r}, expected one of {', '.join(spec.counts)}.")
    return modes, [spec.counts[name] for name in count_names or ([] if names else spec.counts)]


def _refuse_odd(site: Path | None, output: Path | None, **options: Any) -> None:
    if site is None:
        for name in ("check", "detach", "retry"):
            if options[name]:
                flag = {"retry": "retry-failed"}.get(name, name)
                raise SettingsError(
                    f"--{flag}: found without --site, expected a campaign on a site. Add --site SITE.toml."
                )
    elif options["minutes"] is not None:
        raise SettingsError("--minutes: found beside --site, expected one of the two; time limits stand in SITE.")
    elif output is None and not options["check"]:
        raise SettingsError("--output: found none, expected the folder of the campaign.")


def _measure(spec: Spec, modes: list[Mode], sets: list[CountSet], output: Path, jobs: int, until: float | None) -> int:
    from crossperf import campaign as campaigns

    try:
        if modes:
            campaigns.visit(spec, modes, output, say, until)
        for counts in sets:
            campaigns.count(spec, counts, output, jobs, say, until)
    except KeyboardInterrupt:
        say(f"interrupted; what was measured is kept in {output}. Go on with --resume.")
        return 130
    return 0


def write_runs(spec: Spec, output: Path) -> None:
    """Write the runs of all that was measured so far, and tell how many there are."""
    from crossperf import campaign as campaigns
    from crossperf.runs.jsonl import line

    runs = campaigns.assemble(spec, output)
    with whole(output / "runs.jsonl") as part:
        part.write_text("".join(map(line, runs)), encoding="utf-8")
    failed = sum(run.status != OK for run in runs)
    cells = len({(run.app, run.input, run.platform) for run in runs})
    of_all = len(spec.works) * len(spec.modes)
    tell(f"{several(cells, 'cell')} of {of_all:,}, {several(len(runs), 'run')}, {failed} failed")
    wrote(output / "runs.jsonl")


@campaign.command()
@click.argument("folder", metavar="DIR", type=PATH)
@JSON
def status(folder: Path, json_file: Path | None) -> int:
    """Tell how far the campaign of DIR on a site is: inputs done, running, pending and failed, by platform."""
    from crossperf.cli import campaign_site

    facts = campaign_site.status(folder)
    write_facts(json_file, lambda: facts)
    return 0


@campaign.command()
@click.argument("folder", metavar="DIR", type=PATH)
def cancel(folder: Path) -> int:
    """Cancel the jobs of the campaign of DIR; what was measured is kept, what was not is named as failed."""
    from crossperf.cli import campaign_site

    return campaign_site.cancel(folder)
