"""``crossperf profile``: run a command, count what it does, and add it to a runs table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crossperf.cli.appending import RUNS, append, numbered, refuse_unwritable
from crossperf.cli.completion import completing, kept_platforms
from crossperf.cli.options import REGISTRY
from crossperf.cli.output import JSON, say, write_facts
from crossperf.errors import CrossperfError, SettingsError

if TYPE_CHECKING:
    from crossperf.platforms import Platform


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    epilog="Such as: crossperf profile --repeats 5 -o runs.jsonl -- ./app --size 100",
)
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--platform",
    help="Name of this platform; the default is its entry under 'crossperf platforms'.",
    shell_complete=completing(kept_platforms),
)
@click.option("--platform-class", help="cpu or gpu; the default is gpu where the command launched kernels.")
@click.option("--app", help="Name of the application; the default is the program's.")
@click.option("--input", "input_", help="Input in words; the default is the command's arguments.")
@click.option("--repeats", default=3, show_default=True, help="Executions for the runtime.")
@click.option("--backend", default="auto", show_default=True, help="auto, os, or names from --list: perf,valgrind.")
@click.option("--cache", help="Caches for valgrind to simulate: 'D1=32768,8,64 LL=33554432,16,64' (bytes, ways, line).")
@click.option("--multiplex", is_flag=True, help="All hardware events in one execution, scaled by perf.")
@click.option("--launch-limit", type=click.IntRange(1), help="Kernel launches that ncu counts, from the first on.")
@click.option("--timeout", type=float, help="Seconds after which an execution is ended and counts as failed.")
@click.option("--count-timeout", type=float, help="The same for an execution under a tool that counts.")
@click.option("--ranks", type=int, help="MPI ranks, for the record.")
@click.option("--threads", type=int, help="Threads, for the record.")
@click.option("--list", "list_", is_flag=True, help="Tell which back ends work here, and why the others do not.")
@RUNS
@REGISTRY
@JSON
def profile(
    command: tuple[str, ...],
    platform: str | None,
    platform_class: str | None,
    app: str | None,
    input_: str | None,
    repeats: int,
    backend: str,
    cache: str | None,
    multiplex: bool,
    launch_limit: int | None,
    timeout: float | None,
    count_timeout: float | None,
    ranks: int | None,
    threads: int | None,
    list_: bool,
    output: Path,
    registry: Path,
    json_file: Path | None,
) -> int:
    """Run COMMAND for its time, then once more under what counts; add one run for each repeat.

    What COMMAND prints, reads and returns stays its own: crossperf speaks on stderr, after it.
    """
    from crossperf import platforms as known_platforms
    from crossperf.collect import profile as collect
    from crossperf.collect import summary
    from crossperf.collect.valgrind import parse_caches

    facts = known_platforms.facts_of_this_machine()
    tools = collect.backends(facts, parse_caches(cache) if cache else None, multiplex, launch_limit)
    if list_:
        click.echo("\n".join(summary.choices(collect.choices(tools))))
        return 0
    refuse_unwritable(output)
    job = collect.Job.of(
        command,
        platform=platform,
        platform_class=platform_class,
        app=app,
        input=input_,
        repeats=repeats,
        time_limit_s=_seconds("--timeout", timeout),
        count_limit_s=_seconds("--count-timeout", count_timeout),
        ranks=ranks,
        threads=threads,
    )
    result = collect.profile(job, tools, facts, backend, say)
    if result.executions:
        here = _this_platform(registry, facts, platform, result.platform_class)
        result.job = replace(job, platform=here.name)
    runs = numbered(result.runs, output)
    for line in summary.lines(result):
        say(line)
    append(output, runs)
    write_facts(json_file, lambda: {"not_counted": result.not_counted, "runs": [run.to_json() for run in runs]})
    return result.exit_status


def _seconds(option: str, value: float | None) -> float | None:
    if value is not None and not value > 0:
        raise SettingsError(f"{option}: found {value:g}, expected seconds above 0.")
    return value


def _this_platform(registry: Path, facts: dict[str, Any], name: str | None, platform_class: str) -> Platform:
    """Return the entry of this machine; one that is not kept yet is added, so that facts go with runs."""
    from crossperf import platforms

    kept = platforms.read(registry)
    by_name = {entry.name: entry for entry in kept}
    here = by_name.get(name) if name else platforms.matching(kept, facts, platform_class)
    if here:
        return here
    new = platforms.Platform(name or platforms.name_for(facts, platform_class), platform_class, facts)
    try:
        platforms.add(registry, new)
        say(f"added platform {new.name} to {registry}")
    except CrossperfError as error:
        say(f"warning: platform {new.name} was not added ({error}); its runs are recorded all the same")
    return new
