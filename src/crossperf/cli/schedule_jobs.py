"""The jobs of a simulation from the command line: drawn or of a trace, and the rules that they run under."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from crossperf.cli.options import PATH
from crossperf.errors import SettingsError
from crossperf.plain import shown, whole

if TYPE_CHECKING:
    from crossperf.schedule.jobs import Jobs
    from crossperf.schedule.machines import Machines
    from crossperf.schedule.rules import Rules
    from crossperf.schedule.times import RelativeTimes

#: The load of jobs that are drawn.
_DRAWN_LOAD = 0.9
_HOUR_S = 3600.0

_TRACE = (
    click.option("--utilisation", type=float, help="Load: of drawn jobs [0.9], or stretch a trace's arrivals to it."),
    click.option("--processors-per-node", type=click.IntRange(1), help="Or GPUs, of a trace.  [by its header, else 1]"),
    click.option("--share-nodes", is_flag=True, help="Count a trace's processors or GPUs: jobs take parts of nodes."),
    click.option("--map", "map_file", type=PATH, help="CSV: executable, user or queue of a trace to app and input."),
    click.option("--feedback", help="Jobs of an SWF trace arrive after others end: jobs (as it says) or users."),
)
_RULES = (
    click.option("--limits", default="double", help="A limit that is too short: double it, or strict."),
    click.option("--wall-limit", "wall_limit_s", type=float, help="Longest limit, in s.  [43,200 with drawn jobs]"),
    click.option("--deadline", type=float, help="Each job should end within this many times its requested time."),
    click.option("--backfill", default="easy", help="easy, shortest (of EASY's, first), conservative, or none."),
    click.option("--ageing-hours", type=float, help="A unit of priority is worth this many hours of waiting."),
    click.option("--maintenance", type=PATH, help="CSV of planned outages: machine,start_s,end_s and perhaps nodes."),
    click.option("--node-mtbf-hours", type=float, help="Nodes fail at random, each once in this time in the mean."),
    click.option("--repair-hours", type=float, default=4.0, help="Until a node that failed is back."),
)


class JobSource(NamedTuple):
    """Where jobs come from: a number or a file, and how it is read."""

    what: str
    truth: Path
    reference: str | None
    utilisation: float | None
    per_node: int | None
    share_nodes: bool
    map_file: Path | None
    feedback: str | None


def options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say which jobs arrive and under which rules they run."""
    for option in reversed((*_TRACE, *_RULES)):
        function = option(function)
    return function


def rules_of(given: dict[str, Any], *, drawn: bool) -> Rules:
    """Return the rules that options name; hours become seconds, and drawn jobs have a longest limit."""
    from crossperf.schedule.readers import read_maintenance
    from crossperf.schedule.rules import LEAST_MTBF_S, Rules
    from crossperf.schedule.synthetic import LONGEST_S

    for name in ("ageing", "node_mtbf", "repair"):
        hours = given.pop(f"{name}_hours")
        if hours is not None and not hours > 0:
            flag = f"--{name.replace('_', '-')}-hours"
            raise SettingsError(f"{flag}: found {hours:g}, expected hours above 0.")
        given[f"{name}_s"] = hours if hours is None else _HOUR_S * hours
    if given["node_mtbf_s"] is not None and given["node_mtbf_s"] < LEAST_MTBF_S:
        least = LEAST_MTBF_S / _HOUR_S
        raise SettingsError(
            f"--node-mtbf-hours: found {given['node_mtbf_s'] / _HOUR_S:g}, expected {least:.3f} or more."
        )
    windows = given.pop("maintenance")
    if given["wall_limit_s"] is None and drawn:
        given["wall_limit_s"] = LONGEST_S
    return Rules(**given, maintenance=read_maintenance(windows) if windows else ())


def machines_of(source: JobSource, machines: Machines) -> Machines:
    """Return the machines, counted in processors where jobs share nodes."""
    if not source.share_nodes:
        return machines
    if source.per_node is None:
        raise SettingsError("--share-nodes: expected --processors-per-node with the processors or GPUs of a node.")
    return machines.shared(source.per_node)


def jobs_of(source: JobSource, machines: Machines, truth: RelativeTimes) -> Callable[[int], Jobs]:
    """Return what gives the jobs of a seed: drawn ones, or always those of a trace, its arrivals perhaps stretched."""
    from crossperf.schedule.mapping import mapped, read_map
    from crossperf.schedule.synthetic import MOST_JOBS, draw, with_load
    from crossperf.schedule.traces import read_trace

    if source.what.isdecimal():
        _refuse_for_drawn(source)
        number = whole(source.what)
        if number is None:
            raise SettingsError(f"--jobs: found {shown(source.what)}, expected 1 to {MOST_JOBS:,}, or a trace.")
        load = _DRAWN_LOAD if source.utilisation is None else source.utilisation
        return lambda seed: draw(number, machines, truth, utilisation=load, seed=seed)
    if not Path(source.what).is_file():
        raise SettingsError(f"--jobs: {source.what}: no such file, expected a number or a trace (.swf, .csv, ...).")
    trace = read_trace(
        source.what,
        per_node=source.per_node,
        share_nodes=source.share_nodes,
        feedback=source.feedback,
        throughputs=source.truth,
        reference=source.reference,
    )
    if source.map_file:
        trace = mapped(trace, read_map(source.map_file), source.map_file.name)
    trace = _with_what_is_ignored(trace, source, machines)
    if source.utilisation is None:
        return lambda _: trace
    load = source.utilisation
    return lambda seed: with_load(trace, machines, truth, load, seed=seed)


def _refuse_for_drawn(source: JobSource) -> None:
    given = {"--map": source.map_file, "--feedback": source.feedback, "--share-nodes": source.share_nodes}
    for flag, value in given.items():
        if value:
            raise SettingsError(f"{flag}: found with jobs that are drawn, expected --jobs TRACE.")


def _with_what_is_ignored(jobs: Jobs, source: JobSource, machines: Machines) -> Jobs:
    """Return the jobs with the names of what their trace tells and nobody uses."""
    ignored = list(jobs.ignored)
    if jobs.memory_gb is not None and not any(machines.memory_gb):
        ignored.append("memory (memory_gb of --machines)")
    if jobs.queue is not None and len(set(jobs.queue.tolist()) - {-1}) > 1 and not source.map_file:
        ignored.append("queues (--map)")
    return replace(jobs, ignored=tuple(ignored))
