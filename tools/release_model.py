"""Train the model that ships on the testbed, and write it into the package.

python tools/release_model.py            # trains, writes src/crossperf/model/data, prints its size and fingerprints
python tools/release_model.py --score    # instead: what being small costs on held-out inputs and applications
python tools/release_model.py --check    # instead: train again, and compare the fingerprint with the one in the package

The same table and the same versions of Python's packages give the same model on the same kind of processor: one thread,
fixed seeds. Run it whenever the testbed changes; a test fails until then.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import torch
from threadpoolctl import threadpool_limits

from crossperf import packing
from crossperf.dataset import build
from crossperf.datasets import testbed
from crossperf.evaluation.run import evaluate
from crossperf.model import release, store
from crossperf.model.default import Crossperf
from crossperf.model.trained import TrainedModel, train

SCORES = ("typical_factor", "top1", "same_order", "coverage", "interval_factor")


class Small(Crossperf):
    """The default model as it ships, for an evaluation."""

    def fit(self, X: Any, y: Any, **groups: Any) -> Self:
        """Learn, then round."""
        super().fit(X, y, **groups)
        self.fitted_ = release.rounded_fit(self.fitted_)
        return self


@contextmanager
def one_thread() -> Iterator[None]:
    """Let sums be made in one order."""
    torch.set_num_threads(1)
    with threadpool_limits(1):
        yield


def made() -> TrainedModel:
    """Return the model that ships, trained now."""
    return release.rounded(train(build(testbed.load()), device="cpu", n_jobs=1))


def write(model: TrainedModel) -> None:
    """Write the model into the package."""
    model.save(store.SHIPPED, overwrite=True)
    size = sum(path.stat().st_size for path in store.SHIPPED.iterdir())
    facts = json.loads((store.SHIPPED / "model.json").read_text(encoding="utf-8"))
    print(f"{size / 1e6:.2f} MB; model {facts['fingerprint']}, table {facts['training']['fingerprint']}")
    if size > release.MOST_BYTES:
        sys.exit(f"expected at most {release.MOST_BYTES:,} bytes: fewer trees, or narrower networks")


def check(model: TrainedModel) -> None:
    """Compare the model with the one in the package."""
    expected = packing.fingerprint(store.arrays_of(store.load()))
    fingerprint = packing.fingerprint(store.arrays_of(model))
    print(f"in the package {expected}, trained now {fingerprint}")
    sys.exit(fingerprint != expected)


def score(folds: int) -> None:
    """Print how well the small model does beside the full one, on the same held-out cells."""
    data = build(testbed.load())
    models = {"full": Crossperf(device="cpu"), "ships": Small(device="cpu")}
    print(f"| split | model | {' | '.join(SCORES)} |\n|---|---|{'---:|' * len(SCORES)}")
    for split in ("workload", "app"):
        result = evaluate(data, models, split=split, seed=0, scored_folds=folds)
        for name, scores in result.scores.items():
            print(f"| {split} | {name} | {' | '.join(f'{scores[own]:.3f}' for own in SCORES)} |", flush=True)


def main() -> None:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--score", action="store_true", help="print what being small costs")
    parser.add_argument("--folds", type=int, default=1, help="folds of five that --score scores")
    parser.add_argument("--check", action="store_true", help="train again and compare fingerprints")
    options = parser.parse_args()
    started = time.monotonic()
    with one_thread():
        if options.score:
            score(options.folds)
        else:
            (check if options.check else write)(made())
    print(f"{time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
