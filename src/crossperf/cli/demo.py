"""``crossperf demo``: the main job from end to end on measured runs, by the commands that it shows."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Final

import click

from crossperf.cli.options import NEW_FOLDER, SEED
from crossperf.errors import CrossperfError, MissingDependencyError

MODELS = "crossperf,vae-dnn,random-forest"
#: The order of the splits on the page: what most ask about first, and the hardest not hidden.
_SHOWN: Final = ("workload", "app", "row")
#: The run that the demo predicts from is taken out of the table first.
NEW_APP, NEW_PLATFORM = "lennard_jones", "epyc-1t"
#: Of the proxies one input in as many takes part, so that the demo ends in minutes.
_PROXIES = 8


@click.command()
@click.option("-o", "--output", type=NEW_FOLDER, default=Path("demo"), help="Where files go.")
@SEED
@click.pass_context
def demo(context: click.Context, output: Path, seed: int) -> None:
    """Run the main job end to end on the testbed's runs: evaluate, train, predict, report."""
    from crossperf.dataset import SPLITS
    from crossperf.report.sentences import HELD_OUT
    from crossperf.report.terminal import show

    if output.exists() and not output.is_dir():
        raise CrossperfError(f"{output}: is a file, expected a folder for the demo's files. Choose another with -o.")
    output.mkdir(parents=True, exist_ok=True)
    table, model, new_run = output / "runs.parquet", output / "model", output / "new.jsonl"
    evaluations = {split: output / f"evaluation-{split}.json" for split in SPLITS}
    truth = write_runs(table, new_run)

    def step(text: str, *words: object) -> None:
        arguments = [str(word) for word in words]
        show("")
        show(text, style="bold")
        show(f"$ crossperf {shlex.join(arguments)}", style="dim")
        context.find_root().command.main(arguments, prog_name="crossperf", standalone_mode=False)

    about = f"applications, array programs and every {_PROXIES}th input of the proxies"
    step(f"Runs: {about}, measured on two CPUs and a GPU.", "runs", "info", table)
    for split, path in evaluations.items():
        options = ("--split", split, "--models", MODELS, "--seed", seed, "--scored-folds", 1, "--json", path)
        step(f"How good is it on {HELD_OUT[split]}?", "evaluate", table, *options)
    step("Train on all of these runs.", "train", table, "-o", model, "--seed", seed, "--overwrite")
    new = f"An input of {NEW_APP} that it has never seen ran on {NEW_PLATFORM}."
    step(f"{new} How fast would it be elsewhere?", "predict", model, new_run)
    show("what was measured: " + ", ".join(f"{name} {seconds:.3g} s" for name, seconds in sorted(truth.items())))
    try:
        page = ("report", *(evaluations[split] for split in _SHOWN), "-o", output / "report", "--overwrite")
        step("Look at it: tables, figures and the caveats, on one page.", *page)
    except MissingDependencyError as missing:
        show(str(missing))
    show("", f"files are in {output}/")


def write_runs(table_path: Path, new_path: Path) -> dict[str, float]:
    """Write the table to learn from and one run of a workload that is not in it; return what that takes elsewhere."""
    import polars as pl

    from crossperf.datasets import testbed
    from crossperf.runs.table import from_frame

    frame = testbed.load().frame
    inputs = frame.filter(pl.col("app") == NEW_APP)["input"].unique().sort()
    held_out = (pl.col("app") == NEW_APP) & (pl.col("input") == inputs[len(inputs) // 2])
    every_few = pl.struct("app", "input").rank("dense") % _PROXIES == 0
    from_frame(frame.filter((every_few | (pl.col("kind") != "proxy")) & ~held_out)).write(table_path)
    new = frame.filter(held_out)
    from_frame(new.filter((pl.col("repeat") == 0) & (pl.col("platform") == NEW_PLATFORM))).write(new_path)
    return dict(new.group_by("platform").agg(pl.col("runtime_s").median()).iter_rows())
