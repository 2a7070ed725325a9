"""Commands that are killed, interrupted, or meet a disk that fails, at a change of a file that a test chooses."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.collect.real import need

ROOT = Path(__file__).parents[2]
#: What can happen at a change, by name: a signal, or the error that the change fails with.
ACTIONS = {
    "SIGKILL": int(signal.SIGKILL),
    "SIGTERM": int(signal.SIGTERM),
    "SIGINT": int(signal.SIGINT),
    "ENOSPC": -errno.ENOSPC,
    "EACCES": -errno.EACCES,
    "EIO": -errno.EIO,
    "EROFS": -errno.EROFS,
}


@dataclass(frozen=True)
class Outcome:
    """How a command ended: its status as a shell has it (negative: the signal), what it printed, its changes."""

    status: int
    stdout: str
    stderr: str
    changes: int | None


class Server:
    """Runs commands in forks of one process that has everything loaded."""

    def __init__(self, process: subprocess.Popen[str], talk: Path) -> None:
        self._process, self._talk = process, talk

    def run(self, arguments: Sequence[str | Path], folder: Path, at: int = 0, action: str = "SIGKILL") -> Outcome:
        """Run a command in a folder; at its change of a number below that folder something happens, 0: never."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        job = {"arguments": list(map(str, arguments)), "cwd": str(folder), "under": str(folder.resolve()), "at": at}
        job |= {"action": ACTIONS[action], "talk": str(self._talk)}
        (self._talk / "count").unlink(missing_ok=True)
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        status = int(self._process.stdout.readline())
        count = self._talk / "count"
        texts = ((self._talk / name).read_text(errors="replace") for name in ("stdout", "stderr"))
        return Outcome(status, *texts, int(count.read_text()) if count.exists() else None)


@contextmanager
def serving(folder: Path) -> Iterator[Server]:
    """Yield a server whose files, apart from those of the commands, are in a folder."""
    need("gcc")
    library = folder / "faults.so"
    source = Path(__file__).with_name("faults.c")
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], check=True)
    env = os.environ | {"LD_PRELOAD": str(library), "OMP_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"}
    env |= {"XDG_CONFIG_HOME": str(folder / "settings"), "MPLBACKEND": "agg"}
    pipe = subprocess.PIPE
    command = [sys.executable, "-m", "tests.hostile.server"]
    with (
        tempfile.TemporaryDirectory(dir=folder) as talk,
        subprocess.Popen(command, cwd=ROOT, env=env, stdin=pipe, stdout=pipe, text=True) as process,
    ):
        try:
            yield Server(process, Path(talk))
        finally:
            assert process.stdin is not None
            process.stdin.close()
