"""Commands for a site with Slurm: what to install, the table of predictions, advice, and what finished jobs teach."""

from __future__ import annotations

import functools
import getpass
import math
import os
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crossperf.cli.completion import completing, policies
from crossperf.cli.options import NEW_FILE, NEW_FOLDER, PATH, FiniteRange, client_of, seed
from crossperf.cli.output import JSON, say, tell, write_facts, wrote
from crossperf.errors import CrossperfError, SettingsError, some_of
from crossperf.files import refuse_unless_ours

if TYPE_CHECKING:
    from crossperf.records import Prediction, Run
    from crossperf.schedule.slurm.advise import Advice, Submission
    from crossperf.schedule.slurm.history import Reading
    from crossperf.schedule.slurm.ranking import LiveQueues, WorkloadTimes
    from crossperf.schedule.slurm.site import Site
    from crossperf.schedule.slurm.table import Key, PartitionFacts, PlacementTable

#: Lines of a history that are named one by one; the rest is counted.
_NAMED_PROBLEMS = 5

_PARTITIONS = click.option(
    "--partitions",
    metavar="P=PLATFORM,...|FILE",
    envvar="CROSSPERF_PARTITIONS",
    help="The platform of each partition: cpu=epyc-2,gpu=h200, or a JSON or CSV file of them.",
)
_DEFAULT = click.option("--default", metavar="PARTITION", help="The partition that jobs fall to without any advice.")
_POLICY = click.option(
    "--policy", help="How to choose: a policy's name or FILE.py:FUNCTION.", shell_complete=completing(policies)
)
_SCALE_LIMITS = click.option(
    "--scale-limits", is_flag=True, help="Scale the time limit of a job that is sent elsewhere."
)


@click.group()
def slurm() -> None:
    """Place the jobs of a Slurm site: set it up, write its table, advise a submission, learn from finished jobs."""


def _site(partitions: str | None, default: str | None = None) -> Site:
    from crossperf.schedule.slurm.site import Site

    if not partitions:
        raise SettingsError(
            "--partitions: found nothing, expected partition=platform,... or a file of them; 'crossperf slurm setup' "
            "writes crossperf-partitions.json."
        )
    return Site.of(partitions, default)


@slurm.command()
@click.option("-o", "--output", type=NEW_FOLDER, required=True, help="The folder of slurm.conf, or one to copy from.")
@_PARTITIONS
@_DEFAULT
@_SCALE_LIMITS
@click.option("--shadow", is_flag=True, help="Note in each job what would be chosen, and change nothing.")
@click.option("--no-tags", is_flag=True, help="Do not note the application and input in the job's AdminComment.")
@click.option("--module-only", is_flag=True, help="Write no job_submit.lua; the site has one of its own.")
@click.option("--overwrite", is_flag=True, help="Replace files that differ.")
def setup(
    output: Path, partitions: str | None, default: str | None, module_only: bool, overwrite: bool, **plugin: bool
) -> None:
    """Write what the controller needs into a folder: job_submit.lua, what it runs, and the partitions' platforms."""
    from crossperf.schedule.slurm import setup

    site, notes = _against_the_controller(_site(partitions, default), default)
    folder = output.absolute()
    how = {"scale_limits": plugin["scale_limits"], "tag_jobs": not plugin["no_tags"], "shadow": plugin["shadow"]}
    contents = setup.files(folder, site, **how)
    if module_only:
        del contents[setup.PLUGIN]
    folder.mkdir(parents=True, exist_ok=True)
    fresh = setup.write(folder, contents, overwrite=overwrite)
    tell(*setup.what_to_do(folder, module_only).splitlines())
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


@slurm.command()
@click.argument("model_folder", metavar="[MODEL", required=False, type=PATH)
@click.argument("runs", metavar="RUNS]", required=False, type=PATH)
@click.option("--predictions", "predictions_file", type=PATH, help="Take what 'crossperf predict --json' wrote.")
@click.option(
    "--server",
    metavar="URL",
    help="Ask a server for predictions from RUNS, or from the profiles it keeps, and for the finished jobs it keeps.",
)
@click.option("--times", "times_file", type=PATH, help="Take a table of relative times, as 'crossperf schedule' does.")
@click.option("--learned", type=PATH, help="Prefer what these runs tell, from 'crossperf slurm learn'.")
@click.option("--enough", type=click.IntRange(1), default=3, help="Runs on a platform that outweigh a prediction.")
@click.option("--users", type=click.IntRange(1), default=3, help="Users who must agree before it holds for all.")
@click.option(
    "--half-life", "half_life_days", type=FiniteRange(1, 1e6), default=90.0, help="Days until a run counts half."
)
@click.option("-o", "--output", type=NEW_FILE, required=True, help="The table to write.")
@_PARTITIONS
@_DEFAULT
@_POLICY
@click.option(
    "--live", is_flag=True, help="Let the policy see the queues as they are now; write it again every few minutes."
)
@click.option("--good-for", type=click.IntRange(1), default=1800, help="Seconds that --live holds.")
@seed("policies that draw")
def table(
    output: Path,
    partitions: str | None,
    default: str | None,
    policy: str | None,
    live: bool,
    good_for: int,
    seed: int,
    **sources: Any,
) -> None:
    """Write the table that the controller reads: what MODEL predicts from RUNS, or what was predicted already."""
    from crossperf.schedule import policies
    from crossperf.schedule.slurm import ranking
    from crossperf.schedule.slurm.table import LISTS, is_own

    refuse_unless_ours(output, is_own)
    beside = output.absolute().parent / "crossperf-partitions.json"
    site = _site(partitions or (str(beside) if beside.is_file() else None), default)
    # Without the queues a policy can only send all to the fastest, so Slurm gets a list and binds late.
    name = policy or ("considerate" if live else LISTS)
    chosen = policies.make("fastest" if name == LISTS else name)
    known = _known(site, **sources)
    facts, queues, notes = _state(site, live)
    lasts_s = good_for if live else 0
    made, left_out = ranking.table(known, site, facts, chosen, name, seed=seed, live=queues, good_for_s=lasts_s)
    if not made.rows:
        platforms = sorted({name for times in known.values() for name in times.spans})
        raise SettingsError(
            f"table: found no key with two partitions to compare, expected platforms such as {some_of(platforms, 8)}. "
            "Check --partitions; nothing was written."
        )
    made.write(output)
    _show(made, left_out)
    for partition in made.partitions:
        if partition.closed:
            say(f"note: no job is sent to {partition.partition}: {partition.closed}.")
    for note in notes:
        say(f"note: {note}")
    wrote(output)


def _known(
    site: Site,
    model_folder: Path | None,
    runs: Path | None,
    predictions_file: Path | None,
    times_file: Path | None,
    learned: Path | None,
    server: str | None = None,
    **trust: Any,
) -> dict[Key, WorkloadTimes]:
    """Return what is known of each workload, the later of these winning: times, predictions, a model, finished jobs."""
    from crossperf.records import read_predictions
    from crossperf.runs import jsonl
    from crossperf.schedule.readers import read_times
    from crossperf.schedule.slurm import ranking
    from crossperf.schedule.slurm.learned import Trust, with_learned

    known: dict[Key, WorkloadTimes] = {}
    if times_file is not None:
        known |= ranking.from_times(read_times(times_file), site.reference)
    if predictions_file is not None:
        known |= ranking.from_predictions(read_predictions(predictions_file), site.reference)
    kept: list[Run] = []
    if server is not None:
        runs = runs or model_folder  # click fills arguments from the left, and a server has models of its own
        predictions, kept = _asked(server, runs, site.reference)
        known |= ranking.from_predictions(predictions, site.reference)
        model_folder = runs = None
    if (model_folder is None) != (runs is None):
        raise SettingsError("table: found MODEL without RUNS, expected both: RUNS are what MODEL predicts from.")
    if model_folder is not None and runs is not None:
        predictions = _predicted(model_folder, runs, site.reference)
        known |= ranking.from_predictions(predictions, site.reference)
    if learned is not None or kept:
        finished = [*kept, *(jsonl.read(learned) if learned is not None else ())]
        known, unlearned = with_learned(known, finished, site.reference, Trust(**trust))
        for note in unlearned:
            say(f"note: {note}")
    if not known:
        raise SettingsError(
            "table: found nothing to go by, expected MODEL RUNS, --server, --predictions, --times, or --learned with "
            "work that ran on two platforms."
        )
    return known


def _predicted(model_folder: Path, runs: Path, reference: str) -> list[Prediction]:
    """Return the predictions of runs, relative to a platform; where one cannot run there, to where it was profiled."""
    from crossperf.model import store
    from crossperf.prediction.answer import ask, predict
    from crossperf.prediction.runnable import offer

    model = store.load(model_folder)
    question = ask(model, runs)
    offered = offer(model, question.measured, None)
    here = [number for number, cannot in enumerate(offered.cannot) if reference not in cannot]
    elsewhere = [number for number, cannot in enumerate(offered.cannot) if reference in cannot]
    predictions: list[Prediction] = []
    for rows, relative_to in ((here, reference), (elsewhere, "source")):
        if rows:
            predictions += predict(model, question.take(rows), relative_to=relative_to).predictions
    for note in question.notes:
        say(f"note: {note}")
    return predictions


def _asked(server: str, runs: Path | None, reference: str) -> tuple[list[Prediction], list[Run]]:
    """Return a server's predictions from profiles, relative to a platform as `_predicted` has it, and its kept runs."""
    from crossperf.client import ServerError
    from crossperf.runs import read_runs

    client = client_of(server)
    try:
        kept = list(client.runs())
    except ServerError as error:
        if error.facts.get("status") != _NOT_OFFERED:  # it keeps none
            raise
        kept = []
    profiles = [run for run in (kept if runs is None else read_runs(runs, need_runtime=False).runs()) if run.counters]
    if not profiles:
        return [], kept
    answer = client.predict(profiles)
    cannot = {(own.app, own.input, own.source) for own in answer.predictions if reference in own.cannot}
    predictions = [own for own in answer.predictions if (own.app, own.input, own.source) in cannot]
    here = [run for run in profiles if (run.app, run.input, run.platform) not in cannot]
    if here:
        answer = client.predict(here, relative_to=reference)
        predictions = [*answer.predictions, *predictions]
    for note in answer.notes:
        say(f"note: {note}")
    return predictions, kept


#: The status of a server that was started without what is asked for.
_NOT_OFFERED = 501


def _state(site: Site, live: bool) -> tuple[tuple[PartitionFacts, ...], LiveQueues | None, list[str]]:
    """Return the controller's facts of the partitions, with notes; with `live` the controller must answer."""
    from crossperf.schedule.slurm import controller
    from crossperf.schedule.slurm.ranking import LiveQueues

    notes: list[str] = []
    try:
        facts = controller.facts(site)
    except CrossperfError as error:
        if live:
            raise
        facts = controller.bare_facts(site)
        notes.append(f"{error} Jobs that ask for processors, memory, features or GPUs will not be moved by this table.")
    if not live:
        return facts, None, notes

    @functools.cache
    def wait_s(partition: str, nodes: int) -> float:
        start = controller.start(partition, [f"--nodes={nodes}", "--wrap=true", "--output=/dev/null"])
        if start.refused is not None:
            notes.append(f"no estimate of the wait of {nodes} nodes in {partition} ({start.refused}); taken as none.")
        return start.wait_s

    return facts, LiveQueues(controller.queues(), wait_s), notes


def _show(made: PlacementTable, left_out: int) -> None:
    from crossperf.schedule.slurm.table import LISTS

    measured = sum(any(choice.runs for choice in row.choices) for row in made.rows.values())
    first = dict.fromkeys((partition.partition for partition in made.partitions), 0)
    for row in made.rows.values():
        for choice in row.choices[:1]:
            first[choice.partition] += 1
    spread = ", ".join(f"{name} {count:,}" for name, count in first.items())
    what = "in lists of partitions" if made.policy == LISTS else f"by policy {made.policy!r}"
    tell(f"{len(made.rows):,} keys {what}, first choices: {spread}")
    tell(f"measured runs stand behind {measured:,} of them, predictions alone behind the rest")
    if stay := sum(not row.choices for row in made.rows.values()):
        say(f"note: jobs of {stay:,} keys stay as they are: their runs look unknown, or no partition can run them.")
    if left_out:
        say(f"note: {left_out:,} keys were left out: fewer than two partitions can be compared for them.")
    if made.too_long:
        say(f"note: {made.too_long:,} of the keys were left out: their names are too long for the controller.")


@slurm.command(context_settings={"allow_interspersed_args": False})
@click.option("--table", "table_file", type=PATH, envvar="CROSSPERF_TABLE", help="The table of predictions.")
@_POLICY
@click.option("--deadline", "deadline_s", type=float, help="Seconds from now until which the job should have ended.")
@_SCALE_LIMITS
@click.option("--dry-run", is_flag=True, help="Print the command instead of running it.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- sbatch ARGS...")
def advise(scale_limits: bool, dry_run: bool, command: tuple[str, ...], **how: Any) -> int:
    """Submit a job to the partition where it should run, by a table and the queues as they are now.

    What sbatch prints and its exit status come through untouched. Whatever keeps this from choosing, the job is
    submitted as it was written.
    """
    from crossperf.schedule.slurm import advise

    sbatch, *arguments = command
    if Path(sbatch).name != "sbatch":
        raise SettingsError(f"advise: found {sbatch!r}, expected sbatch and its arguments after --.")
    asked = advise.parse(arguments, os.environ)
    stdin = sys.stdin.buffer.read() if asked.takes_stdin else None
    words = list(command)
    try:
        asked = advise.parse(arguments, os.environ, stdin)
        advice = _advice(asked, sbatch=sbatch, stdin=stdin, scale_limits=scale_limits, **how)
        words = advise.command(sbatch, asked, advice, scale_limits=scale_limits)
        say(f"crossperf: {advice.reason}{'.' if advice.partition else '; submitted as it is.'}")
    except CrossperfError as error:
        say(f"crossperf: {error} Submitted as it is.")
    except Exception as error:  # a policy of the user's own may raise anything, and the job must not be lost for it
        say(f"crossperf: no advice ({type(error).__name__}: {error}). Submitted as it is.")
    if dry_run:
        tell(shlex.join(words))
        return 0
    status = subprocess.run(words, input=stdin, check=False).returncode
    return status if status >= 0 else 128 - status


def _advice(
    asked: Submission, table_file: Path | None, policy: str | None, deadline_s: float | None, **sbatch: Any
) -> Advice:
    from crossperf.schedule import policies
    from crossperf.schedule.slurm import table
    from crossperf.schedule.slurm.advise import advise

    if table_file is None:
        raise SettingsError("advise: found no table, expected --table FILE or the variable CROSSPERF_TABLE.")
    if deadline_s is not None and not 0 < deadline_s < math.inf:
        raise SettingsError(f"--deadline: found {deadline_s:g}, expected seconds above 0.")
    known = table.read(table_file)
    stored = "considerate" if known.policy == table.LISTS else known.policy
    if not policy and stored not in policies.POLICIES:
        # Data must not decide which program is run: it might be one of this folder that only bears the name.
        raise SettingsError(f"advise: {table_file} was made by {known.policy!r}, expected --policy to name it as well.")
    chosen = policies.make(policy or stored)
    return advise(asked, known, chosen, getpass.getuser(), deadline_s=deadline_s, **sbatch)


@slurm.command()
@click.option("--sacct", is_flag=True, help="Ask sacct for the jobs of all users.")
@click.option("--since", default="now-30days", help="With --sacct: how far back, as sacct takes it.")
@click.option("--sacct-file", type=PATH, help="Read what 'sacct --parsable2' printed.")
@click.option("--jobcomp", type=PATH, help="Read the file of the plugin jobcomp/filetxt.")
@click.option("--cluster", default="", show_default=False, help="The cluster's name, where the jobs do not name it.")
@_PARTITIONS
@click.option("-o", "--output", type=NEW_FILE, required=True, help="The runs (.jsonl) to add to.")
def learn(cluster: str, partitions: str | None, output: Path, **where: Any) -> None:
    """Add finished jobs to a runs table, each once: what 'crossperf slurm table --learned' goes by."""
    from crossperf.schedule.slurm import history

    site = _site(partitions)
    reading = _reading(**where)
    result = history.learn(reading.jobs, site, output, cluster)
    tell(f"{result.added:,} runs added, {result.known:,} were there already")
    for reason in result.reasons:
        say(f"left out: {reason}")
    for problem in reading.problems[:_NAMED_PROBLEMS]:
        say(f"warning: {problem}")
    if len(reading.problems) > _NAMED_PROBLEMS:
        say(f"warning: {len(reading.problems) - _NAMED_PROBLEMS:,} more lines do not read as jobs; left out.")
    wrote(output)


@slurm.command()
@click.option("--sacct", is_flag=True, help="Ask sacct for the jobs of all users.")
@click.option("--since", default="now-7days", help="With --sacct: how far back, as sacct takes it.")
@click.option("--sacct-file", type=PATH, help="Read what 'sacct --parsable2' printed.")
@JSON
def report(json_file: Path | None, **where: Any) -> None:
    """Tell what shadow mode would have saved: of finished jobs that 'crossperf slurm setup --shadow' has noted."""
    from crossperf.schedule.slurm import shadow

    result = shadow.report(_reading(**where, jobcomp=None).jobs)
    for line in result.lines:
        tell(line)
    for doubt in result.doubts:
        say(f"note: {doubt}")
    write_facts(json_file, result.to_json)


@slurm.command()
@click.option("--table", "table_file", type=PATH, required=True, envvar="CROSSPERF_TABLE", help="The table to go by.")
@click.option("--dry-run/--apply", default=True, help="Print what should move, or let the controller move it.")
def rebalance(table_file: Path, dry_run: bool) -> None:
    """Name waiting jobs that would end sooner in another partition, as the queues are now; move them with --apply."""
    from crossperf.schedule.slurm import rebalance, table

    moves, stay = rebalance.moves(rebalance.waiting(), table.read(table_file))
    problems: list[str] = []
    if not dry_run:
        moves, problems = rebalance.apply(moves)
    waiting = len(moves) + len(problems) + sum(stay.values())
    tell(f"{len(moves):,} of {waiting:,} waiting jobs {'would move' if dry_run else 'moved'}")
    for move in moves:
        tell(str(move))
    for reason, count in stay.most_common():
        say(f"{count:,} stay: {reason}")
    for problem in problems:
        say(f"warning: {problem}")


def _reading(sacct: bool, since: str, sacct_file: Path | None, jobcomp: Path | None) -> Reading:
    from crossperf.schedule.slurm import history

    if sum(map(bool, (sacct, sacct_file, jobcomp))) != 1:
        command = click.get_current_context().info_name
        files = "--sacct-file FILE and --jobcomp FILE" if command == "learn" else "--sacct-file FILE"
        raise SettingsError(f"{command}: expected one of --sacct, {files}.")
    if sacct:
        return history.from_sacct(since)
    if sacct_file:
        return history.from_sacct_file(sacct_file)
    return history.from_jobcomp(jobcomp or "")
