"""``crossperf train``: a model from all of a runs table, saved as a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from crossperf.cli.completion import completing, models
from crossperf.cli.options import (
    FEATURES,
    NEW_FOLDER,
    PLATFORMS,
    SAMPLE,
    SETTINGS,
    TABLE,
    names,
    overwrite,
    seed,
    settings_of,
)
from crossperf.cli.output import progress_bar, tell_needs, wrote
from crossperf.errors import CrossperfError, SettingsError


@click.command()
@TABLE
@click.option("-o", "--output", type=NEW_FOLDER, required=True, help="The model folder to make.")
@click.option("--model", "name", default="crossperf", help="Which model to train.", shell_complete=completing(models))
@seed("the model's random draws; --set seed=N has precedence")
@PLATFORMS
@FEATURES
@SAMPLE
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
    settings: tuple[str, ...],
    overwrite: bool,
) -> None:
    """Train a model on all of TABLE and save it as a folder."""
    from crossperf import dataset, model
    from crossperf.model import store
    from crossperf.report import terminal as show

    chosen = settings_of(settings)
    # Asked before the table is read: a model that cannot be made, or kept, costs nobody a fit.
    model.make(name, **chosen).refuse_unless_savable()
    store.refuse_unless_free(output, overwrite=overwrite)
    data = dataset.build(table, platforms=names(platforms), features=features)
    data = dataset.sample(data, sample, seed=seed) if sample else data
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
