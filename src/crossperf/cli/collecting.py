"""Commands that make runs: profiling a command, importing profiles, and the platforms that runs belong to."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crossperf.cli.words import JSON, SETTINGS, say, wrote
from crossperf.errors import CollectError, CrossperfError, SettingsError
from crossperf.files import whole
from crossperf.records import OK

if TYPE_CHECKING:
    from crossperf.importers.detect import Imported
    from crossperf.platforms import Platform
    from crossperf.records import Run

RUNS = click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default=Path("runs.jsonl"),
    show_default=True,
    help="Runs are added to the end of this file.",
)
REGISTRY = click.option(
    "--file",
    "registry",
    type=click.Path(path_type=Path),
    envvar="CROSSPERF_PLATFORMS",
    help="Where platforms are kept; the default is platforms.json in the folder for settings.",
)


#: An import of many runs shows these first ones; all are in the file.
_SHOWN = 20


def _registry(given: Path | None) -> Path:
    if given:
        return given
    settings = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return settings / "crossperf" / "platforms.json"


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option("--platform", help="Name of this platform; the default is its entry under 'crossperf platforms'.")
@click.option("--platform-class", help="cpu or gpu; the default is gpu where the command launched kernels.")
@click.option("--app", help="Name of the application; the default is the program's.")
@click.option("--input", "input_", help="Input in words; the default is the command's arguments.")
@click.option("--repeats", default=3, show_default=True, help="Executions for the runtime.")
@click.option("--backend", default="auto", show_default=True, help="auto, os, or names from --list: perf,valgrind.")
@click.option("--cache", help="Caches for valgrind to simulate: 'D1=32768,8,64 LL=33554432,16,64' (bytes, ways, line).")
@click.option("--multiplex", is_flag=True, help="All hardware events in one execution, scaled by perf.")
@click.option("--launch-limit", type=click.IntRange(1), help="ncu counts the first so many kernel launches alone.")
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
    registry: Path | None,
    json_file: Path | None,
) -> int:
    r"""Run COMMAND for its time, then once more under what counts; add one run for each repeat.

    What COMMAND prints, reads and returns stays its own: crossperf speaks on stderr, after it.

    \b
    crossperf profile --repeats 5 -o runs.jsonl -- ./app --size 100
    """
    from crossperf import platforms as known_platforms
    from crossperf.collect import backends, summary
    from crossperf.collect.profile import profile as profile_command
    from crossperf.files import write_json

    if list_:
        tools = backends.backends(known_platforms.facts_of_this_machine(), cache, multiplex, launch_limit)
        click.echo("\n".join(summary.choices(backends.choices(tools))))
        return 0
    _refuse_unwritable(output)
    result = profile_command(
        command,
        app=app,
        input=input_,
        platform=platform,
        platform_class=platform_class,
        repeats=repeats,
        backend=backend,
        cache=cache,
        multiplex=multiplex,
        launch_limit=launch_limit,
        timeout=timeout,
        count_timeout=count_timeout,
        ranks=ranks,
        threads=threads,
        registry=_registry(registry),
        say=say,
    )
    if result.executions:
        _keep(_registry(registry), result.platform)
    runs = _numbered(result.runs, output)
    for line in summary.lines(result):
        say(line)
    _append(output, runs)
    if json_file:
        write_json(
            json_file, {"format": 1, "not_counted": dict(result.not_counted), "runs": [run.to_json() for run in runs]}
        )
        wrote(json_file)
    return result.exit_status


def _keep(registry: Path, platform: Platform) -> None:
    """Add a platform that is not kept yet, so that its facts go with the runs."""
    from crossperf import platforms

    if platform.name in {kept.name for kept in platforms.read(registry)}:
        return
    try:
        platforms.add(registry, platform)
        say(f"added platform {platform.name} to {registry}")
    except CrossperfError as error:
        say(f"warning: platform {platform.name} was not added ({error}); its runs are recorded all the same")


def _refuse_unwritable(path: Path) -> None:
    """Say before anything is measured that there is no place for it."""
    if path.is_dir():
        raise CollectError(f"{path}: found a folder, expected a file for the runs. Choose another name with -o.")
    if path.suffix not in (".jsonl", "") and not path.exists():
        raise CollectError(f"{path}: found the ending {path.suffix!r}, expected .jsonl: runs are added line by line.")
    place = path if path.exists() else path.parent
    if not place.exists():
        raise CollectError(f"{path}: the folder {place} does not exist. Make it, or choose another with -o.")
    try:
        if path.exists():
            os.close(os.open(path, os.O_WRONLY | os.O_APPEND))
        elif not os.access(place, os.W_OK):
            raise PermissionError
    except OSError as error:
        reason = f" ({error.strerror})" if error.strerror else ""
        raise CollectError(f"{path}: may not be written{reason}. Choose another place with -o.") from error


def _numbered(runs: Sequence[Run], path: Path) -> list[Run]:
    """Return runs whose repeats go on from those that the file holds."""
    from crossperf.runs.jsonl import next_repeat

    if not runs:
        return []
    first = next_repeat(path, runs[0].app, runs[0].input, runs[0].platform)
    return [replace(run, repeat=first + number) for number, run in enumerate(runs)]


def _append(path: Path, runs: Sequence[Run]) -> None:
    """Add runs to a file; what a full disk or a lost right keeps out is put elsewhere and named."""
    from crossperf.runs.jsonl import append, line

    if not runs:
        return
    try:
        append(path, runs)
    except OSError as error:
        text = "".join(map(line, runs))
        try:
            descriptor, rescue = tempfile.mkstemp(prefix="crossperf-", suffix=".jsonl")
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
        except OSError:
            click.echo(text, nl=False, err=True)
            rescue = "the lines above"
        advice = f"Mend that, then add them: cat {rescue} >> {path}"
        raise CollectError(
            f"{path}: cannot be written ({error.strerror}); the runs are kept in {rescue}. {advice}"
        ) from error
    say(f"added {_several(len(runs), 'run')} to {path}")


@click.command("import")
@click.argument("format_", metavar="FORMAT")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--app", help="Name of the application, above what the files tell.")
@click.option("--input", "input_", help="Input in words, above what the files tell.")
@click.option("--platform", help="Name of the platform, above what the files tell.")
@click.option("--platform-class", help="cpu, gpu or another word.")
@click.option("--map", "mapping", type=click.Path(path_type=Path), help="For FORMAT table: what its columns are.")
@click.option(
    "--regions", type=click.Choice(["whole", "leaf"]), default="whole", show_default=True, help="Caliper only."
)
@RUNS
@JSON
def import_(
    format_: str,
    paths: tuple[Path, ...],
    app: str | None,
    input_: str | None,
    platform: str | None,
    platform_class: str | None,
    mapping: Path | None,
    regions: Any,
    output: Path,
    json_file: Path | None,
) -> None:
    """Add the runs that profilers' files hold to a runs table.

    FORMAT is auto, hpctoolkit, caliper, papi, perf, ncu, rocprof, cross-modeling or table.
    """
    from crossperf.files import write_json
    from crossperf.importers.detect import import_runs

    _refuse_unwritable(output)
    result = import_runs(
        format_,
        paths,
        app=app,
        input=input_,
        platform=platform,
        platform_class=platform_class,
        mapping=mapping,
        regions=regions,
    )
    click.echo("\n".join(_imported(result)))
    for path, note in result.notes:
        say(f"note: {path}: {note}")
    for rejected in result.rejected:
        say(f"left out: {rejected}")
    _append(output, result.runs)
    if json_file:
        facts = {
            "format": 1,
            "runs": [run.to_json() for run in result.runs],
            "notes": [{"path": path, "note": note} for path, note in result.notes],
            "left_out": [str(rejected) for rejected in result.rejected],
        }
        write_json(json_file, facts)
        wrote(json_file)


def _imported(result: Imported) -> list[str]:
    """Return one line for each of the first runs: what it is and what it holds."""
    lines = []
    for run in result.runs[:_SHOWN]:
        seconds = f"{run.runtime_s:.4g} s" if run.runtime_s else "no runtime"
        ranks = f", {_several(run.ranks, 'rank')}" if run.ranks else ""
        counters = _several(len(run.counters), "counter")
        failed = "" if run.status == OK else f", failed: {run.status}"
        lines.append(f"{run.app} {run.input!r} on {run.platform}: {seconds}{ranks}, {counters}{failed}")
    left = len(result.runs) - _SHOWN
    return [*lines, *([f"and {left:,} more runs"] if left > 0 else [])]


def _several(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"


@click.group(invoke_without_command=True)
@REGISTRY
@click.pass_context
def platforms(context: click.Context, registry: Path | None) -> None:
    """List the platforms that are kept; add, show and compare them."""
    from crossperf import platforms as known

    context.obj = _registry(registry)
    if context.invoked_subcommand is not None:
        return
    kept = known.read(context.obj)
    if not kept:
        say(f"no platforms are kept in {context.obj}; add this machine with 'crossperf platforms add NAME'")
    for entry in kept:
        facts = dict(known.describe(entry))
        headlines = _GPU_HEADLINES if entry.platform_class == "gpu" else _HEADLINES
        told = [f"{facts[name]} {unit}".strip() for name, unit in headlines.items() if name in facts]
        click.echo(f"{entry.name:<28} {entry.platform_class or '':<5} {', '.join(told)}")


#: What a line of the list tells of a platform, and the word that goes with it.
_HEADLINES = {"cpu_model": "", "cores": "cores", "memory_bytes": "memory", "price_per_hour": "an hour"}
_GPU_HEADLINES = {"gpu_model": "", "gpu_memory_bytes": "memory", "cpu_model": "beside it", "price_per_hour": "an hour"}


@platforms.command("add")
@click.argument("name", required=False)
@click.option("--class", "platform_class", default="cpu", show_default=True, help="cpu, gpu or another word.")
@SETTINGS
@click.option("--overwrite", is_flag=True, help="Replace the entry of that name.")
@click.pass_obj
def platforms_add(
    registry: Path, name: str | None, platform_class: str, settings: tuple[str, ...], overwrite: bool
) -> None:
    """Gather the facts of this machine into an entry; NAME is made from them where it is left out.

    Further facts with --set, such as price_per_hour=1.2.
    """
    from crossperf import platforms as known

    facts = known.facts_of_this_machine()
    entry = known.Platform(name or known.name_for(facts, platform_class), platform_class, facts)
    for pair in settings:
        entry = known.set_fact(entry, pair)
    known.add(registry, entry, overwrite=overwrite)
    _show_facts(entry)
    wrote(registry)


def _show_facts(entry: Platform) -> None:
    from crossperf import platforms as known

    click.echo(entry.name)
    for fact, text in known.describe(entry):
        click.echo(f"  {fact:<24} {text}")


@platforms.command("show")
@click.argument("name", required=False)
@JSON
@click.pass_obj
def platforms_show(registry: Path, name: str | None, json_file: Path | None) -> None:
    """Show every fact of an entry; without NAME those of this machine, kept or not."""
    from crossperf.files import write_json

    entry = _entry(registry, name)
    _show_facts(entry)
    if json_file:
        write_json(json_file, {"format": 1, **entry.to_json()})
        wrote(json_file)


@platforms.command("compare")
@click.argument("first")
@click.argument("second")
@JSON
@click.pass_obj
def platforms_compare(registry: Path, first: str, second: str, json_file: Path | None) -> None:
    """Show two entries side by side, with the second over the first; 'here' is this machine."""
    from crossperf import platforms as known
    from crossperf.files import write_json
    from crossperf.plain import to_json

    rows = known.compare(_entry(registry, first), _entry(registry, second))
    shown = [(row.fact, *row.texts, f"{row.ratio:.3g}" if row.ratio is not None else "") for row in rows]
    table = [("", first, second, "ratio"), *shown]
    widths = [max(len(line[column]) for line in table) for column in range(3)]
    for line in table:
        cells = [cell.ljust(width) for cell, width in zip(line, widths, strict=False)]
        click.echo("  ".join([*cells, line[3]]).rstrip())
    if json_file:
        write_json(json_file, {"format": 1, "a": first, "b": second, "facts": to_json(rows)})
        wrote(json_file)


def _entry(registry: Path, name: str | None) -> Platform:
    from crossperf import platforms as known

    if name is None or name == "here":
        facts = known.facts_of_this_machine()
        return known.Platform(known.name_for(facts), "cpu", facts)
    return known.find(known.read(registry), name)


@click.command()
@click.argument("spec_file", metavar="SPEC", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="The folder of the campaign.")
@click.option("--platform", "names", multiple=True, help="Platforms of SPEC to time here; may be repeated.")
@click.option("--counts", "count_names", multiple=True, help="Counts of SPEC to take here; may be repeated.")
@click.option("--resume", is_flag=True, help="Go on with the campaign that OUTPUT holds.")
@click.option(
    "--jobs", default=1, show_default=True, type=click.IntRange(1), help="Countings under valgrind at a time."
)
@click.option("--minutes", type=click.FloatRange(0, min_open=True), help="Stop after so long; go on with --resume.")
def campaign(
    spec_file: Path,
    output: Path,
    names: tuple[str, ...],
    count_names: tuple[str, ...],
    resume: bool,
    jobs: int,
    minutes: float | None,
) -> int:
    """Time and count a list of inputs on this machine, as SPEC tells, and write OUTPUT/runs.jsonl.

    Without --platform and --counts, all platforms of SPEC and their counts. Every result is kept as it comes: a
    campaign that was killed goes on with --resume.
    """
    from crossperf import campaign as campaigns
    from crossperf.runs.jsonl import line

    spec = campaigns.read(spec_file)
    modes = [spec.mode(name) for name in names or ([] if count_names else spec.modes)]
    unknown = [name for name in count_names if name not in spec.counts]
    if unknown:
        raise SettingsError(f"--counts: found {unknown[0]!r}, expected one of {', '.join(spec.counts)}.")
    sets = [spec.counts[name] for name in count_names or ([] if names else spec.counts)]
    if output.exists() and any(output.iterdir()) and not resume:
        raise CollectError(f"{output}: holds a campaign already. Go on with it by --resume, or choose another folder.")
    output.mkdir(parents=True, exist_ok=True)
    until = None if minutes is None else time.monotonic() + 60.0 * minutes
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    interrupted = False
    try:
        for mode in modes:
            campaigns.time_mode(spec, mode, output, say, until)
        for counts in sets:
            campaigns.count(spec, counts, output, jobs, say, until)
    except KeyboardInterrupt:
        interrupted = True
        say(f"interrupted; what was measured is kept in {output}. Go on with --resume.")
    runs = campaigns.assemble(spec, output)
    with whole(output / "runs.jsonl") as part:
        part.write_text("".join(map(line, runs)), encoding="utf-8")
    failed = sum(run.status != OK for run in runs)
    cells = len({(run.app, run.input, run.platform) for run in runs})
    of_all = len(spec.works) * len(spec.modes)
    click.echo(f"{_several(cells, 'cell')} of {of_all:,}, {_several(len(runs), 'run')}, {failed} failed")
    wrote(output / "runs.jsonl")
    return 130 if interrupted else 0
