"""``crossperf evaluate``: models scored on held-out runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from crossperf.cli.completion import completing, models
from crossperf.cli.options import FEATURES, PLATFORMS, SAMPLE, SEED, TABLE, names
from crossperf.cli.output import JSON, progress_bar, say, tell_needs, wrote
from crossperf.cli.working import Working, workers_options
from crossperf.errors import SettingsError


@click.command()
@TABLE
@click.option("--split", type=click.Choice(["row", "workload", "app", "platform"]), default="workload")
@click.option(
    "--models",
    default="crossperf,random-forest",
    help="Models to compare: a,b,c; also FILE.py:NAME, an object with fit and predict or what makes one.",
    shell_complete=completing(models, several=True),
)
@click.option("--folds", "n_folds", default=5, help="Number of folds.")
@click.option("--scored-folds", type=int, help="Score this number of folds only; 1 of 5 is an 80-20 split.")
@SEED
@click.option("--seeds", type=click.IntRange(1, 10_000), help="Repeat over this number of seeds, from --seed on.")
@PLATFORMS
@FEATURES
@SAMPLE
@click.option("--ablation", is_flag=True, help="Compare vae-dnn with each of its stages switched off.")
@click.option(
    "--shots",
    help="With --split platform: workloads measured on the new platform, such as 3,5,10,20 or 5%.  [3,5,10,20]",
)
@workers_options()
@JSON
def evaluate(
    table: Path,
    split: Any,
    models: str,
    platforms: str | None,
    features: Any,
    sample: int | None,
    ablation: bool,
    shots: str | None,
    seeds: int | None,
    json_file: Path | None,
    **common: Any,
) -> None:
    """Fit models on the training part of each fold of TABLE and score the part held out.

    The split 'platform' leaves one platform out at a time and adds it from few workloads (--shots).
    """
    from crossperf import dataset
    from crossperf.adaptation import score as transfer
    from crossperf.evaluation import run
    from crossperf.evaluation.seeds import over_seeds
    from crossperf.report import terminal as show

    working = Working(common, json_file)
    if seeds and split == "platform":
        raise SettingsError(
            "--seeds: found with --split platform, expected another split; run it once for each --seed."
        )
    makers = run.ablation(common["seed"]) if ablation else models_of(models)
    counts = shots_of(shots, split)
    data = dataset.build(table, platforms=names(platforms), features=features)
    data = dataset.sample(data, sample, seed=common["seed"]) if sample else data
    tell_needs(makers, data)
    result: Any
    with working.study() as (workers, kept):
        with progress_bar(f"evaluating, split {split}") as progress:
            common |= {"progress": progress, "workers": workers, "kept": kept}
            if split == "platform":
                result = transfer.transfer(data, makers, shots=counts, **common)
            elif seeds:
                first = common.pop("seed")
                of_seed = run.ablation if ablation else lambda _: makers
                result = over_seeds(data, of_seed, range(first, first + seeds), split=split, **common)
            else:
                result = run.evaluate(data, makers, split=split, **common)
        (show.transfer if split == "platform" else show.seeds if seeds else show.evaluation)(result)
        for caveat in result.caveats:
            say(f"caveat: {caveat}")
        if json_file:
            result.write(json_file)
            wrote(json_file)


def models_of(text: str) -> dict[str, Any]:
    """Return the models of a list by name: known ones, and those of the user's own (``FILE.py:NAME``)."""
    chosen = names(text)
    if not chosen:
        raise SettingsError(f"models: found {text!r}, expected names, such as crossperf,ridge.", argument="models")
    return {name: name for name in chosen}


def shots_of(text: str | None, split: str) -> tuple[float, ...]:
    """Return numbers of workloads, and shares below 1, from a list such as ``3,10,5%``."""
    if text is not None and split != "platform":
        raise SettingsError(f"--shots: found with --split {split}, expected it with --split platform alone.")
    words = names(text) or [] if text is not None else ["3", "5", "10", "20"]
    try:
        return tuple(float(word[:-1]) / 100 if word.endswith("%") else int(word) for word in words)
    except ValueError as error:
        raise SettingsError(f"--shots: found {text!r}, expected numbers or shares, such as 3,10,5%.") from error
