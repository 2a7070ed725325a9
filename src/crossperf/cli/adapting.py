"""Commands about a new platform: adding it to a trained model, what to measure for it, how well that does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from crossperf.cli.words import JSON, SEED, names, progress_bar, say, wrote
from crossperf.errors import SettingsError

if TYPE_CHECKING:
    from crossperf.dataset.build import Dataset
    from crossperf.evaluation.run import Maker

SHOTS = click.option(
    "--shots",
    help="With --split platform: workloads measured on the new platform, such as 3,5,10,20 or 5%.  [3,5,10,20]",
)


@click.command()
@click.argument("model_folder", metavar="MODEL", type=click.Path(path_type=Path))
@click.argument("new_runs", metavar="[NEW_RUNS]", required=False, type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="The model folder to make.")
@click.option("--suggest", type=int, metavar="N", help="Name N workloads to measure next there, and write no model.")
@click.option("--platform", help="Which platform to add, where NEW_RUNS has several that MODEL does not know.")
@SEED
@click.option("--overwrite", is_flag=True, help="Replace the model that stands at OUTPUT.")
@JSON
def adapt(
    model_folder: Path,
    new_runs: Path | None,
    output: Path | None,
    suggest: int | None,
    platform: str | None,
    seed: int,
    overwrite: bool,
    json_file: Path | None,
) -> None:
    """Add the platform of NEW_RUNS to MODEL from a few workloads that were measured there.

    The workloads are those that MODEL was trained on; others count where NEW_RUNS has them on known platforms too.
    What MODEL predicts for the platforms it knew stays as it is.
    """
    if suggest is None and (new_runs is None or output is None):
        missing = "NEW_RUNS" if new_runs is None else "-o"
        raise SettingsError(
            f"adapt: {missing} is missing, expected MODEL NEW_RUNS -o MODEL2 to add a platform, or MODEL --suggest N "
            "to learn what to measure."
        )
    if suggest is not None and output is not None:
        raise SettingsError("adapt: found --suggest and -o, expected one of them: --suggest writes no model.")
    if suggest is not None:
        _suggest(model_folder, new_runs, suggest, platform, seed, json_file)
    elif new_runs is not None and output is not None:
        _adapt(model_folder, new_runs, output, platform, seed, overwrite, json_file)


def _adapt(
    model_folder: Path,
    new_runs: Path,
    output: Path,
    platform: str | None,
    seed: int,
    overwrite: bool,
    json_file: Path | None,
) -> None:
    from crossperf.adaptation import adapt
    from crossperf.files import write_json
    from crossperf.model import store
    from crossperf.report import terminal as show

    store.refuse_unless_free(output, overwrite=overwrite)
    result = adapt.adapt(store.load(model_folder), new_runs, platform=platform, seed=seed)
    store.save(result.saved, output, overwrite=overwrite)
    show.adaptation(result)
    for note in result.notes:
        say(f"note: {note}")
    wrote(output)
    if json_file:
        write_json(json_file, result.to_json())
        wrote(json_file)


def _suggest(
    model_folder: Path, new_runs: Path | None, count: int, platform: str | None, seed: int, json_file: Path | None
) -> None:
    from crossperf.adaptation import adapt
    from crossperf.files import write_json
    from crossperf.model import store
    from crossperf.report import terminal as show

    found = adapt.suggest(store.load(model_folder), count, new_runs, platform=platform, seed=seed)
    show.suggestions(found)
    if len(found) < count:
        say(f"note: {len(found):,} of {count:,} were found; the rest of what the model knows is measured already.")
    if json_file:
        write_json(json_file, {"format": 1, "suggestions": [one.to_json() for one in found]})
        wrote(json_file)


def shots_of(text: str | None, split: str) -> tuple[float, ...]:
    """Return numbers of workloads, and shares below 1, from a list such as ``3,10,5%``."""
    if text is not None and split != "platform":
        raise SettingsError(f"--shots: found with --split {split}, expected it with --split platform alone.")
    words = names(text) or [] if text is not None else ["3", "5", "10", "20"]
    try:
        return tuple(float(word[:-1]) / 100 if word.endswith("%") else int(word) for word in words)
    except ValueError as error:
        raise SettingsError(f"--shots: found {text!r}, expected numbers or shares, such as 3,10,5%.") from error


def new_platforms(
    data: Dataset,
    models: Sequence[str] | Mapping[str, Maker],
    shots: tuple[float, ...],
    folds: int,
    scored_folds: int | None,
    seed: int,
    json_file: Path | None,
) -> None:
    """Leave each platform out in turn, add it from few workloads, and show how well that does."""
    from crossperf.adaptation import score as transfer
    from crossperf.report import terminal as show

    with progress_bar("evaluating, split platform") as progress:
        result = transfer.transfer(
            data, models, shots=shots, n_folds=folds, scored_folds=scored_folds, seed=seed, progress=progress
        )
    show.transfer(result)
    for caveat in result.caveats:
        say(f"caveat: {caveat}")
    if json_file:
        result.write(json_file)
        wrote(json_file)
