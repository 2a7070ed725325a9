"""Runs crossperf's commands one after another, each in a fork of a process that has loaded everything already.

`faults.c` is preloaded, so that a command can be ended or failed at any of its changes of files.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

from crossperf import cli

#: What commands import when they are used.
_LOADED = (
    "adaptation.adapt",
    "cli.adapt",
    "cli.campaign",
    "cli.evaluate",
    "cli.import_",
    "cli.platforms",
    "cli.predict",
    "cli.profile",
    "cli.report",
    "cli.runs",
    "cli.train",
    "collect.profile",
    "evaluation.run",
    "importers.detect",
    "model.peers",
    "model.store",
    "prediction.answer",
    "report",
    "report.page",
    "report.page",
    "report.terminal",
)


def run(job: dict[str, Any]) -> None:
    """Run a command in this process, which ends with it."""
    os.chdir(job["cwd"])
    faults = ctypes.CDLL(None)
    for descriptor, name in ((1, "stdout"), (2, "stderr")):
        opened = os.open(Path(job["talk"]) / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        os.dup2(opened, descriptor)
    status = 99
    faults.fault_arm(os.fsencode(job["under"]), job["at"], job["action"])
    try:
        cli.main(job["arguments"])
    except SystemExit as leaving:
        status = leaving.code if isinstance(leaving.code, int) else 0
    except BaseException:
        traceback.print_exc()
    count = faults.fault_count()
    faults.fault_arm(b"/nowhere", 0, 0)
    (Path(job["talk"]) / "count").write_text(str(count))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def main() -> None:
    for name in _LOADED:
        importlib.import_module(f"crossperf.{name}")
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            run(json.loads(line))
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
