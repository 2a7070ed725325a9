"""Commands that learn from a runs table and answer from what was learned."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crossperf.cli.adapting import SHOTS, new_platforms, shots_of
from crossperf.cli.words import (
    JSON,
    PLATFORMS,
    SEED,
    SETTINGS,
    TABLE,
    names,
    progress_bar,
    refuse_existing,
    say,
    settings_of,
    wrote,
)
from crossperf.errors import CrossperfError, SettingsError

if TYPE_CHECKING:
    from crossperf.dataset.build import Dataset
    from crossperf.evaluation.result import Evaluation
    from crossperf.model.base import Predictor
    from crossperf.model.store import Saved
    from crossperf.prediction.answer import Answer
    from crossperf.prediction.explain import Explanations

#: Runs of a table that are explained: each takes a second or so.
_EXPLAINED = 5


@click.command()
@TABLE
@click.option(
    "--split", type=click.Choice(["row", "workload", "app", "platform"]), default="workload", show_default=True
)
@click.option("--models", default="crossperf,random-forest", show_default=True, help="Models to compare: a,b,c.")
@click.option("--folds", default=5, show_default=True, help="Number of folds.")
@click.option("--scored-folds", type=int, help="Score the first so many folds only; 1 of 5 is an 80-20 split.")
@SEED
@PLATFORMS
@click.option("--ablation", is_flag=True, help="Compare vae-dnn with each of its stages switched off.")
@SHOTS
@JSON
def evaluate(
    table: Path,
    split: Any,
    models: str,
    folds: int,
    scored_folds: int | None,
    seed: int,
    platforms: str | None,
    ablation: bool,
    shots: str | None,
    json_file: Path | None,
) -> None:
    """Fit models on the training part of each fold of TABLE and score the part held out.

    The split 'platform' leaves one platform out at a time and adds it from few workloads (--shots).
    """
    from crossperf import dataset
    from crossperf.evaluation import run as evaluate
    from crossperf.report import terminal as show

    chosen_models = names(models)
    if not chosen_models:
        raise SettingsError(f"--models: found {models!r}, expected names of models, such as crossperf,ridge.")
    counts = shots_of(shots, split)
    data = dataset.build(table, platforms=names(platforms))
    makers = evaluate.ablation(seed) if ablation else chosen_models
    if split == "platform":
        new_platforms(data, makers, counts, folds, scored_folds, seed, json_file)
        return
    with progress_bar(f"evaluating, split {split}") as progress:
        result = evaluate.evaluate(
            data,
            makers,
            split=split,
            n_folds=folds,
            seed=seed,
            scored_folds=scored_folds,
            progress=progress,
        )
    show.evaluation(result)
    _caveats(result)
    if json_file:
        result.write(json_file)
        wrote(json_file)


@click.command()
@TABLE
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="The model folder to make.")
@click.option("--model", "model_name", default="crossperf", show_default=True, help="Which model to train.")
@SEED
@PLATFORMS
@SETTINGS
@click.option("--overwrite", is_flag=True, help="Replace the model that stands at OUTPUT.")
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
    with progress_bar(f"training {model_name}") as progress:
        progress(f"{len(data):,} cells", 0, 1)
        _learn(made, data, settings)
    store.save(store.Saved.of(made, data), output, overwrite=overwrite)
    show.training(made, data)
    wrote(output)


@click.command()
@click.argument("model_folder", metavar="MODEL", type=click.Path(path_type=Path))
@TABLE
@click.option("--relative-to", default="source", show_default=True, help="source, fastest, or a platform.")
@click.option("--level", default=0.8, show_default=True, help="How often the ranges should hold the truth.")
@click.option(
    "--explain", is_flag=True, help="Show which counters pushed a prediction, and the nearest known workloads."
)
@click.option("--explain-platform", metavar="PLATFORM", help="Explain this platform instead of the fastest predicted.")
@SEED
@JSON
def predict(
    model_folder: Path,
    table: Path,
    relative_to: str,
    level: float,
    explain: bool,
    explain_platform: str | None,
    seed: int,
    json_file: Path | None,
) -> None:
    """Predict the relative times of the runs in TABLE on every platform that MODEL knows."""
    from crossperf.files import write_json
    from crossperf.model import store
    from crossperf.prediction.answer import predict
    from crossperf.report import terminal as show

    saved = store.load(model_folder)
    answer: Answer = predict(saved, table, relative_to=relative_to, level=level)
    show.predictions(answer)
    notes = list(answer.notes)
    reasons = explain_runs(saved, table, explain_platform, seed) if explain or explain_platform else None
    if reasons:
        notes += [note for note in reasons.notes if note not in notes]
    for note in notes:
        say(f"note: {note}")
    if json_file:
        facts = {"format": 1, "notes": notes, "predictions": [one.to_json() for one in answer.predictions]}
        if reasons:
            facts["explanations"] = [one.to_json() for one in reasons.explanations]
        write_json(json_file, facts)
        wrote(json_file)


def explain_runs(saved: Saved, table: Path, platform: str | None, seed: int) -> Explanations:
    """Return and show why the first runs of a table are predicted as they are."""
    from crossperf.prediction.explain import explain
    from crossperf.report import terminal as show

    reasons = explain(saved, table, platform=platform, limit=_EXPLAINED, seed=seed)
    for reason in reasons.explanations:
        show.explanation(reason)
    return reasons


@click.command()
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help=".jsonl, .csv or .parquet")
@click.option("--apps", default=12, show_default=True)
@click.option("--inputs", default=8, show_default=True, help="Inputs of each application.")
@click.option("--platforms", default=4, show_default=True)
@click.option("--repeats", default=3, show_default=True)
@click.option("--noise", default=0.03, show_default=True, help="Standard deviation of log runtime.")
@SEED
def toy(output: Path, apps: int, inputs: int, platforms: int, repeats: int, noise: float, seed: int) -> None:
    """Write a runs table drawn from a known law, for tests and first steps."""
    from crossperf.datasets.toy import make_table

    refuse_existing(output)
    make_table(apps, inputs, platforms, repeats, noise, seed).write(output)
    wrote(output)


@click.command()
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default=Path("demo"),
    show_default=True,
    help="Where files go.",
)
@SEED
def demo(output: Path, seed: int) -> None:
    """Run the main job end to end on the testbed's runs: evaluate, train, predict, report."""
    from crossperf.cli.demo import run

    run(output, seed, progress_bar)


def _learn(made: Predictor, data: Dataset, settings: Sequence[str]) -> None:
    """Fit a model; what a library underneath says about a value of --set becomes one sentence."""
    try:
        made.learn(data)
    except CrossperfError:
        raise
    except (ValueError, TypeError) as error:
        if not settings:
            raise
        reason = str(error).splitlines()[0].rstrip(".")
        found = f"--set {' --set '.join(settings)}"
        raise SettingsError(f"{found}: the model {made.name!r} does not fit with it ({reason}). Correct it.") from error


def _caveats(result: Evaluation) -> None:
    for caveat in result.caveats:
        say(f"caveat: {caveat}")
