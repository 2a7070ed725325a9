"""``crossperf slurm table``: writes the table that the controller reads."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

import click

from crossperf.cli.options import PATH, seed
from crossperf.cli.output import say, wrote
from crossperf.cli.slurm.options import DEFAULT, PARTITIONS, POLICY, site_of
from crossperf.errors import CrossperfError, SettingsError, some_of

if TYPE_CHECKING:
    from crossperf.schedule.slurm.ranking import LiveQueues
    from crossperf.schedule.slurm.site import Site
    from crossperf.schedule.slurm.table import Key, PartitionFacts, PlacementTable
    from crossperf.schedule.slurm.workloads import WorkloadTimes


@click.command()
@click.argument("model_folder", metavar="[MODEL", required=False, type=PATH)
@click.argument("runs", metavar="RUNS]", required=False, type=PATH)
@click.option("--predictions", "predictions_file", type=PATH, help="Take what 'crossperf predict --json' wrote.")
@click.option("--times", "times_file", type=PATH, help="Take a table of relative times, as 'crossperf schedule' does.")
@click.option("--learned", type=PATH, help="Prefer the medians of these runs, from 'crossperf slurm learn'.")
@click.option("--enough", type=click.IntRange(1), default=3, show_default=True, help="Runs that outweigh a prediction.")
@click.option("-o", "--output", type=PATH, required=True, help="The table to write.")
@PARTITIONS
@DEFAULT
@POLICY
@click.option(
    "--live", is_flag=True, help="Let the policy see the queues as they are now; write it again every few minutes."
)
@click.option("--good-for", type=click.IntRange(1), default=1800, show_default=True, help="Seconds that --live holds.")
@seed("policies that draw")
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
    from crossperf.runs import jsonl
    from crossperf.schedule import policies
    from crossperf.schedule.slurm import ranking, workloads

    beside = output.absolute().parent / "crossperf-partitions.json"
    site = site_of(partitions or (str(beside) if beside.is_file() else None), default)
    policy = policy or "considerate"
    chosen = policies.make(policy)
    known = _known(site, model_folder, runs, predictions_file, times_file)
    if learned is not None:
        known = workloads.with_learned(known, jsonl.read(learned), site.reference, enough)
    if not known:
        raise SettingsError("table: found nothing to go by, expected MODEL RUNS, --predictions, --times or --learned.")
    facts, state, notes = _state(site, live)
    made, left_out = ranking.table(
        known, site, facts, chosen, policy, seed=seed, live=state, good_for_s=good_for if live else 0
    )
    if not made.rows:
        platforms = sorted({name for times in known.values() for name in times.spans})
        raise SettingsError(
            f"table: found no key with two partitions to compare, expected platforms such as {some_of(platforms, 8)}. "
            "Check --partitions; nothing was written."
        )
    made.write(output)
    _show(made, left_out)
    for note in notes:
        say(f"note: {note}")
    wrote(output)


def _show(made: PlacementTable, left_out: int) -> None:
    measured = sum(any(choice.runs for choice in row.choices) for row in made.rows.values())
    first = dict.fromkeys((partition.partition for partition in made.partitions), 0)
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
) -> dict[Key, WorkloadTimes]:
    """Return what is predicted of each workload, the later of these winning: relative times, predictions, a model."""
    from crossperf.schedule.readers import read_times
    from crossperf.schedule.slurm import workloads

    known: dict[Key, WorkloadTimes] = {}
    if times_file is not None:
        known |= workloads.from_times(read_times(times_file), site.reference)
    if predictions_file is not None:
        known |= workloads.from_predictions(workloads.read_predictions(predictions_file), site.reference)
    if (model_folder is None) != (runs is None):
        raise SettingsError("table: found MODEL without RUNS, expected both: RUNS are what MODEL predicts from.")
    if model_folder is not None and runs is not None:
        from crossperf.model import store
        from crossperf.prediction.answer import predict

        answer = predict(store.load(model_folder), runs, relative_to=site.reference)
        for note in answer.notes:
            say(f"note: {note}")
        known |= workloads.from_predictions(answer.predictions, site.reference)
    return known


def _state(site: Site, live: bool) -> tuple[tuple[PartitionFacts, ...], LiveQueues | None, list[str]]:
    """Return the controller's facts of the partitions, with notes; with `live` the controller must answer."""
    from crossperf.schedule.slurm import controller
    from crossperf.schedule.slurm.ranking import LiveQueues

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
        start = controller.start(partition, [f"--nodes={nodes}", "--wrap=true", "--output=/dev/null"])
        if start.refused is not None:
            notes.append(f"no estimate of the wait of {nodes} nodes in {partition} ({start.refused}); taken as none.")
        return start.wait_s

    return facts, LiveQueues(controller.queues(), wait_s), notes
