"""``crossperf campaign``: a list of inputs, timed and counted on this machine."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import click

from crossperf.cli.options import NEW_FOLDER, PATH, FiniteRange
from crossperf.cli.output import say, tell, wrote
from crossperf.errors import CollectError, SettingsError, several
from crossperf.files import whole
from crossperf.records import OK

Names = tuple[str, ...]


@click.command()
@click.argument("spec_file", metavar="SPEC", type=PATH)
@click.option("-o", "--output", type=NEW_FOLDER, required=True, help="The folder of the campaign.")
@click.option("--platform", "names", multiple=True, help="Platforms of SPEC to time here; may be repeated.")
@click.option("--counts", "count_names", multiple=True, help="Counts of SPEC to take here; may be repeated.")
@click.option("--resume", is_flag=True, help="Go on with the campaign that OUTPUT holds.")
@click.option("--visits", type=click.IntRange(1), help="Visits of each input, in place of what SPEC has.")
@click.option("--jobs", default=1, type=click.IntRange(1), help="Countings under valgrind at a time.")
@click.option("--minutes", type=FiniteRange(0, min_open=True), help="Stop after this time; go on with --resume.")
def campaign(
    spec_file: Path,
    output: Path,
    names: Names,
    count_names: Names,
    resume: bool,
    visits: int | None,
    jobs: int,
    minutes: float | None,
) -> int:
    """Time and count a list of inputs on this machine, as SPEC tells, and write OUTPUT/runs.jsonl.

    Without --platform and --counts, all platforms of SPEC and their counts. Inputs are visited in rounds of random
    order, on all platforms in turn and in other processes each time. Every result is kept as it comes: a campaign
    that was killed goes on with --resume, which completes the rounds that were cut off and adds new ones up to the
    number of visits.
    """
    from crossperf import campaign as campaigns
    from crossperf.runs.jsonl import line

    spec = campaigns.read(spec_file)
    spec = replace(spec, visits=visits or spec.visits)
    modes = [spec.mode(name) for name in names or ([] if count_names else spec.modes)]
    if unknown := [name for name in count_names if name not in spec.counts]:
        raise SettingsError(f"--counts: found {unknown[0]!r}, expected one of {', '.join(spec.counts)}.")
    sets = [spec.counts[name] for name in count_names or ([] if names else spec.counts)]
    if output.exists() and any(output.iterdir()) and not resume:
        raise CollectError(f"{output}: holds a campaign already. Go on with it by --resume, or choose another folder.")
    output.mkdir(parents=True, exist_ok=True)
    until = None if minutes is None else time.monotonic() + 60.0 * minutes
    status = 0
    try:
        if modes:
            campaigns.visit(spec, modes, output, say, until)
        for counts in sets:
            campaigns.count(spec, counts, output, jobs, say, until)
    except KeyboardInterrupt:
        status = 130
        say(f"interrupted; what was measured is kept in {output}. Go on with --resume.")
    runs = campaigns.assemble(spec, output)
    with whole(output / "runs.jsonl") as part:
        part.write_text("".join(map(line, runs)), encoding="utf-8")
    failed = sum(run.status != OK for run in runs)
    cells = len({(run.app, run.input, run.platform) for run in runs})
    of_all = len(spec.works) * len(spec.modes)
    tell(f"{several(cells, 'cell')} of {of_all:,}, {several(len(runs), 'run')}, {failed} failed")
    wrote(output / "runs.jsonl")
    return status
