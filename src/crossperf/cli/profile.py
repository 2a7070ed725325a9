"""``crossperf profile``: run a command, count what it does, and add it to a runs table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from crossperf import platforms
from crossperf.cli.appending import RUNS, append, numbered, refuse_unwritable
from crossperf.cli.completion import completing, kept_platforms
from crossperf.cli.options import REGISTRY
from crossperf.cli.output import JSON, say, write_facts
from crossperf.errors import CrossperfError


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
@click.option("--input", help="Input in words; the default is the command's arguments.")
@click.option("--repeats", default=3, help="Executions for the runtime.")
@click.option("--backend", default="auto", help="auto, os, or names from --list: perf,valgrind.")
@click.option("--cache", help="Caches for valgrind to simulate: 'D1=32768,8,64 LL=33554432,16,64' (bytes, ways, line).")
@click.option("--multiplex", is_flag=True, help="All hardware events in one execution, scaled by perf.")
@click.option("--launch-limit", type=click.IntRange(1), help="Kernel launches that ncu counts, from the first on.")
@click.option("--timeout", type=float, help="Seconds after which an execution is ended and counts as failed.")
@click.option("--count-timeout", type=float, help="The same for an execution under a tool that counts.")
@click.option("--whole", is_flag=True, help="Measure the whole program, although it marks a region.")
@click.option("--ranks", type=int, help="MPI ranks, for the record.")
@click.option("--threads", type=int, help="Threads, for the record.")
@click.option("--list", "list_", is_flag=True, help="Tell which back ends work here, and why the others do not.")
@RUNS
@REGISTRY
@JSON
def profile(
    command: tuple[str, ...], list_: bool, output: Path, registry: Path, json_file: Path | None, **settings: Any
) -> int:
    """Run COMMAND for its time, then once more under what counts; add one run for each repeat.

    What COMMAND prints, reads and returns stays its own: crossperf speaks on stderr, after it.
    """
    from crossperf.collect import backends, summary
    from crossperf.collect.profile import profile as profile_command

    if list_:
        choosing = (settings[name] for name in ("cache", "multiplex", "launch_limit"))
        tools = backends.backends(platforms.facts_of_this_machine(), *choosing)
        click.echo("\n".join(summary.choices(backends.choices(tools))))
        return 0
    refuse_unwritable(output)
    result = profile_command(command, registry=registry, say=say, **settings)
    if result.executions:
        _keep(registry, result.platform)
    runs = numbered(result.runs, output)
    for line in summary.lines(result):
        say(line)
    append(output, runs)
    write_facts(json_file, lambda: {"not_counted": dict(result.not_counted), "runs": [run.to_json() for run in runs]})
    return result.exit_status


def _keep(registry: Path, platform: platforms.Platform) -> None:
    """Add a platform that is not kept yet, so that its facts go with the runs."""
    if platform.name in {kept.name for kept in platforms.read(registry)}:
        return
    try:
        platforms.add(registry, platform)
        say(f"added platform {platform.name} to {registry}")
    except CrossperfError as error:
        say(f"warning: platform {platform.name} was not added ({error}); its runs are recorded all the same")
