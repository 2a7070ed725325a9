"""Train the model that ships on the testbed, and write it into the package.

python tools/release_model.py            # trains, writes src/crossperf/model/data, prints its size and fingerprints
python tools/release_model.py --score    # instead: what half precision costs on held-out inputs and applications
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

import torch
from threadpoolctl import threadpool_limits

from crossperf import packing
from crossperf.dataset import build, folds
from crossperf.datasets import testbed
from crossperf.evaluation import metrics
from crossperf.model import release, store
from crossperf.model.default import Crossperf
from crossperf.model.trained import TrainedModel, train

SCORES = ("typical_factor", "r2", "top1", "same_order")


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


def score() -> None:
    """Print what half precision costs on the first of five folds, of inputs and of applications held out."""
    data = build(testbed.load())
    print(f"| split | model | {' | '.join(SCORES)} |\n|---|---|{'---:|' * len(SCORES)}")
    for split in ("workload", "app"):
        part = folds(data, split, 5, seed=0)[0]
        test = data.take(part.test_n)
        # How wide intervals are has no part in these scores.
        trained = Crossperf(device="cpu", n_jobs=1, prove=False).learn(data.take(part.train_n)).fitted_
        for name, fitted in (("as trained", trained), ("as it ships", release.rounded_fit(trained))):
            scores = metrics.score(test.y, fitted.predict(test.X), test.source_n)
            print(f"| {split} | {name} | {' | '.join(f'{getattr(scores, own):.4f}' for own in SCORES)} |", flush=True)


def main() -> None:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--score", action="store_true", help="print what half precision costs")
    parser.add_argument("--check", action="store_true", help="train again and compare fingerprints")
    options = parser.parse_args()
    started = time.monotonic()
    with one_thread():
        if options.score:
            score()
        else:
            (check if options.check else write)(made())
    print(f"{time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
