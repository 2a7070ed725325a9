"""The main job from end to end on made-up runs, each step with the command that does the same."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import polars as pl

from crossperf import dataset, show, toy
from crossperf.errors import CrossperfError
from crossperf.evaluate import Progress, evaluate
from crossperf.model import make
from crossperf.model.store import Saved, save
from crossperf.predict import predict
from crossperf.runs.summary import info
from crossperf.runs.table import from_frame, read

MODELS = ("vae-dnn", "random-forest")
_HELD_OUT = {
    "row": "cells drawn at random, as in the paper",
    "workload": "inputs it has never seen",
    "app": "applications it has never seen",
}


def run(folder: Path, seed: int, progress_bar: Callable[[str], AbstractContextManager[Progress]]) -> None:
    """Draw runs from the toy law, look at them, score two models under three splits, train, and predict."""
    if folder.exists() and not folder.is_dir():
        raise CrossperfError(f"{folder}: is a file, expected a folder for the demo's files. Choose another with -o.")
    folder.mkdir(parents=True, exist_ok=True)
    table_path, model_path, new_path = folder / "runs.parquet", folder / "model", folder / "new.jsonl"
    out = show.console()

    def step(text: str, command: str) -> None:
        out.print(f"\n[bold]{text}[/bold]\n[dim]$ crossperf {command}[/dim]", soft_wrap=True)

    step("Runs: made up by a known law, 16 applications on two CPUs and two GPUs.", f"runs info {table_path}")
    new = _write_runs(table_path, new_path, seed)
    table = read(table_path)
    show.info(info(table))
    data = dataset.build(table)
    for split in dataset.SPLITS:
        json_path = folder / f"evaluation-{split}.json"
        names = ",".join(MODELS)
        command = f"evaluate {table_path} --split {split} --models {names} --seed {seed} --json {json_path}"
        step(f"How good is it on {_HELD_OUT[split]}?", command)
        with progress_bar(f"evaluating, split {split}") as progress:
            result = evaluate(data, MODELS, split=split, seed=seed, progress=progress)
        show.evaluation(result)
        for doubt in result.doubts:
            out.print(f"doubt: {doubt}")
        result.write(json_path)

    step("Train on all of these runs.", f"train {table_path} -o {model_path} --seed {seed} --overwrite")
    with progress_bar("training vae-dnn") as progress:
        progress(f"{len(data):,} cells", 0, 1)
        saved = Saved.of(make("vae-dnn", seed=seed).learn(data), data)
    save(saved, model_path, overwrite=True)
    show.training(saved.model, data)

    step("An input it has never seen ran on cpu-a. How fast would it be elsewhere?", f"predict {model_path} {new_path}")
    show.predictions(predict(saved, new_path))
    truth = ", ".join(f"{name} {seconds:.3g} s" for name, seconds in sorted(new.items()))
    out.print(f"what the law says, noise included: {truth}")
    out.print(f"\nfiles are in {folder}/")


def _write_runs(table_path: Path, new_path: Path, seed: int) -> dict[str, float]:
    """Write the table to learn from and one run of a workload that is not in it; return what that takes elsewhere."""
    frame = toy.make_table(apps=16, inputs=6, seed=seed).frame
    held_out = (pl.col("app") == "app07") & (pl.col("input") == "n3")
    new = frame.filter(held_out & (pl.col("repeat") == 0))
    for path, rows in (
        (table_path, frame.filter(~held_out)),
        (new_path, new.filter(pl.col("platform") == "cpu-a")),
    ):
        from_frame(rows, name=str(path)).write(path)
    return dict(new.select("platform", "runtime_s").iter_rows())
