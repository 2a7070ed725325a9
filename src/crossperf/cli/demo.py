"""``crossperf demo``: the main job from end to end on measured runs, each step with the command that does the same."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from crossperf.cli.options import PATH, SEED
from crossperf.cli.output import progress_bar
from crossperf.errors import CrossperfError, MissingDependencyError

if TYPE_CHECKING:
    from crossperf.dataset import Dataset, Split
    from crossperf.evaluation.result import Evaluation

MODELS = ("crossperf", "vae-dnn", "random-forest")
#: The split whose evaluation ends as a page.
_SHOWN: Split = "workload"
#: The run that the demo predicts from is taken out of the table first.
NEW_APP, NEW_PLATFORM = "lennard_jones", "epyc-1t"


@click.command()
@click.option("-o", "--output", type=PATH, default=Path("demo"), show_default=True, help="Where files go.")
@SEED
def demo(output: Path, seed: int) -> None:
    """Run the main job end to end on the testbed's runs: evaluate, train, predict, report."""
    from crossperf import dataset

    if output.exists() and not output.is_dir():
        raise CrossperfError(f"{output}: is a file, expected a folder for the demo's files. Choose another with -o.")
    output.mkdir(parents=True, exist_ok=True)
    table, new_run = output / "runs.parquet", output / "new.jsonl"
    truth = write_runs(table, new_run)
    data = _look(table)
    evaluations = {split: _evaluate(data, table, output, split, seed) for split in dataset.SPLITS}
    _train(data, table, output / "model", seed)
    _predict(output / "model", new_run, truth)
    _report(evaluations[_SHOWN], output)
    _print(f"\nfiles are in {output}/")


def _print(text: str) -> None:
    from crossperf.report import terminal as show

    show.console().print(text, soft_wrap=True)


def _step(text: str, command: str) -> None:
    _print(f"\n[bold]{text}[/bold]\n[dim]$ crossperf {command}[/dim]")


def _look(table: Path) -> Dataset:
    from crossperf import dataset
    from crossperf.report import terminal as show
    from crossperf.runs import info, read

    _step("Runs: proxy workloads, measured on two CPUs and a GPU.", f"runs info {table}")
    runs = read(table)
    show.info(info(runs))
    return dataset.build(runs)


def _evaluate(data: Dataset, table: Path, folder: Path, split: Split, seed: int) -> Evaluation:
    from crossperf.evaluation.run import evaluate
    from crossperf.report import sentences as meaning
    from crossperf.report import terminal as show

    path = folder / f"evaluation-{split}.json"
    options = f"--split {split} --models {','.join(MODELS)} --seed {seed} --scored-folds 1 --json {path}"
    _step(f"How good is it on {meaning.HELD_OUT[split]}?", f"evaluate {table} {options}")
    with progress_bar(f"evaluating, split {split}") as progress:
        result = evaluate(data, MODELS, split=split, seed=seed, scored_folds=1, progress=progress)
    show.evaluation(result)
    for caveat in result.caveats:
        _print(f"caveat: {caveat}")
    result.write(path)
    return result


def _train(data: Dataset, table: Path, folder: Path, seed: int) -> None:
    from crossperf import model
    from crossperf.report import terminal as show

    _step("Train on all of these runs.", f"train {table} -o {folder} --seed {seed} --overwrite")
    with progress_bar(f"training {model.DEFAULT}") as progress:
        progress(f"{len(data):,} cells", 0, 1)
        trained = model.train(data, seed=seed)
    trained.save(folder, overwrite=True)
    show.training(trained)


def _predict(model_folder: Path, new_run: Path, truth: dict[str, float]) -> None:
    from crossperf.model.store import load
    from crossperf.prediction.answer import predict
    from crossperf.report import terminal as show

    _step(
        f"An input of {NEW_APP} that it has never seen ran on {NEW_PLATFORM}. How fast would it be elsewhere?",
        f"predict {model_folder} {new_run}",
    )
    show.predictions(predict(load(model_folder), new_run))
    measured = ", ".join(f"{name} {seconds:.3g} s" for name, seconds in sorted(truth.items()))
    _print(f"what was measured there: {measured}")


def _report(evaluation: Evaluation, folder: Path) -> None:
    from crossperf import report
    from crossperf.report import sentences as meaning

    path, source = folder / "report", folder / f"evaluation-{_SHOWN}.json"
    _step("Look at it: tables, figures and the caveats, on one page.", f"report {source} -o {path} --overwrite")
    try:
        report.write(evaluation, path, overwrite=True)
        _print(f"{meaning.headline(evaluation)}\nopen {path / report.PAGE} in a browser")
    except MissingDependencyError as missing:
        _print(str(missing))


def write_runs(table_path: Path, new_path: Path) -> dict[str, float]:
    """Write the table to learn from and one run of a workload that is not in it; return what that takes elsewhere."""
    import polars as pl

    from crossperf.datasets import testbed
    from crossperf.runs.table import from_frame

    frame = testbed.load().frame
    inputs = frame.filter(pl.col("app") == NEW_APP)["input"].unique().sort()
    held_out = (pl.col("app") == NEW_APP) & (pl.col("input") == inputs[len(inputs) // 2])
    new = frame.filter(held_out & (pl.col("repeat") == 0))
    for path, rows in (
        (table_path, frame.filter(~held_out)),
        (new_path, new.filter(pl.col("platform") == NEW_PLATFORM)),
    ):
        from_frame(rows, name=str(path)).write(path)
    return dict(new.select("platform", "runtime_s").iter_rows())
