"""``crossperf runs``: what is wrong with a runs table, what it holds, and other names for it."""

from __future__ import annotations

from pathlib import Path

import click

from crossperf.cli.options import NEW_FILE, PATH, TABLE
from crossperf.cli.output import JSON, draw_into_files, refuse_existing, say, tell, write_facts, wrote
from crossperf.errors import SettingsError, several


@click.group()
def runs() -> None:
    """Check a runs table, describe or rename what it holds, or compare two."""


@runs.command("check")
@TABLE
@JSON
def runs_check(table: Path, json_file: Path | None) -> int:
    """List every problem of TABLE, each with its place and what to do."""
    from crossperf.runs.table import check

    problems = check(table)
    for problem in problems:
        tell(f"{problem.severity}: {table}: {problem}")
    errors = sum(problem.severity == "error" for problem in problems)
    verdict = "cannot be used" if errors else "can be used"
    tell(f"{table} {verdict}; errors: {errors:,}, warnings: {len(problems) - errors:,}")
    write_facts(json_file, lambda: {"problems": [problem.to_json() for problem in problems]})
    return 1 if errors else 0


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
