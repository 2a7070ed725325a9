"""``crossperf train``: a model from all of a runs table, saved as a folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crossperf.cli.completion import completing, models
from crossperf.cli.options import PATH, PLATFORMS, SETTINGS, TABLE, names, overwrite, seed, settings_of
from crossperf.cli.output import progress_bar, wrote
from crossperf.errors import CrossperfError, SettingsError

if TYPE_CHECKING:
    from crossperf.dataset import Dataset
    from crossperf.model import TrainedModel


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
    # Asked before the table is read: a model that cannot be made, or kept, costs nobody a fit.
    model.make(model_name, **chosen).refuse_unless_savable()
    store.refuse_unless_free(output, overwrite=overwrite)
    data = dataset.build(table, platforms=names(platforms))
    with progress_bar(f"training {model_name}") as progress:
        progress(f"{len(data):,} cells", 0, 1)
        trained = _trained(data, model_name, {"seed": seed, **chosen}, settings)
    trained.save(output, overwrite=overwrite)
    show.training(trained)
    wrote(output)


def _trained(data: Dataset, name: str, chosen: Mapping[str, Any], settings: Sequence[str]) -> TrainedModel:
    """Return the trained model; what a library underneath raises about a value of --set becomes one sentence."""
    from crossperf import model

    try:
        return model.train(data, name, **chosen)
    except CrossperfError:
        raise
    except (ValueError, TypeError) as error:
        if not settings:
            raise
        reason = str(error).splitlines()[0].rstrip(".")
        given = f"--set {' --set '.join(settings)}"
        raise SettingsError(f"{given}: the model {name!r} does not fit with it ({reason}). Correct it.") from error
