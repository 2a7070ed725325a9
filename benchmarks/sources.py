"""Who predicts whom on the testbed: errors by platform profiled on and platform predicted, with and without GPU rows.

    python benchmarks/sources.py [--models vae-dnn,random-forest] [--splits workload,app] [--folds 5] [--write]

The first folds of each split (--scored-folds) are fitted once; held-out cells are then grouped by source and target.
"""

from __future__ import annotations

import argparse
import datetime
import shlex
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from crossperf import dataset, model
from crossperf.dataset import Dataset
from crossperf.datasets import testbed

HERE = Path(__file__).parent
Floats = NDArray[np.float64]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--models", default="vae-dnn,random-forest")
    parser.add_argument("--splits", default="workload,app")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--scored-folds", type=int, default=1)
    parser.add_argument("--write", action="store_true", help="write sources.md beside this script")
    arguments = parser.parse_args()
    data = dataset.build(testbed.load())
    page = [
        "# Who predicts whom",
        "",
        f"`python {shlex.join(sys.argv)}`, {datetime.date.today()}; testbed, fingerprint "
        f"`{data.table.fingerprint}`, seed 0, {arguments.scored_folds} of {arguments.folds} folds.",
        "",
        "Typical factor of the predicted time on the platform of the column, from a profile on that of the row: 1 is",
        "perfect. In brackets, below: trained without the cells that were profiled on the GPU.",
        "",
    ]
    for split in arguments.splits.split(","):
        for name in arguments.models.split(","):
            page += section(data, split, name, arguments.folds, arguments.scored_folds)
            print("\n".join(page[-(len(data.platforms) + 8) :]), flush=True)
    if arguments.write:
        (HERE / "sources.md").write_text("\n".join(page) + "\n", encoding="utf-8")


def section(data: Dataset, split: str, name: str, n_folds: int, scored: int) -> list[str]:
    every, without = [], []
    for fold in dataset.folds(data, split, n_folds, 0)[:scored]:  # type: ignore[arg-type]
        held_out = data.take(fold.test_n)
        every.append((held_out, predicted(data, fold.train_n, held_out, name)))
        cpu_train_n = fold.train_n[data.cpu_n[fold.train_n]]
        without.append((held_out, predicted(data, cpu_train_n, held_out, name)))
    factors, lone = matrix(every), matrix(without)
    lines = [f"## {name}, split `{split}`", "", "| profiled on | " + " | ".join(data.platforms) + " |"]
    lines += ["|---" * (len(data.platforms) + 1) + "|"]
    for row, source in enumerate(data.platforms):
        cells = ["" if row == column else f"{factors[row, column]:.2f}" for column in range(len(data.platforms))]
        lines.append(f"| {source} | " + " | ".join(cells) + " |")
    gpu = [kind != "cpu" for kind in data.platform_classes]
    to_gpu, from_gpu = factors[np.ix_(~np.array(gpu), gpu)].mean(), factors[np.ix_(gpu, ~np.array(gpu))].mean()
    cpu_only = lone[np.ix_(~np.array(gpu), gpu)].mean()
    among = between(factors, gpu)
    lines += [
        "",
        f"From a CPU to the GPU {to_gpu:.2f} (trained without GPU rows {cpu_only:.2f}), "
        f"from the GPU to a CPU {from_gpu:.2f}, "
        f"between CPUs {among:.2f} (trained without GPU rows {between(lone, gpu):.2f}).",
        "",
    ]
    return lines


def predicted(data: Dataset, train_n: NDArray[np.int64], held_out: Dataset, name: str) -> Floats:
    made = model.make(name)
    if "seed" in made.get_params():
        made.set_params(seed=0)
    return np.asarray(made.learn(data.take(train_n)).predict(held_out.X))


def matrix(parts: list[tuple[Dataset, Floats]]) -> Floats:
    """Return typical factors, source by target."""
    data = parts[0][0]
    size = len(data.platforms)
    errors: list[list[list[float]]] = [[[] for _ in range(size)] for _ in range(size)]
    for part, log_ratio_np in parts:
        error_np = np.abs(log_ratio_np - part.log_relative_time_np)
        for row, source in zip(error_np, part.source_n, strict=True):
            for target in range(size):
                if np.isfinite(row[target]):
                    errors[source][target].append(float(row[target]))
    return np.array([[np.exp(np.mean(cell)) if cell else np.nan for cell in line] for line in errors])


def between(factors: Floats, gpu: list[bool]) -> float:
    cpus = [number for number, is_gpu in enumerate(gpu) if not is_gpu]
    return float(np.mean([factors[a, b] for a in cpus for b in cpus if a != b]))


if __name__ == "__main__":
    main()
