#!/usr/bin/env python3
"""Times applications of apps.toml for a campaign: a batch of inputs, each repeat a whole process.

    APPS_INPUTS=DIR [APPS_BUNDLE=DIR] testbed/apps/batch.py --batch FILE --threads N --repeats N

The lines of FILE are an application and its input; what is printed of each is what `crossperf campaign` keeps. A serial
application runs on one processor whatever the number of threads. `--inputs-file` prints the inputs of all applications
as a campaign takes them; `--files LIST` prints the input files that such a list needs, for `inputs.py`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tomllib
from pathlib import Path

from apps import HERE, name_of, read
from run import Place, measure


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--batch", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--inputs-file", action="store_true")
    parser.add_argument("--files", type=Path)
    given = parser.parse_args()
    if given.files:
        print("\n".join(files(given.files)))
        return 0
    if given.inputs_file or not given.batch:
        print(inputs_file())
        return 0
    bundle = os.environ.get("APPS_BUNDLE")
    place = Place(Path(os.environ.get("APPS_INPUTS", "inputs")).resolve(), Path(bundle).resolve() if bundle else None)
    expected = json.loads((HERE / "digests.json").read_text(encoding="utf-8"))
    for line in given.batch.read_text(encoding="utf-8").splitlines():
        name, _, label = line.partition(" ")
        print(json.dumps(visit(name, label, given.threads, given.repeats, place, expected)), flush=True)
    return 0


def visit(
    name: str, label: str, threads: int, repeats: int, place: Place, expected: dict[str, str]
) -> dict[str, object]:
    """Return the times of some repeats in a row, or why there are none."""
    about: dict[str, object] = {"workload": name, "input": label, "threads": threads}
    try:
        app = read()[name]
        count = threads if app.parallel else 1
        about["threads"] = count
        runs = [measure(app, app.case(label), count, place, expected) for _ in range(repeats)]
    except (KeyError, ValueError, OSError, RuntimeError) as error:
        return about | {"error": f"{type(error).__name__}: {error}"}
    for run in runs:
        if run["status"] not in ("ok", "unchecked"):
            return about | {"error": f"{run['status']}: {run.get('message', run['digest'])}"}
    counted = {key: runs[0][key] for key in ("page_faults", "bytes_read", "bytes_written")}
    times = {"seconds": [run["seconds"] for run in runs], "passes": 1, "checksum": runs[0]["digest"]}
    return about | times | counted


def inputs_file() -> str:
    """Return every application with its inputs as TOML."""
    tables = [(app.name, [name_of(case) for case in app.cases]) for app in read().values()]
    return "\n".join(f"[{json.dumps(name)}]\ninputs = {json.dumps(labels, indent=4)}\n" for name, labels in tables)


def files(path: Path) -> list[str]:
    """Return the input files that the inputs of a list need."""
    apps, lists = read(), tomllib.loads(path.read_text(encoding="utf-8"))
    cases = ((apps[name], apps[name].case(label)) for name, own in lists.items() for label in own["inputs"])
    return sorted({name for app, case in cases for name in app.files(case)})


if __name__ == "__main__":
    sys.exit(main())
