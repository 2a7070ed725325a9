"""``crossperf slurm learn``: adds finished jobs to a runs table."""

from __future__ import annotations

from pathlib import Path

import click

from crossperf.cli.options import PATH
from crossperf.cli.output import say, wrote
from crossperf.cli.slurm.options import PARTITIONS, site_of
from crossperf.errors import SettingsError

#: Lines of a history that are named one by one; the rest is counted.
_NAMED_PROBLEMS = 5


@click.command()
@click.option("--sacct", is_flag=True, help="Ask sacct for the jobs of all users.")
@click.option("--since", default="now-30days", show_default=True, help="With --sacct: how far back, as sacct takes it.")
@click.option("--sacct-file", type=PATH, help="Read what 'sacct --parsable2' printed.")
@click.option("--jobcomp", type=PATH, help="Read the file of the plugin jobcomp/filetxt.")
@click.option("--cluster", default="", show_default=False, help="The cluster's name, where the jobs do not name it.")
@PARTITIONS
@click.option("-o", "--output", type=PATH, required=True, help="The runs (.jsonl) to add to.")
def learn(
    sacct: bool,
    since: str,
    sacct_file: Path | None,
    jobcomp: Path | None,
    cluster: str,
    partitions: str | None,
    output: Path,
) -> None:
    """Add finished jobs to a runs table, each once: what 'crossperf slurm table --learned' goes by."""
    from crossperf.schedule.slurm import history
    from crossperf.schedule.slurm.learn import learn

    if sum(map(bool, (sacct, sacct_file, jobcomp))) != 1:
        raise SettingsError("learn: expected one of --sacct, --sacct-file FILE and --jobcomp FILE.")
    site = site_of(partitions)
    if sacct:
        reading = history.from_sacct(since)
    elif sacct_file:
        reading = history.sacct_lines(sacct_file.read_text(encoding="utf-8", errors="surrogateescape"), str(sacct_file))
    else:
        reading = history.from_jobcomp(jobcomp or "")
    result = learn(reading.jobs, site, output, cluster)
    click.echo(f"{result.added:,} runs added, {result.known:,} were there already")
    for reason in result.reasons:
        say(f"left out: {reason}")
    for problem in reading.problems[:_NAMED_PROBLEMS]:
        say(f"warning: {problem}")
    if len(reading.problems) > _NAMED_PROBLEMS:
        say(f"warning: {len(reading.problems) - _NAMED_PROBLEMS:,} more lines do not read as jobs; left out.")
    wrote(output)
