"""What one answer costs: warm from Python, and cold from the command line.

    python benchmarks/answer.py [--model FOLDER] [--answers 200]

Without --model, the default model is trained on the testbed first (a minute or two). Prints CPU milliseconds of one
`model.predict(run)` in a process that has loaded the model, beside the same run read as a table, and CPU seconds of a
whole `crossperf predict`. CPU time, since these machines are shared; the ratio is what compares between machines.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import crossperf as xp
from crossperf.runs import jsonl


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, help="a model folder; without one the default model is trained first")
    parser.add_argument("--answers", type=int, default=200, help="answers that the mean is taken over")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = arguments.model or Path(folder) / "model"
        if not arguments.model:
            xp.train(xp.datasets.testbed.load()).save(place)
        model = xp.load(place)
        run = run_of(model)
        table = xp.read_runs([run])
        warm, columnar = (
            cpu_ms(call, arguments.answers) for call in (lambda: model.predict(run), lambda: model.predict(table))
        )
        new = Path(folder) / "new.jsonl"
        jsonl.append(new, [run])
        cold = min(cold_s(place, new) for _ in range(3))
    print(f"warm answer for one run: {warm:.2f} ms of CPU; as a table: {columnar:.2f} ms ({columnar / warm:.1f} x)")
    print(f"cold `crossperf predict`: {cold:.2f} s of CPU")


def run_of(model: xp.TrainedModel) -> xp.Run:
    """Return a training cell of the model as a run of an application that it does not know."""
    cell = model.features[0]
    counters = dict(zip(model.columns.measured, cell.measured_nc[0].tolist(), strict=True))
    known = {name: value for name, value in counters.items() if value == value}  # noqa: PLR0124 - NaN is not itself
    return xp.Run("new", "1", model.sources[int(cell.source_n[0])], float(cell.column("runtime_s")[0]), counters=known)


def cpu_ms(call: Callable[[], object], count: int) -> float:
    """Return the mean CPU time of a call, after some that warm the caches."""
    for _ in range(10):
        call()
    start = time.process_time()
    for _ in range(count):
        call()
    return 1e3 * (time.process_time() - start) / count


def cold_s(model: Path, new: Path) -> float:
    """Return the CPU time of the whole command, its start included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "crossperf", "predict", str(model), str(new)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1"})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
