"""``crossperf ask``: profile a command here, and tell where it would run how fast."""

from __future__ import annotations

import os
import statistics
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from crossperf import platforms
from crossperf.cli.modelled import ModelPlatforms
from crossperf.cli.options import CAN, NO_GPU, PATH, REGISTRY, SUCCESS, can_of, names
from crossperf.cli.output import JSON, progress_line, say, tell, write_facts
from crossperf.errors import CollectError, PredictError, SettingsError, did_you_mean, some_of
from crossperf.platforms import MachineFacts, Match, Platform
from crossperf.records import NO_VERSION_KNOWN, OK, Prediction, Run, versions

if TYPE_CHECKING:
    from crossperf.collect.profiled import Profile
    from crossperf.model.trained import TrainedModel
    from crossperf.prediction.answer import Question

_HERE_HELP = "The model's name for this machine; the default is the platform with the same facts, or the nearest."


@click.command(context_settings={"allow_interspersed_args": False}, epilog="Such as: crossperf ask -- ./app --size 100")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@CAN
@NO_GPU
@click.option("--platforms", "chosen", metavar="A,B", help="Tell of these platforms only.")
@click.option("--threads", type=click.IntRange(1), help="Threads it uses here; the default is what it kept busy.")
@click.option("--quick", is_flag=True, help="Count with the system and perf alone, which takes seconds.")
@click.option("--repeats", default=3, help="Executions for the runtime.")
@SUCCESS
@click.option("--model", "model_folder", type=PATH, help="A model of yours; the default is the one that ships.")
@click.option("--price", multiple=True, metavar="NAME=PRICE", help="What an hour on a platform costs; may be repeated.")
@click.option("--here", metavar="PLATFORM", help=_HERE_HELP)
@click.option("--from", "table", type=PATH, help="Answer for the run in this table, and run nothing.")
@REGISTRY
@JSON
def ask(
    command: tuple[str, ...],
    can: tuple[str, ...],
    no_gpu: bool,
    chosen: str | None,
    threads: int | None,
    quick: bool,
    repeats: int,
    success: tuple[int, ...],
    model_folder: Path | None,
    price: tuple[str, ...],
    here: str | None,
    table: Path | None,
    registry: Path,
    json_file: Path | None,
) -> None:
    """Run COMMAND here, count what it does, and tell where it would run how fast.

    What COMMAND prints is not shown. Prices are those of --price, or price_per_hour under 'crossperf platforms'.
    """
    from crossperf.model import store
    from crossperf.report import asked as show

    if bool(command) == bool(table):
        actual = "a command and --from were given; expected one of the two" if command else "no command was given"
        raise CollectError(f"{actual}, such as: crossperf ask -- ./app 100")
    model = store.load(model_folder)
    known = ModelPlatforms.read(model_folder or store.SHIPPED, registry).known
    stated = can_of(can, no_gpu, model.cells.platform_classes)
    wanted, stated_prices = _wanted(model, chosen, here), _prices(model, price)
    if table:
        runs, facts = _read(table, registry)
    else:
        runs, facts = _profiled(command, registry, quick=quick, repeats=repeats, success=success)
    threads = threads or runs[0].threads
    match = _match(model, known, here, runs[0], facts, threads)
    prediction, lacking = _predicted(
        model, [replace(run, platform=match.platform.name) for run in runs], stated, wanted
    )
    times = [run.runtime_s for run in runs if run.runtime_s is not None]
    kept = {entry.name: entry.facts.more.get("price_per_hour") for entry in known}
    prices = {name: float(own) for name, own in kept.items() if isinstance(own, int | float)} | stated_prices
    answer = show.Asked(
        prediction,
        statistics.median(times) if times else None,
        _machine(facts, match),
        threads,
        match.differs,
        prices,
        dict(zip(model.platforms, model.cells.platform_classes, strict=True)),
        lacking,
    )
    tell(*show.lines(answer))
    write_facts(json_file, answer.to_json)


def _wanted(model: TrainedModel, chosen: str | None, here: str | None) -> list[str]:
    """Return the platforms to tell of, and check the names before anything runs."""
    if here is not None and here not in model.sources:
        expected = f"expected a platform of the model: {some_of(model.sources, 20)}"
        raise SettingsError(f"--here: found {here!r}{did_you_mean(here, model.sources)}, {expected}.")
    wanted = names(chosen) or list(model.platforms)
    for name in wanted:
        if name not in model.platforms:
            expected = f"expected platforms of the model: {some_of(model.platforms, 20)}"
            raise SettingsError(f"--platforms: found {name!r}{did_you_mean(name, model.platforms)}, {expected}.")
    return wanted


def _prices(model: TrainedModel, pairs: Sequence[str]) -> dict[str, float]:
    """Return the prices of platforms from NAME=PRICE."""
    from crossperf.schedule.machines import price_of

    prices = {}
    for pair in pairs:
        name, _, text = pair.partition("=")
        price = price_of(text) if text else None
        if name not in model.platforms or price is None:
            expected = f"expected a platform of the model and its price for an hour, such as {model.platforms[0]}=1.2"
            raise SettingsError(f"--price: found {pair!r}, {expected}.")
        prices[name] = price
    return prices


def _profiled(
    command: Sequence[str], registry: Path, *, quick: bool, repeats: int, success: Sequence[int]
) -> tuple[list[Run], MachineFacts | None]:
    """Return the runs of a command, measured now, and the facts of this machine."""
    from crossperf.collect import backends
    from crossperf.collect.profile import profile

    how = backends.QUICK if quick else backends.AUTO
    with Path(os.devnull).open("wb") as nowhere, progress_line() as progress:
        result = profile(
            command,
            backend=how,
            repeats=repeats,
            success=success,
            registry=registry,
            stdout=nowhere.fileno(),
            say=say,
            progress=progress,
        )
    _refuse_failed(result)
    threads = _threads_of(result)
    return [replace(run, threads=threads) for run in result.runs], result.facts


def _refuse_failed(result: Profile) -> None:
    program = result.command[0]
    if result.interrupted or not result.executions:
        raise CollectError(f"{program}: was interrupted, expected it to end by itself. Ask again.")
    if failed := next((done for done in result.executions if done.status != OK), None):
        raise CollectError(
            f"{program}: failed ({failed.status}), expected success: what fails here tells nothing of elsewhere. "
            "Correct the command, or add --success with its status where that is a result.",
            status=failed.status,
        )


def _read(table: Path, registry: Path) -> tuple[list[Run], MachineFacts | None]:
    """Return the runs of a table that holds one workload on one platform, and the facts of that platform."""
    from crossperf.runs import read_runs

    runs = [run for run in read_runs(table, need_runtime=False).runs() if run.status == OK]
    workloads = {(run.app, run.input, run.platform) for run in runs}
    if len(workloads) != 1:
        todo = "Take one out, or answer for all with 'crossperf predict'"
        raise PredictError(f"{table}: found {len(workloads):,} workloads, expected one on one platform. {todo}.")
    entry = next((own for own in platforms.read(registry) if own.name == runs[0].platform), None)
    facts = platforms.facts_of_this_machine()
    if entry is None and platforms.name_for(facts, runs[0].platform_class) == runs[0].platform:
        return runs, facts
    return runs, entry.facts if entry else None


def _threads_of(result: Profile) -> int:
    """Return how many threads a program kept busy at a time, at least one.

    How it spread its instructions over threads tells, unless these ran one after the other, as the processes of a
    script do; its processor time tells, unless other programs kept it waiting. The lesser of the two counts, and the
    first alone for OpenMP, whose threads run side by side.
    """
    counted = result.counted.values
    busy = max((done.user_s + done.system_s) / max(done.wall_s, 1e-9) for done in result.executions)
    spread = 1.0 / (counted.get("busiest_thread_ratio") or 1.0 / max(busy, 1.0))
    # A program that keeps two processors busy for a quarter of its time uses two.
    threads = spread if counted.get("parallel_regions") else min(spread, busy + 0.25)
    return max(1, min(round(threads), result.facts.hardware_threads or 1))


def _match(
    model: TrainedModel,
    known: Sequence[Platform],
    here: str | None,
    run: Run,
    facts: MachineFacts | None,
    threads: int | None,
) -> Match:
    """Return the platform of the model that stands for this machine: by its name, otherwise by its facts."""
    own = run.platform_class or "cpu"
    by_name = here or (run.platform if run.platform in model.sources else None)
    if by_name is not None:
        entry = next((entry for entry in known if entry.name == by_name), Platform(by_name, own))
        return Match(entry)
    sources = [entry for entry in known if entry.name in model.sources]
    # More threads than there are processors take turns.
    used = min(threads, facts.hardware_threads or threads) if facts and threads else threads
    match = platforms.nearest(sources, facts, own, used) if facts else None
    if match is None:
        raise PredictError(
            f"This machine ({run.platform}, {own}) is like none that the model knows facts of, expected one of "
            f"{some_of(model.sources, 20)}. Name the one it is with --here.",
            platform=run.platform,
        )
    return match


def _predicted(
    model: TrainedModel, runs: Sequence[Run], stated: Sequence[str] | None, wanted: Sequence[str]
) -> tuple[Prediction, tuple[str, ...]]:
    """Return the prediction for what can run the program and was asked for, and the counters that it lacks.

    A platform of another class is offered only where it is stated that there is a version for it.
    """
    from crossperf.prediction.answer import ask as question_of
    from crossperf.prediction.answer import predict
    from crossperf.prediction.runnable import offer

    question = question_of(model, runs)
    source, own = runs[0].platform, _class_in(model, runs[0].platform)
    known = stated or versions(runs[0].runnable)
    offered = offer(model, question.measured, known or (own,))
    fits = dict(zip(model.platforms, offered.offered_np[0].tolist(), strict=True))
    can = [name for name in model.platforms if fits[name] and (name in wanted or name == source)]
    (prediction,) = predict(model, question, can=can).predictions
    cannot = {name: why if known else NO_VERSION_KNOWN for name, why in offered.cannot[0].items() if name in wanted}
    return prediction.only([*can, *cannot], cannot), _lacking(model, question, source)


def _class_in(model: TrainedModel, platform: str) -> str:
    return model.cells.platform_classes[model.platforms.index(platform)]


def _lacking(model: TrainedModel, question: Question, source: str) -> tuple[str, ...]:
    counted = set(question.measured.counters)
    return tuple(name for name in model.counters if name in model.offered[source] and name not in counted)


def _machine(facts: MachineFacts | None, match: Match) -> str:
    """Return the processor, or the GPU, that a program ran on, in words."""
    known = facts or match.platform.facts
    if match.platform.platform_class == "gpu" and known.gpus:
        return str(known.gpus[0].model)
    cores = f", {known.cores} cores" if known.cores else ""
    return f"{known.cpu_model or 'a machine without a name'}{cores}"
