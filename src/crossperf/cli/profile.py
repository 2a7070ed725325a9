"""``crossperf profile``: run a command, count what it does, and add it to a runs table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from crossperf import platforms
from crossperf.cli.appending import RUNS, append, kept_as_they_come, refuse_unwritable
from crossperf.cli.completion import completing, kept_platforms
from crossperf.cli.modelled import ModelPlatforms
from crossperf.cli.options import PATH, REGISTRY, SUCCESS
from crossperf.cli.output import JSON, json_on_stdout, progress_line, say, tell, write_facts
from crossperf.errors import CrossperfError, SettingsError

_MODEL_HELP = "A model whose name for this machine is taken; the default is ./model where that is one."


@click.command(
    context_settings={"allow_interspersed_args": False},
    epilog="Such as: crossperf profile --repeats 5 -o runs.jsonl -- ./app --size 100",
)
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--platform",
    help="Name of this platform; the default is its entry under 'crossperf platforms'.",
    shell_complete=completing(kept_platforms),
)
@click.option("--platform-class", help="cpu or gpu; the default is gpu where the command launched kernels.")
@click.option("--model", "model_folder", type=PATH, help=_MODEL_HELP)
@click.option("--app", help="Name of the application; the default is the program's, not that of its launcher.")
@click.option("--input", help="Input in words; the default is the command's arguments.")
@click.option("--repeats", default=3, help="Executions for the runtime, spread between those that count.")
@click.option("--backend", help="auto, quick, os, or names from --list: perf,valgrind.  [default: auto]")
@click.option("--quick", is_flag=True, help="Count with the system and perf alone, which takes seconds.")
@click.option("--cache", help="Caches for valgrind to simulate: 'D1=32768,8,64 LL=33554432,16,64' (bytes, ways, line).")
@click.option("--multiplex", is_flag=True, help="All hardware events in one execution, scaled by perf.")
@click.option("--launch-limit", type=click.IntRange(1), help="Kernel launches that ncu counts, from the first on.")
@click.option("--timeout", type=float, help="Seconds after which an execution is ended and counts as failed.")
@SUCCESS
@click.option("--count-limit", type=float, default=600.0, help="Seconds for all counting together.")
@click.option("--count-timeout", "count_limit", type=float, hidden=True)
@click.option("--whole", is_flag=True, help="Measure the whole program, although it marks a region.")
@click.option("--ranks", type=int, help="MPI ranks, for the record; the default is what the launcher is given.")
@click.option("--threads", type=int, help="Threads, for the record.")
@click.option("--list", "list_", is_flag=True, help="Tell which back ends work here, and why the others do not.")
@RUNS
@REGISTRY
@JSON
def profile(
    command: tuple[str, ...],
    list_: bool,
    quick: bool,
    backend: str | None,
    output: Path,
    registry: Path,
    model_folder: Path | None,
    json_file: Path | None,
    **settings: Any,
) -> int:
    """Run COMMAND for its time, and once more under what counts; add one run for each repeat.

    What COMMAND prints, reads and returns stays its own: crossperf speaks on stderr, after it.
    """
    from crossperf.collect import backends, summary, unfinished
    from crossperf.collect.guard import Guard
    from crossperf.collect.profile import profile as profile_command

    if list_:
        choosing = (settings[name] for name in ("cache", "multiplex", "launch_limit"))
        tools = backends.backends(platforms.facts_of_this_machine(), *choosing)
        tell(*summary.choices(backends.choices(tools)))
        return 0
    if quick and backend:
        raise SettingsError(f"--quick: found beside --backend {backend}, expected one of the two. Leave one out.")
    refuse_unwritable(output)
    model = ModelPlatforms.of(model_folder, registry)
    # With --json - the facts are alone on stdout, and what the command prints there goes where the talk goes.
    settings["stdout"] = 2 if json_on_stdout() else None
    how = backends.QUICK if quick else backend or backends.AUTO
    with Guard() as guard, kept_as_they_come(output, guard) as keep:
        with progress_line() as progress:
            talk: dict[str, Any] = {"say": say, "progress": progress, "keep": keep, "guard": guard}
            result = profile_command(command, backend=how, registry=registry, **talk, **settings)
        if model and settings["platform"] is None and result.executions:
            result = replace(result, platform_name=model.name_of(result, say))
        if result.executions:
            _add(registry, result.platform)
        for line in summary.lines(result):
            say(line)
        runs = append(output, result.runs, unfinished.add_numbered)
    write_facts(json_file, lambda: {"not_counted": dict(result.not_counted), "runs": [run.to_json() for run in runs]})
    return result.exit_status


def _add(registry: Path, platform: platforms.Platform) -> None:
    """Add a platform that is not kept yet, so that its facts go with the runs."""
    if platform.name in {kept.name for kept in platforms.read(registry)}:
        return
    if platform.platform_class == "gpu" and not platform.facts.gpus:
        say(f"warning: platform {platform.name} was not added: this machine shows no GPU; its runs are recorded")
        return
    try:
        platforms.add(registry, platform)
        say(f"added platform {platform.name} to {registry}")
    except CrossperfError as error:
        say(f"warning: platform {platform.name} was not added ({error}); its runs are recorded all the same")
