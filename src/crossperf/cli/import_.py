"""``crossperf import``: the runs that profilers' files hold, added to a runs table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from crossperf.cli.appending import RUNS, append, refuse_unwritable
from crossperf.cli.completion import completing, formats, kept_platforms
from crossperf.cli.options import PATH
from crossperf.cli.output import JSON, say, tell, write_facts
from crossperf.errors import several
from crossperf.records import OK, Run
from crossperf.text import as_utf8

#: An import of many runs shows these first ones; all are in the file.
_SHOWN = 20


@click.command("import")
@click.argument("format_", metavar="FORMAT", shell_complete=completing(lambda context: ["auto", *formats(context)]))
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=PATH)
@click.option("--app", help="Name of the application, above what the files tell.")
@click.option("--input", help="Input in words, above what the files tell.")
@click.option(
    "--platform", help="Name of the platform, above what the files tell.", shell_complete=completing(kept_platforms)
)
@click.option("--platform-class", help="cpu, gpu or another word.")
@click.option("--runtime", "runtime_s", type=float, metavar="SECONDS", help="Runtime of the one run, above the file's.")
@click.option("--map", "mapping", type=PATH, help="For FORMAT table: what its columns are.")
@click.option("--regions", type=click.Choice(["whole", "leaf"]), default="whole", help="Caliper only.")
@RUNS
@JSON
def import_(format_: str, paths: tuple[Path, ...], output: Path, json_file: Path | None, **settings: Any) -> None:
    """Add the runs that profilers' files hold to a runs table.

    FORMAT is auto, hpctoolkit, caliper, papi, perf, perf-data, ncu, nvprof, nsys, rocprof, likwid, tau, scorep, vtune,
    google-benchmark, cross-modeling or table.
    """
    from crossperf.importers.detect import import_runs

    refuse_unwritable(output)
    texts = {name: as_utf8(value) for name, value in settings.items() if isinstance(value, str)}
    result = import_runs(format_, paths, **settings | texts)
    for run in result.runs[:_SHOWN]:
        tell(_in_words(run))
    if len(result.runs) > _SHOWN:
        tell(f"and {len(result.runs) - _SHOWN:,} more runs")
    for path, note in result.notes:
        say(f"note: {path}: {note}")
    for rejected in result.rejected:
        say(f"left out: {rejected}")
    append(output, result.runs)
    runs = [run.to_json() for run in result.runs]
    notes = [{"path": path, "note": note} for path, note in result.notes]
    left_out = [str(rejected) for rejected in result.rejected]
    write_facts(json_file, lambda: {"runs": runs, "notes": notes, "left_out": left_out})


def _in_words(run: Run) -> str:
    seconds = f"{run.runtime_s:.4g} s" if run.runtime_s else "no runtime"
    ranks = f", {several(run.ranks, 'rank')}" if run.ranks else ""
    counters = several(len(run.counters), "counter")
    failed = "" if run.status == OK else f", failed: {run.status}"
    return f"{run.app} {run.input!r} on {run.platform}: {seconds}{ranks}, {counters}{failed}"
