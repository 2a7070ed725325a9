"""``crossperf train``: a model from all of a runs table, saved as a folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crossperf.cli.completion import completing, models
from crossperf.cli.options import (
    FEATURES,
    NEW_FOLDER,
    PLATFORMS,
    SAMPLE,
    SETTINGS,
    TABLE,
    FiniteRange,
    names,
    overwrite,
    seed,
    settings_of,
)
from crossperf.cli.output import progress_bar, say, tell_needs, wrote
from crossperf.errors import CrossperfError, SettingsError

if TYPE_CHECKING:
    from crossperf.dataset import Dataset


@click.command()
@TABLE
@click.option("-o", "--output", type=NEW_FOLDER, required=True, help="The model folder to make.")
@click.option("--model", "name", default="crossperf", help="Which model to train.", shell_complete=completing(models))
@seed("the model's random draws; --set seed=N has precedence")
@PLATFORMS
@FEATURES
@SAMPLE
@click.option(
    "--memory",
    type=FiniteRange(0.5),
    metavar="GB",
    help="Learn from what fits into so much memory; by default the free.",
)
@SETTINGS
@overwrite("model")
def train(
    table: Path,
    output: Path,
    name: str,
    seed: int,
    platforms: str | None,
    features: Any,
    sample: int | None,
    memory: float | None,
    settings: tuple[str, ...],
    overwrite: bool,
) -> None:
    """Train a model on TABLE and save it as a folder.

    Of a table that is too long for the memory, or for half an hour on two cores, whole workloads are drawn: about the
    same share of every application and of every set of platforms. --sample chooses how many cells.
    """
    from crossperf import dataset, model
    from crossperf.model import store
    from crossperf.report import terminal as show

    chosen = settings_of(settings)
    # Asked before the table is read: a model that cannot be made, or kept, costs nobody a fit.
    model.make(name, **chosen).refuse_unless_savable()
    store.refuse_unless_free(output, overwrite=overwrite)
    data = dataset.build(table, platforms=names(platforms), features=features)
    data = _part_of(data, name, sample, memory, seed)
    tell_needs([name], data)
    with progress_bar(f"training {name}") as progress:
        progress(f"{len(data):,} cells", 0, 1)
        try:
            trained = model.train(data, name, **{"seed": seed, **chosen})
        except CrossperfError:
            raise
        except (ValueError, TypeError) as error:  # what a library underneath raises about a value of --set
            if not settings:
                raise
            reason = str(error).splitlines()[0].rstrip(".")
            given = f"--set {' --set '.join(settings)}"
            raise SettingsError(f"{given}: the model {name!r} does not fit with it ({reason}). Correct it.") from error
    trained.save(output, overwrite=overwrite)
    show.training(trained)
    wrote(output)


def _part_of(data: Dataset, name: str, cells: int | None, memory: float | None, seed: int) -> Dataset:
    """Return what is learned from, and say what is left out."""
    from crossperf import dataset
    from crossperf.model import needs

    if cells is not None:
        part = dataset.sample(data, cells, seed=seed)
    else:
        free = None if memory is None else memory * needs.GIGABYTE - needs.held_bytes()
        part = needs.drawn(data, name, most_bytes=free, seed=seed)
    if len(part) < len(data):
        say(
            f"note: learns from {len(part):,} of {len(data):,} cells: {len(part.workloads):,} of "
            f"{len(data.workloads):,} workloads, of {len(part.apps):,} of {len(data.apps):,} applications; the others "
            "are left out. --sample CELLS takes another number."
        )
    return part
