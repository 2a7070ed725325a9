"""Seconds and megabytes of a report on many cells.

    python benchmarks/report.py [--cells 1000,10000,100000] [--write]

The evaluations hold toy runs and made-up predictions (the truth with random errors, intervals and a latent space
included), since only size matters here: every figure has something to draw. Each report is written in a process of
its own, from the evaluation's file, as 'crossperf report' does it. --write keeps the table in benchmarks/report.md.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import matplotlib
import numpy as np

from crossperf import dataset
from crossperf.arrays import Floats
from crossperf.dataset import Dataset
from crossperf.dataset.features import Features
from crossperf.datasets import toy
from crossperf.evaluation import Evaluation, ModelScores, Scoreboard, metrics
from crossperf.evaluation.heldout import HeldOut, HeldOutPredictions
from crossperf.evaluation.latent import LatentMap
from crossperf.evaluation.metrics import ConstantAnswer, noise_ceiling
from crossperf.evaluation.scoring import score_cells
from crossperf.versions import versions

HERE = Path(__file__).parent
INPUTS = 10
PLATFORMS = 6
GOAL_S, GOAL_MB = 60, 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", default="1000,10000,100000")
    parser.add_argument("--write", action="store_true", help="keep the table beside this script")
    arguments = parser.parse_args()
    lines = [header()]
    print(lines[0], flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for cells in map(int, arguments.cells.split(",")):
            lines.append(row(cells, Path(folder)))
            print(lines[-1], flush=True)
    if arguments.write:
        (HERE / "report.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
        print(f"wrote {HERE / 'report.md'}", file=sys.stderr)


def header() -> str:
    words = ["python", "benchmarks/report.py", *sys.argv[1:]]
    return (
        f"# Reports of many cells\n\n`{shlex.join(words)}`, {datetime.date.today()}, "
        f"Python {platform.python_version()}, "
        f"matplotlib {matplotlib.__version__}, {os.cpu_count()} cores ({platform.machine()}), "
        f"load at the start {os.getloadavg()[0]:.1f}.\n"
        f"The goal for 100,000 cells: under {GOAL_S} s and a page under {GOAL_MB} MB.\n\n"
        "| cells | applications | evaluation, MB | seconds | page, MB | folder, MB | peak memory, GB |\n"
        "|---|---|---|---|---|---|---|"
    )


def row(cells: int, folder: Path) -> str:
    apps = max(2, -(-cells // (INPUTS * PLATFORMS)))
    source, target = folder / f"{cells}.json", folder / f"report-{cells}"
    made_up(dataset.build(toy.make_table(apps, INPUTS, PLATFORMS, repeats=2))).write(source)
    command = [sys.executable, "-m", "crossperf", "report", str(source), "-o", str(target)]
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    if status:
        raise SystemExit(f"{shlex.join(command)} failed")
    page = (target / "index.html").stat().st_size
    whole = sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
    return (
        f"| {apps * INPUTS * PLATFORMS:,} | {apps:,} | {source.stat().st_size / 1e6:.1f} | {seconds:.1f} | "
        f"{page / 1e6:.2f} | {whole / 1e6:.2f} | {usage.ru_maxrss / 1e6:.2f} |"
    )


def made_up(data: Dataset) -> Evaluation:
    """Return an evaluation of every cell of a dataset with two models, the first of which has intervals."""
    rng = np.random.default_rng(0)
    common = metrics.most_common_order(data.log_time_wp)
    order = common[0] if common else None
    predictions = {
        "with-intervals": made_up_predictions(data, 0.15, rng),
        "plain": HeldOutPredictions(made_up_predictions(data, 0.4, rng).predicted_np),
    }
    scores = {name: ModelScores.of([score_cells(own, data, order)]) for name, own in predictions.items()}
    return Evaluation(
        table=data.table,
        split="workload",
        folds=5,
        seed=0,
        scores=Scoreboard(scores, noise_ceiling(data, order)),
        constant=ConstantAnswer.of(data),
        versions=versions(),
        held_out=HeldOut.of(data, [np.arange(len(data))], {name: [own] for name, own in predictions.items()}),
        latent=LatentMap.of("with-intervals", Plane(), data),
    )


class Plane:
    """A latent space of four made-up directions."""

    def latent(self, features: Features) -> Floats:
        """Return the place of each cell."""
        matrix_nf = np.log1p(np.abs(np.nan_to_num(features.values_nf)))
        return matrix_nf @ np.random.default_rng(1).standard_normal((matrix_nf.shape[1], 4))


def made_up_predictions(data: Dataset, error: float, rng: np.random.Generator) -> HeldOutPredictions:
    """Return the truth with errors of a size, intervals that know that size, and oddness that follows the error."""
    error_np = error * rng.standard_normal(data.log_relative_time_np.shape)
    own_np = np.arange(error_np.shape[1]) == data.source_n[:, None]
    error_np[own_np] = 0.0
    predicted_np = data.log_relative_time_np + error_np
    half_np = np.where(own_np, 0.0, 1.2816 * error)
    needed_np = np.where(own_np, np.nan, np.clip(np.abs(error_np) / (2.5 * error), 0.0, 1.0))
    oddness_n = np.abs(error_np).mean(axis=1) / error + 0.3 * rng.random(len(data))
    return HeldOutPredictions(predicted_np, predicted_np - half_np, predicted_np + half_np, needed_np, oddness_n)


if __name__ == "__main__":
    main()
