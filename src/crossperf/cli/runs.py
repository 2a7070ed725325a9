"""``crossperf runs``: what is wrong with a runs table, what it holds, other formats and other names for it."""

from __future__ import annotations

from pathlib import Path

import click

from crossperf.cli.options import NEW_FILE, NEW_FOLDER, PATH, TABLE
from crossperf.cli.output import JSON, draw_into_files, refuse_existing, say, tell, write_facts, wrote
from crossperf.errors import SettingsError, several
from crossperf.runs.places import spelled


@click.group()
def runs() -> None:
    """Check, describe, convert, add to or rename a runs table, or compare two."""


@runs.command("check")
@TABLE
@JSON
def runs_check(table: Path, json_file: Path | None) -> int:
    """List every problem of TABLE, each with its place and what to do."""
    from crossperf.runs.table import check

    problems = check(table)
    for problem in problems:
        tell(f"{problem.severity}: {spelled(table)}: {problem}")
    errors = sum(problem.severity == "error" for problem in problems)
    verdict = "cannot be used" if errors else "can be used"
    tell(f"{spelled(table)} {verdict}; errors: {errors:,}, warnings: {len(problems) - errors:,}")
    write_facts(json_file, lambda: {"problems": [problem.to_json() for problem in problems]})
    return 1 if errors else 0


@runs.command("convert", epilog="Such as: crossperf runs convert 'logs/*.jsonl' -o runs --by platform")
@TABLE
@click.option("-o", "--output", type=NEW_FOLDER, required=True, help="The file to write; with --by the folder to make.")
@click.option("--by", metavar="COLUMN", help="A folder of Parquet, divided by a column such as platform.")
def runs_convert(table: Path, output: Path, by: str | None) -> None:
    """Write the runs of TABLE in another format: .jsonl, .csv, .parquet, or a folder of Parquet.

    TABLE stays as it is, and nothing that stands at OUTPUT is replaced. It may be larger than memory.
    """
    from crossperf.runs.moving import convert

    refuse_existing(output)
    result = convert(table, output, by=by)
    for problem in result.warnings:
        say(f"warning: {problem}")
    tell(f"converted {several(len(result), 'run')}")
    wrote(output)


@runs.command("append", epilog="Such as: crossperf runs append node-7.jsonl -o runs")
@TABLE
@click.option(
    "-o",
    "--output",
    type=NEW_FOLDER,
    required=True,
    help="A .jsonl file, or a folder of Parquet; made if it is not there.",
)
def runs_append(table: Path, output: Path) -> None:
    """Add the runs of TABLE to another table. Several commands may add to one table at the same time.

    A table that cannot be used is refused, and nothing is added.
    """
    from crossperf.runs.moving import add

    count = add(table, output)
    tell(f"added {several(count, 'run')} to {output}")


@runs.command("compare")
@click.argument("first", type=PATH)
@click.argument("second", type=PATH)
@click.option("--platform", "platforms", multiple=True, help="Platforms to compare; may be repeated.")
@click.option("--figure", type=NEW_FILE, help="Draw it too: .svg, .png or .pdf")
@JSON
def runs_compare(
    first: Path, second: Path, platforms: tuple[str, ...], figure: Path | None, json_file: Path | None
) -> None:
    """Tell how the times of SECOND differ from those of FIRST, for the cells that both have."""
    from crossperf.evaluation.compare import compare
    from crossperf.plain import to_json
    from crossperf.report import terminal as show
    from crossperf.report.figures.drawn import refuse_unless_figure

    if figure is not None:
        refuse_unless_figure(figure)
    result = compare(first, second, platforms=platforms or None)
    show.comparison(result)
    if figure is not None:
        draw_into_files()
        from crossperf.report.figures.changes import changes

        changes(result).save(figure)
        wrote(figure)
    write_facts(json_file, lambda: to_json(result))


@runs.command("info")
@TABLE
@JSON
def runs_info(table: Path, json_file: Path | None) -> None:
    """Tell what TABLE holds: applications, platforms, completeness, repeats, noise, missing counters."""
    from crossperf.plain import to_json
    from crossperf.report import terminal as show
    from crossperf.runs.summary import info
    from crossperf.runs.table import read

    sound = read(table, need_runtime=False)
    facts = info(sound)
    show.info(facts)
    for problem in sound.warnings:
        say(f"warning: {problem}")
    write_facts(json_file, lambda: to_json(facts))


@runs.command(
    "rename", epilog="Such as: crossperf runs rename runs.jsonl --platform amd-epyc-2c=epyc-2 -o renamed.jsonl"
)
@TABLE
@click.option("--platform", multiple=True, metavar="OLD=NEW", help="Another name for a platform; may be repeated.")
@click.option("--app", multiple=True, metavar="OLD=NEW", help="Another name for an application.")
@click.option("--input", multiple=True, metavar="OLD=NEW", help="Another name for an input.")
@click.option("-o", "--output", type=NEW_FILE, required=True, help="The file to write; TABLE stays as it is.")
def runs_rename(table: Path, output: Path, **names: tuple[str, ...]) -> None:
    """Write the runs of TABLE under other names to another file."""
    from crossperf.runs.renaming import rename

    if not any(names.values()):
        raise SettingsError("found no name to change, expected --platform, --app or --input with OLD=NEW.")
    refuse_existing(output)
    count = rename(table, output, names)
    tell(f"renamed {several(count, 'run')}")
    wrote(output)
