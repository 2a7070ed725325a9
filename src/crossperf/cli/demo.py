"""The main job from end to end on the testbed's measured runs, each step with the command that does the same."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import polars as pl

from crossperf import dataset
from crossperf.datasets import testbed
from crossperf.errors import CrossperfError, MissingDependencyError
from crossperf.evaluation.result import Evaluation
from crossperf.evaluation.run import Progress, evaluate
from crossperf.model import DEFAULT, make
from crossperf.model.store import Saved, save
from crossperf.prediction.answer import predict
from crossperf.report import sentences as meaning
from crossperf.report import terminal as show
from crossperf.runs.summary import info
from crossperf.runs.table import from_frame, read

MODELS = ("crossperf", "vae-dnn", "random-forest")
#: The split whose evaluation ends as a page.
_SHOWN = "workload"
#: The run that the demo predicts from is taken out of the table first.
NEW_APP, NEW_PLATFORM = "lennard_jones", "epyc-1t"


def run(folder: Path, seed: int, progress_bar: Callable[[str], AbstractContextManager[Progress]]) -> None:
    """Look at the testbed, score models under three splits, train, predict an input held out, and make a page of it."""
    if folder.exists() and not folder.is_dir():
        raise CrossperfError(f"{folder}: is a file, expected a folder for the demo's files. Choose another with -o.")
    folder.mkdir(parents=True, exist_ok=True)
    table_path, model_path, new_path = folder / "runs.parquet", folder / "model", folder / "new.jsonl"
    report_path, shown = folder / "report", folder / f"evaluation-{_SHOWN}.json"
    out = show.console()

    def step(text: str, command: str) -> None:
        out.print(f"\n[bold]{text}[/bold]\n[dim]$ crossperf {command}[/dim]", soft_wrap=True)

    step("Runs: proxy workloads, measured on two CPUs and a GPU.", f"runs info {table_path}")
    truth = _write_runs(table_path, new_path)
    table = read(table_path)
    show.info(info(table))
    data = dataset.build(table)
    evaluations: dict[str, Evaluation] = {}
    for split in dataset.SPLITS:
        json_path = folder / f"evaluation-{split}.json"
        names = ",".join(MODELS)
        command = (
            f"evaluate {table_path} --split {split} --models {names} --seed {seed} --scored-folds 1 --json {json_path}"
        )
        step(f"How good is it on {meaning.HELD_OUT[split]}?", command)
        with progress_bar(f"evaluating, split {split}") as progress:
            result = evaluate(data, MODELS, split=split, seed=seed, scored_folds=1, progress=progress)
        show.evaluation(result)
        for caveat in result.caveats:
            out.print(f"caveat: {caveat}")
        result.write(json_path)
        evaluations[split] = result

    step("Train on all of these runs.", f"train {table_path} -o {model_path} --seed {seed} --overwrite")
    with progress_bar(f"training {DEFAULT}") as progress:
        progress(f"{len(data):,} cells", 0, 1)
        saved = Saved.of(make(DEFAULT, seed=seed).learn(data), data)
    save(saved, model_path, overwrite=True)
    show.training(saved.model, data)

    step(
        f"An input of {NEW_APP} that it has never seen ran on {NEW_PLATFORM}. How fast would it be elsewhere?",
        f"predict {model_path} {new_path}",
    )
    show.predictions(predict(saved, new_path))
    measured = ", ".join(f"{name} {seconds:.3g} s" for name, seconds in sorted(truth.items()))
    out.print(f"what was measured there: {measured}")
    step("Look at it: tables, figures and the caveats, on one page.", f"report {shown} -o {report_path} --overwrite")
    try:
        from crossperf import report

        report.write(evaluations[_SHOWN], report_path, overwrite=True)
        out.print(f"{meaning.headline(evaluations[_SHOWN])}\nopen {report_path / report.PAGE} in a browser")
    except MissingDependencyError as missing:
        out.print(str(missing))
    out.print(f"\nfiles are in {folder}/")


def _write_runs(table_path: Path, new_path: Path) -> dict[str, float]:
    """Write the table to learn from and one run of a workload that is not in it; return what that takes elsewhere."""
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
