"""``crossperf adapt``: a platform added to a trained model from a few workloads measured on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from crossperf.cli.options import MODEL, NEW_FOLDER, PATH, overwrite, seed
from crossperf.cli.output import JSON, say, write_facts, wrote
from crossperf.errors import SettingsError


@click.command()
@MODEL
@click.argument("new_runs", metavar="[NEW_RUNS]", required=False, type=PATH)
@click.option("-o", "--output", type=NEW_FOLDER, help="The model folder to make.")
@click.option(
    "--suggest", "count", type=int, metavar="N", help="Name N workloads to measure next on it, and write no model."
)
@click.option("--platform", help="Which platform to add, where NEW_RUNS has several that MODEL does not know.")
@seed("the draws that set the prior of the new platform")
@overwrite("model")
@JSON
def adapt(
    model_folder: Path,
    new_runs: Path | None,
    output: Path | None,
    count: int | None,
    overwrite: bool,
    json_file: Path | None,
    **settings: Any,
) -> None:
    """Add the platform of NEW_RUNS to MODEL from a few workloads that were measured on it.

    The workloads are those that MODEL was trained on; others count where NEW_RUNS has them on known platforms too.
    What MODEL predicts for the platforms it knew stays as it is.
    """
    from crossperf.adaptation import adapt
    from crossperf.model import store
    from crossperf.report import terminal as show

    if count is not None:
        if output is not None:
            raise SettingsError("adapt: found --suggest and -o, expected one of them: --suggest writes no model.")
        _suggest(model_folder, new_runs, count, json_file, **settings)
        return
    if new_runs is None or output is None:
        missing = "NEW_RUNS" if new_runs is None else "-o"
        raise SettingsError(
            f"adapt: {missing} is missing, expected MODEL NEW_RUNS -o MODEL2 to add a platform, or MODEL --suggest N "
            "to learn what to measure."
        )
    store.refuse_unless_free(output, overwrite=overwrite)
    result = adapt.adapt(store.load(model_folder), new_runs, **settings)
    result.model.save(output, overwrite=overwrite)
    show.adaptation(result)
    for note in result.notes:
        say(f"note: {note}")
    wrote(output)
    write_facts(json_file, result.to_json)


def _suggest(model_folder: Path, new_runs: Path | None, count: int, json_file: Path | None, **settings: Any) -> None:
    from crossperf.adaptation import adapt
    from crossperf.model import store
    from crossperf.report import terminal as show

    suggested = adapt.suggest(store.load(model_folder), count, new_runs, **settings)
    show.suggestions(suggested)
    if len(suggested) < count:
        few = f"{len(suggested):,} of {count:,} can be suggested"
        say(f"note: {few}; the rest of what the model knows is measured already.")
    write_facts(json_file, lambda: {"suggestions": [workload.to_json() for workload in suggested]})
