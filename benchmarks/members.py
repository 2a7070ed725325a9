"""What each member of the default model is worth: what it says alone, and what the others say without it.

    python benchmarks/members.py [--tables a,b] [--splits row,workload,app] [--seed 0] [--fold 1] [--jobs N] [--write]

The default is fitted on the training part of one fold (`prove=False`: intervals play no part here), and asked about the
rows held out: as it is, with all weight on one member, and with one member's weight shared among the others in
proportion. What the others could have learned to do without it is not in these figures. --write keeps them in
benchmarks/members.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from accuracy import HERE, TABLES, add, data_of, opening, tables_of
from crossperf.arrays import Floats, Mask
from crossperf.dataset.pairing import folds
from crossperf.evaluation import metrics
from crossperf.model.default import Crossperf
from crossperf.model.fitted.blend import Blend, Gate

MEMBERS = ("networks", "process", "look-up", "recognition")


class Task(NamedTuple):
    """One fold."""

    table: str
    folder: str
    split: Any
    seed: int
    fold: int


@dataclass(frozen=True)
class SomeMembers(Gate):
    """A gate that gives all weight to some members, in proportion to what they have."""

    kept_m: Mask

    def __call__(self, share_nr: Floats, standard_nd: Floats) -> Floats:
        """Return the weights of the members, N x M; 0 for those left out."""
        weights_nm = super().__call__(share_nr, standard_nd) * self.kept_m
        return np.asarray(weights_nm / weights_nm.sum(axis=1, keepdims=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=HERE.parent.parent / "shared" / "datasets")
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--splits", default="row,workload,app")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fold", type=int, default=1, help="of five, counted from 1")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--write", action="store_true", help="write members.md beside this script")
    arguments = parser.parse_args()
    section = "\n".join(lines(arguments))
    if arguments.write:
        (HERE / "members.md").unlink(missing_ok=True)
        add(HERE / "members.md", opening("What each member of the default is worth"), [section])


def lines(arguments: argparse.Namespace) -> Iterator[str]:
    """Yield the table's lines, and print each as it comes."""
    tasks = [
        Task(table, str(arguments.data), split, arguments.seed, arguments.fold - 1)
        for table in tables_of(arguments)
        for split in arguments.splits.split(",")
    ]
    head = ["as it is", *(f"{name} alone" for name in MEMBERS), *(f"without {name}" for name in MEMBERS)]
    for line in (
        f"Typical factors on fold {arguments.fold} of 5, seed {arguments.seed}; 1 is perfect.\n",
        f"| table, split | {' | '.join(head)} |",
        f"|---|{'---:|' * len(head)}",
    ):
        print(line, flush=True)
        yield line
    # Processes that are started anew: a fork of one that has used torch may hang.
    with ProcessPoolExecutor(arguments.jobs, mp_context=get_context("spawn")) as pool:
        for task, factors in zip(tasks, pool.map(score, tasks), strict=True):
            line = f"| {task.table}, {task.split} | {' | '.join(f'{factor:.3f}' for factor in factors)} |"
            print(line, flush=True)
            yield line


def score(task: Task) -> list[float]:
    """Return the typical factor of the whole, of each member alone, and of the others without each."""
    import torch

    torch.set_num_threads(1)
    data = data_of(task.table, Path(task.folder))
    part = folds(data, task.split, 5, task.seed)[task.fold]
    fitted = Crossperf(seed=task.seed, n_jobs=1, prove=False).learn(data.take(part.train_n)).fitted_
    blend, test = fitted.part, data.take(part.test_n)
    if not isinstance(blend, Blend):
        raise TypeError(f"the default model learned a {type(blend).__name__}, expected a Blend")
    gate = blend.gate
    own_mm = np.eye(len(MEMBERS), dtype=bool)
    factors = []
    for kept_m in (np.ones(len(MEMBERS), bool), *own_mm, *~own_mm):
        some = SomeMembers(gate.weights_rm, gate.moves_dm, gate.bias_m, gate.trust_r, kept_m)
        predicted_np = replace(fitted, part=replace(blend, gate=some)).predict(test.X)
        factor = metrics.typical_factor(*metrics.to_source(test.y, predicted_np, test.source_n))
        factors.append(float("nan") if factor is None else factor)
    return factors


if __name__ == "__main__":
    main()
