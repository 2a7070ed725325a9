"""Commands that place jobs from predictions: ``crossperf schedule simulate``."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crossperf.cli import schedule_jobs
from crossperf.cli.completion import completing, policies
from crossperf.cli.options import NEW_FILE, PATH, names, seed
from crossperf.cli.output import (
    JSON,
    announced,
    draw_into_files,
    progress_bar,
    progress_line,
    say,
    write_facts,
    wrote,
)
from crossperf.cli.working import Working, workers_options
from crossperf.errors import CrossperfError, SettingsError, did_you_mean, some_of

if TYPE_CHECKING:
    from crossperf.schedule.compare import Comparison
    from crossperf.schedule.jobs import Jobs
    from crossperf.schedule.outcome import Outcome
    from crossperf.schedule.times import RelativeTimes

_KEPT = " (some seconds; it is kept for the next time)"
_OTHER_JOBS = "the predictors let different numbers of jobs run, so their metrics are not of the same jobs."


@click.group()
def schedule() -> None:
    """Place jobs where they should run."""


@schedule.command()
@click.option("--truth", type=PATH, required=True, help="True times: .csv or .json by workload, or a runs table.")
@click.option(
    "--predictions",
    default="ideal",
    metavar="LIST",
    help="Of ideal, app-average, machine-average, a table like the truth, or a model's folder (with --runs).",
)
@click.option("--machines", type=PATH, required=True, help="CSV: machine,size and facts of a node.")
@click.option("--jobs", "n_jobs", required=True, metavar="N|TRACE", help="Draw N jobs, or read a trace: .swf(.gz), ...")
@click.option(
    "--policy",
    default="turnaround,considerate",
    metavar="LIST",
    help="Names or FILE.py:FUNCTION.",
    shell_complete=completing(policies, several=True),
)
@seed("jobs, workloads and policies")
@click.option("--seeds", type=click.IntRange(1, 1000), help="With --compare: number of seeds, from --seed on.  [10]")
@click.option("--compare", "comparing", is_flag=True, help="Over several seeds, and say which differences are real.")
@schedule_jobs.options
@click.option("--cells", help="What a CSV holds: speedup or relative-time.  [speedup below 'Args']")
@click.option("--reference", help="Platform of a runs table that --truth is relative to.  [the most measured]")
@click.option("--runs", "runs_file", type=PATH, help="Runs that a model predicts from.")
@click.option("--source", help="Platform whose runs a model predicts from.  [the most measured]")
@click.option(
    "--figure", "figure_file", type=NEW_FILE, help="Draw the simulations, one above another: .png, .svg or .pdf."
)
@click.option(
    "--colour-by",
    type=click.Choice(["application", "platform"]),
    default="application",
    show_default=True,
    help="With --figure: what the colours of up to 300 jobs tell; of more jobs, clusters are drawn.",
)
@workers_options("--processes")
@JSON
def simulate(
    truth: Path,
    predictions: str,
    machines: Path,
    n_jobs: str,
    policy: str,
    seed: int,
    seeds: int | None,
    comparing: bool,
    utilisation: float | None,
    processors_per_node: int | None,
    share_nodes: bool,
    map_file: Path | None,
    feedback: str | None,
    cells: str | None,
    reference: str | None,
    runs_file: Path | None,
    source: str | None,
    figure_file: Path | None,
    colour_by: str,
    json_file: Path | None,
    **rules_given: Any,
) -> None:
    """Simulate clusters under policies that see predictions while the truth decides."""
    from crossperf.schedule import policies, readers
    from crossperf.schedule.compare import compare
    from crossperf.schedule.simulate import prepare
    from crossperf.schedule.simulate import simulate as run
    from crossperf.schedule.times import aligned

    _check(figure_file, seeds, comparing)
    working = Working(rules_given, json_file, "--processes")
    if not comparing:
        working.refuse_all("--compare")
    policy_names = list(dict.fromkeys(names(policy) or []))
    for name in policy_names:
        policies.make(name)
    given = (utilisation, processors_per_node, share_nodes, map_file, feedback)
    source_of_jobs = schedule_jobs.JobSource(n_jobs, truth, reference, *given)
    clusters = schedule_jobs.machines_of(source_of_jobs, readers.read_machines(machines))
    true_times = readers.read_times(truth, cells=cells, reference=reference)
    asked_for = list(dict.fromkeys(names(predictions) or []))
    predicted = [_predictions(name, true_times, cells, runs_file, source) for name in asked_for]
    shared = {name for name, count in Counter(table.name for table in predicted).items() if count > 1}
    # Tables that share a name go by what the user wrote.
    named = zip(asked_for, predicted, strict=True)
    predicted = [replace(table, name=written) if table.name in shared else table for written, table in named]
    if not policy_names or not predicted:
        raise SettingsError("--policy and --predictions: expected at least one of each.")
    true_times, *predicted = aligned(true_times, *predicted)
    rules = schedule_jobs.rules_of(rules_given, drawn=n_jobs.isdecimal())
    jobs_of = schedule_jobs.jobs_of(source_of_jobs, clusters, true_times)
    with announced(f"compiling the simulator for this machine, once{_KEPT}"):
        prepare(rules)
    if comparing:
        with working.study() as (workers, kept):
            with progress_bar("simulating") as progress:
                tables = (clusters, true_times, predicted, policy_names, range(seed, seed + (seeds or 10)))
                how: dict[str, Any] = {"rules": rules, "progress": progress, "workers": workers, "kept": kept}
                result = compare(jobs_of, *tables, **how)
            _show_comparison(result, jobs_of(seed), true_times, json_file)
    else:
        jobs = jobs_of(seed)
        outcomes = []
        with progress_line() as show:
            for name, table in itertools.product(policy_names, predicted):
                show(f"simulating {len(jobs):,} jobs: {name} with {table.name}")
                outcomes.append(run(jobs, clusters, true_times, table, name, rules=rules, seed=seed))
            show(None)
        _show_outcomes(outcomes, true_times, figure_file, colour_by, json_file)


def _check(figure_file: Path | None, seeds: int | None, comparing: bool) -> None:
    """Raise where options do not go together, before anything takes time."""
    from crossperf.report.figures.drawn import refuse_unless_figure

    draw_into_files()
    if figure_file and comparing:
        raise SettingsError("--figure: found with --compare, expected one of them: a figure shows single simulations.")
    if figure_file:
        refuse_unless_figure(figure_file)
    if seeds and not comparing:
        raise SettingsError("--seeds: found without --compare, expected both: one seed is simulated without.")


def _predictions(
    name: str, truth: RelativeTimes, cells: str | None, runs_file: Path | None, source: str | None
) -> RelativeTimes:
    from crossperf.schedule.predictors import PREDICTORS
    from crossperf.schedule.readers import read_times

    if name in PREDICTORS:
        return PREDICTORS[name](truth)
    if Path(name).is_dir():
        return _of_model(Path(name), truth, runs_file, source)
    if not Path(name).exists():
        raise SettingsError(
            f"--predictions: found {name!r}{did_you_mean(name, PREDICTORS)}, expected a table of times, a model's "
            f"folder, or one of {some_of(PREDICTORS)}."
        )
    return read_times(name, cells=cells)


def _of_model(folder: Path, truth: RelativeTimes, runs_file: Path | None, source: str | None) -> RelativeTimes:
    """Return a model's predictions from the runs on one platform, on the scale of the truth."""
    import polars as pl

    from crossperf.model import store
    from crossperf.prediction.answer import predict
    from crossperf.runs.table import from_frame, read
    from crossperf.schedule.predictors import from_predictions

    if runs_file is None:
        raise SettingsError(f"--predictions {folder}: a model predicts from runs, expected --runs TABLE with them.")
    saved, table = store.load(folder), read(runs_file)
    known = [name for name in saved.sources if name in truth.modes]
    runs_on = table.select("platform").to_series()
    counts = {name: int((runs_on == name).sum()) for name in known}
    source = source or max(counts, key=lambda name: counts[name], default=None)
    if source not in counts or not counts[source]:
        raise SettingsError(
            f"--source: found no run of {runs_file} on {source!r}, expected runs on a platform that both {folder} and "
            f"{truth.name} know: {some_of(known, 20) or 'there is none'}."
        )
    rows = table.succeeded.filter(pl.col("platform") == source)
    answer = predict(saved, from_frame(rows, name=str(runs_file)), level=0.8)
    for note in answer.notes:
        say(f"note: {note}")
    predicted = from_predictions(answer.predictions, truth, source, name=folder.name)
    if unknown := sum(own.is_unknown for own in answer.predictions):
        say(f"note: {unknown:,} of {len(answer):,} workloads look unknown to {folder} and stay on {source}.")
    if limited := sum(bool(own.cannot) for own in answer.predictions):
        say(f"note: {limited:,} of {len(answer):,} workloads have no version for some platforms and never go there.")
    seen = set(saved.workloads)
    if learned := sum(workload in seen for workload in predicted.workloads):
        total = len(predicted.workloads)
        say(f"caveat: {folder} was trained on {learned:,} of these {total:,} workloads, so it does better here.")
    return predicted


def _show_outcomes(
    outcomes: Sequence[Outcome], truth: RelativeTimes, figure_file: Path | None, by: str, json_file: Path | None
) -> None:
    from crossperf.report import schedule as report

    apps = [app for app, _ in truth.workloads] if by == "application" else None
    picture = report.draw(outcomes, apps) if figure_file else None
    report.outcomes(outcomes)
    _say_notes(outcomes[0].jobs, truth)
    _say_doubts(outcomes)
    if figure_file and picture:
        picture.save(figure_file)
        wrote(figure_file)
    if json_file:
        write_facts(json_file, lambda: {"simulations": [outcome.to_json() for outcome in outcomes]})
    if not any(outcome.placed.any() for outcome in outcomes):
        raise CrossperfError("no job can be placed, for the reasons above. Check machines, times and --wall-limit.")


def _say_notes(jobs: Jobs, truth: RelativeTimes) -> None:
    for note in (*jobs.notes, *truth.notes):
        say(f"note: {note}")
    for reason, count in jobs.left_out.items():
        say(f"note: {jobs.name}: {count:,} lines were left out: {reason}.")
    if jobs.ignored:
        say(f"note: {jobs.name}: ignored, though the trace tells them: {', '.join(jobs.ignored)}.")


def _say_doubts(outcomes: Sequence[Outcome]) -> None:
    from crossperf.schedule.timeline import MOST_HITS

    # Which jobs can go somewhere depends on what is predicted, not on the policy.
    nowhere = {f" with {outcome.predictor}": outcome.unplaceable() for outcome in outcomes}
    same = all(counts == outcomes[0].unplaceable() for counts in nowhere.values())
    for who, reasons in {"": outcomes[0].unplaceable()}.items() if same else nowhere.items():
        for reason, count in reasons.items():
            say(f"note: {count:,} of {len(outcomes[0].jobs):,} jobs could go nowhere{who}: {reason}.")
    if not same:
        say(f"caveat: {_OTHER_JOBS}")
    for outcome in outcomes:
        counts, who = outcome.counts(), f"{outcome.policy} with {outcome.predictor}"
        _say_killed(who, counts.killed)
        if counts.deadlines_missed:
            say(f"note: {who}: {counts.deadlines_missed:,} jobs ended after their deadline.")
        if counts.failures:
            lost = f"{counts.given_up:,} were given up after {MOST_HITS} times" if counts.given_up else "all ran again"
            say(f"note: {who}: nodes failed under jobs {counts.failures:,} times; {lost}.")


def _say_killed(who: str, killed: int) -> None:
    if killed:
        say(f"caveat: {who}: {killed:,} jobs were ended at their limit and count as run until then.")


def _show_comparison(result: Comparison, jobs: Jobs, truth: RelativeTimes, json_file: Path | None) -> None:
    from crossperf.report import schedule as report

    report.comparison(result)
    _say_notes(jobs, truth)
    if result.counts.unplaceable:
        say(f"note: {result.counts.unplaceable:,} of {result.counts.jobs:,} placements went nowhere, over all.")
    if len({scores.counts.placed for scores in result.scores}) > 1:
        say(f"caveat: {_OTHER_JOBS}")
    for scores in result.scores:
        _say_killed(scores.name, scores.counts.killed)
    write_facts(json_file, result.to_json)
