"""Serves array programs as forks of one process that has loaded numpy and torch, so that counting loads them once.

    python testbed/arrays/forks.py --threads N

The process loads the libraries, leaves a fork of itself behind, and ends: what it executed is the start of every
program. The fork takes inputs, one a line (`kmeans points=200 ...`), runs each in a fork of its own from its imports to
its end, and answers with a line of JSON: the number of that process and how it ended. On an empty line the process does
nothing but end.
"""

from __future__ import annotations

import importlib
import json
import os
import sys

import harness
import numpy  # noqa: F401
import torch  # noqa: F401


def serve(threads: str) -> None:
    """Answer every line of the standard input."""
    for line in sys.stdin:
        child = os.fork()
        if not child:
            if not line.strip():
                return
            name, *words = line.split()
            sys.argv = [f"{name}.py", "--device", "cpu", "--threads", threads, *words]
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            program = importlib.import_module(name)
            harness.run(program.set_up, program.work)
            return
        _, status = os.waitpid(child, 0)
        print(json.dumps({"pid": child, "code": os.waitstatus_to_exitcode(status)}), flush=True)


if __name__ == "__main__":
    if os.fork():
        os._exit(0)
    serve(sys.argv[2])
