"""``crossperf train``: a model from all of a runs table, saved as a folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from crossperf.cli.completion import completing, models
from crossperf.cli.options import PATH, PLATFORMS, SETTINGS, TABLE, names, overwrite, seed, settings_of
from crossperf.cli.output import progress_bar, wrote
from crossperf.errors import CrossperfError, DatasetError, SettingsError

if TYPE_CHECKING:
    from crossperf.dataset.build import Dataset
    from crossperf.model.base import Predictor


@click.command()
@TABLE
@click.option("-o", "--output", type=PATH, required=True, help="The model folder to make.")
@click.option(
    "--model",
    "model_name",
    default="crossperf",
    show_default=True,
    help="Which model to train.",
    shell_complete=completing(models),
)
@seed("the model's random draws; --set seed=N has precedence")
@PLATFORMS
@SETTINGS
@overwrite("model")
def train(
    table: Path,
    output: Path,
    model_name: str,
    seed: int,
    platforms: str | None,
    settings: tuple[str, ...],
    overwrite: bool,
) -> None:
    """Train a model on all of TABLE and save it as a folder."""
    from crossperf import dataset, model
    from crossperf.model import store
    from crossperf.report import terminal as show

    chosen = settings_of(settings)
    made = model.make(model_name, **chosen)
    if "seed" in made.get_params() and "seed" not in chosen:
        made.set_params(seed=seed)
    made.refuse_unless_savable()
    store.refuse_unless_free(output, overwrite=overwrite)
    data = dataset.build(table, platforms=names(platforms))
    _refuse_single(data, table)
    with progress_bar(f"training {model_name}") as progress:
        progress(f"{len(data):,} cells", 0, 1)
        _learn(made, data, settings)
    store.save(store.Saved.of(made, data), output, overwrite=overwrite)
    show.training(made, data)
    wrote(output)


def _refuse_single(data: Dataset, table: Path) -> None:
    if len(data.workloads) < 2:
        raise DatasetError(
            f"{table}: found a single workload, expected at least 2 to learn how workloads differ. Measure more "
            "applications or inputs, and add their runs to the table.",
            path=str(table),
        )


def _learn(made: Predictor, data: Dataset, settings: Sequence[str]) -> None:
    """Fit a model; what a library underneath raises about a value of --set becomes one sentence."""
    try:
        made.learn(data)
    except CrossperfError:
        raise
    except (ValueError, TypeError) as error:
        if not settings:
            raise
        reason = str(error).splitlines()[0].rstrip(".")
        given = f"--set {' --set '.join(settings)}"
        raise SettingsError(f"{given}: the model {made.name!r} does not fit with it ({reason}). Correct it.") from error
