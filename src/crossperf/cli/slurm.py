"""Commands for a site with Slurm: what to install, the table of predictions, advice, and what finished jobs teach."""

from __future__ import annotations

import functools
import getpass
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crossperf.cli.options import SEED
from crossperf.cli.output import say, wrote
from crossperf.errors import CrossperfError, SettingsError, some_of

if TYPE_CHECKING:
    from crossperf.schedule.slurm.advise import Advice
    from crossperf.schedule.slurm.placing import Known, Live
    from crossperf.schedule.slurm.site import Site
    from crossperf.schedule.slurm.submission import Submission
    from crossperf.schedule.slurm.table import Facts, Key, Table

#: Lines of a history that are named one by one; the rest is counted.
_NAMED_PROBLEMS = 5
_PATH = click.Path(path_type=Path)
PARTITIONS = click.option(
    "--partitions",
    metavar="P=PLATFORM,...|FILE",
    envvar="CROSSPERF_PARTITIONS",
    help="The platform of each partition: cpu=epyc-2,gpu=h200, or a JSON or CSV file of them.",
)
DEFAULT = click.option("--default", metavar="PARTITION", help="The partition that jobs fall to without any advice.")
POLICY = click.option("--policy", help="How to choose: a policy's name or FILE.py:FUNCTION.")


@click.group()
def slurm() -> None:
    """Place the jobs of a Slurm site: set it up, write its table, advise a submission, learn from finished jobs."""


@slurm.command()
@click.option("-o", "--output", type=_PATH, required=True, help="The folder: that of slurm.conf, or one to copy from.")
@PARTITIONS
@DEFAULT
@click.option("--scale-limits", is_flag=True, help="Scale the time limit of a job that is sent elsewhere.")
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

    site, notes = _against_the_controller(_site(partitions, default), default)
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
    from dataclasses import replace

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


@slurm.command()
@click.argument("model_folder", metavar="[MODEL", required=False, type=_PATH)
@click.argument("runs", metavar="RUNS]", required=False, type=_PATH)
@click.option("--predictions", "predictions_file", type=_PATH, help="Take what 'crossperf predict --json' wrote.")
@click.option("--times", "times_file", type=_PATH, help="Take a table of relative times, as 'crossperf schedule' does.")
@click.option("--learned", type=_PATH, help="Prefer the medians of these runs, from 'crossperf slurm learn'.")
@click.option("--enough", type=click.IntRange(1), default=3, show_default=True, help="Runs that outweigh a prediction.")
@click.option("-o", "--output", type=_PATH, required=True, help="The table to write.")
@PARTITIONS
@DEFAULT
@POLICY
@click.option(
    "--live", is_flag=True, help="Let the policy see the queues as they are now; write it again every few minutes."
)
@click.option("--good-for", type=click.IntRange(1), default=1800, show_default=True, help="Seconds that --live holds.")
@SEED
def table(
    model_folder: Path | None,
    runs: Path | None,
    predictions_file: Path | None,
    times_file: Path | None,
    learned: Path | None,
    enough: int,
    output: Path,
    partitions: str | None,
    default: str | None,
    policy: str | None,
    live: bool,
    good_for: int,
    seed: int,
) -> None:
    """Write the table that the controller reads: what MODEL predicts from RUNS, or what was predicted already."""
    from crossperf.schedule import policies
    from crossperf.schedule.slurm import placing

    beside = output.absolute().parent / "crossperf-partitions.json"
    site = _site(partitions or (str(beside) if beside.is_file() else None), default)
    chosen = policies.make(policy or "considerate")
    known = _known(site, model_folder, runs, predictions_file, times_file)
    if learned is not None:
        known = _learned(known, learned, site, enough)
    if not known:
        raise SettingsError("table: found nothing to go by, expected MODEL RUNS, --predictions, --times or --learned.")
    facts, state, notes = _state(site, live)
    made, left_out = placing.table(
        known,
        site,
        facts,
        chosen,
        policy or "considerate",
        seed=seed,
        live=state,
        good_for_s=good_for if live else 0,
    )
    if not made.rows:
        raise SettingsError(
            f"table: found no key with two partitions to compare, expected platforms such as "
            f"{some_of(sorted({name for one in known.values() for name in one.spans}), 8)}. Check --partitions; "
            "nothing was written."
        )
    made.write(output)
    _show_table(made, left_out)
    for note in notes:
        say(f"note: {note}")
    wrote(output)


def _show_table(made: Table, left_out: int) -> None:
    measured = sum(any(choice.runs for choice in row.choices) for row in made.rows.values())
    first = dict.fromkeys((one.partition for one in made.partitions), 0)
    for row in made.rows.values():
        first[row.choices[0].partition] += 1
    spread = ", ".join(f"{name} {count:,}" for name, count in first.items())
    click.echo(f"{len(made.rows):,} keys by policy {made.policy!r}, first choices: {spread}")
    click.echo(f"measured runs stand behind {measured:,} of them, predictions alone behind the rest")
    if left_out:
        say(f"note: {left_out:,} keys were left out: fewer than two partitions can be compared for them.")
    if made.too_long:
        say(f"note: {made.too_long:,} of the keys were left out: their names are too long for the controller.")


def _known(
    site: Site, model_folder: Path | None, runs: Path | None, predictions_file: Path | None, times_file: Path | None
) -> dict[Key, Known]:
    """Return what models and tables say, the later of these winning: relative times, predictions, a model."""
    from crossperf.schedule import tables
    from crossperf.schedule.slurm import placing

    known: dict[Key, Known] = {}
    if times_file is not None:
        known |= placing.from_times(tables.read_times(times_file), site.reference)
    if predictions_file is not None:
        known |= placing.from_predictions(_read_predictions(predictions_file), site.reference)
    if (model_folder is None) != (runs is None):
        raise SettingsError("table: found MODEL without RUNS, expected both: RUNS are what MODEL predicts from.")
    if model_folder is not None and runs is not None:
        from crossperf.model import store
        from crossperf.prediction.answer import predict

        answer = predict(store.load(model_folder), runs, relative_to=site.reference)
        for note in answer.notes:
            say(f"note: {note}")
        known |= placing.from_predictions(answer.predictions, site.reference)
    return known


def _read_predictions(path: Path) -> list[Any]:
    import json

    from crossperf.records import Prediction

    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
        return [Prediction.from_json(one) for one in facts["predictions"]]
    except (ValueError, KeyError, TypeError) as error:
        raise CrossperfError(
            f"{path}: does not read as predictions ({type(error).__name__}: {error}), expected what 'crossperf predict "
            "--json' writes.",
            path=str(path),
        ) from error


def _learned(known: Mapping[Key, Known], path: Path, site: Site, enough: int) -> dict[Key, Known]:
    from crossperf.runs import jsonl
    from crossperf.schedule.slurm import placing

    return placing.with_learned(known, jsonl.read(path), site.reference, enough)


def _state(site: Site, live: bool) -> tuple[tuple[Facts, ...], Live | None, list[str]]:
    """Return what the controller says of the partitions, with notes; with `live` the controller must answer."""
    from crossperf.schedule.slurm import controller
    from crossperf.schedule.slurm.placing import Live

    try:
        facts = controller.facts(site)
    except CrossperfError as error:
        if live:
            raise
        note = f"{error} Jobs that ask for processors, memory, features or GPUs will not be moved by this table."
        return controller.bare_facts(site), None, [note]
    notes: list[str] = []
    if not live:
        return facts, None, notes

    @functools.cache
    def wait_s(partition: str, nodes: int) -> float:
        found = controller.start(partition, [f"--nodes={nodes}", "--wrap=true", "--output=/dev/null"])
        if found.refused is not None:
            notes.append(f"no estimate of the wait of {nodes} nodes in {partition} ({found.refused}); taken as none.")
        return found.wait_s

    return facts, Live(controller.queues(), wait_s), notes


@slurm.command(context_settings={"allow_interspersed_args": False})
@click.option("--table", "table_file", type=_PATH, envvar="CROSSPERF_TABLE", help="The table of predictions.")
@POLICY
@click.option("--deadline", "deadline_s", type=float, help="Seconds from now until which the job should have ended.")
@click.option("--scale-limits", is_flag=True, help="Scale the time limit of a job that is sent elsewhere.")
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
    import shlex

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
    from crossperf.schedule.slurm import advise
    from crossperf.schedule.slurm import table as tables

    if table_file is None:
        raise SettingsError("advise: found no table, expected --table FILE or the variable CROSSPERF_TABLE.")
    known = tables.read(table_file)
    if not policy and known.policy not in policies.POLICIES:
        # Data must not say which program is run: it might be one of this folder that only bears the name.
        raise SettingsError(f"advise: {table_file} was made by {known.policy!r}, expected --policy to name it as well.")
    return advise.advise(
        asked,
        known,
        policies.make(policy or known.policy),
        getpass.getuser(),
        np.random.default_rng(),
        stdin=stdin,
        deadline_s=deadline_s,
        sbatch=sbatch,
    )


@slurm.command()
@click.option("--sacct", is_flag=True, help="Ask sacct for the jobs of all users.")
@click.option("--since", default="now-30days", show_default=True, help="With --sacct: how far back, as sacct takes it.")
@click.option("--sacct-file", type=_PATH, help="Read what 'sacct --parsable2' printed.")
@click.option("--jobcomp", type=_PATH, help="Read the file of the plugin jobcomp/filetxt.")
@click.option("--cluster", default="", help="The cluster's name, where the jobs do not tell it.")
@PARTITIONS
@click.option("-o", "--output", type=_PATH, required=True, help="The runs (.jsonl) to add to.")
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

    if sum(map(bool, (sacct, sacct_file, jobcomp))) != 1:
        raise SettingsError("learn: expected one of --sacct, --sacct-file FILE and --jobcomp FILE.")
    site = _site(partitions, None)
    if sacct:
        reading = history.from_sacct(since)
    elif sacct_file:
        reading = history.sacct_lines(sacct_file.read_text(encoding="utf-8", errors="surrogateescape"), str(sacct_file))
    else:
        reading = history.from_jobcomp(jobcomp or "")
    result = history.learn(reading.jobs, site, output, cluster)
    click.echo(f"{result.added:,} runs added, {result.known:,} were there already")
    for reason in history.told(result.left_out):
        say(f"left out: {reason}")
    for problem in reading.problems[:_NAMED_PROBLEMS]:
        say(f"warning: {problem}")
    if len(reading.problems) > _NAMED_PROBLEMS:
        say(f"warning: {len(reading.problems) - _NAMED_PROBLEMS:,} more lines do not read as jobs; left out.")
    wrote(output)


def _site(partitions: str | None, default: str | None) -> Site:
    from crossperf.schedule.slurm.site import Site

    if not partitions:
        raise SettingsError(
            "--partitions: found nothing, expected partition=platform,... or a file of them; 'crossperf slurm setup' "
            "writes crossperf-partitions.json."
        )
    return Site.of(partitions, default)
