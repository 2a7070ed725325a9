"""Uploads read in child processes with limits of time and memory: a hostile file costs a child, never the server."""

from __future__ import annotations

import io
import json
import os
import queue
import re
import select
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from crossperf import errors
from crossperf.dataset.measured import Measured
from crossperf.errors import CrossperfError, RunsTableError
from crossperf.plain import from_json
from crossperf.records import Run
from crossperf.runs.rules import Problem
from crossperf.serve.child import FRAME

MEGABYTE = 2**20
#: A child is replaced after this number of files: what leaks in a native reader does not grow for ever.
_FILES_OF_A_CHILD = 500
#: An answer of more bytes than this is none that a child of ours sends.
_MOST_ANSWER = 2**31


class UploadError(CrossperfError):
    """An uploaded file could not be read: it took too long, too much memory, or its reader down."""


class BusyError(CrossperfError):
    """Too much is asked at the same time; ask again in a moment."""


@dataclass(frozen=True)
class UploadLimits:
    """What reading one upload may take: seconds, and bytes of memory of the process."""

    seconds: float = 30.0
    memory_bytes: int = 4096 * MEGABYTE


@dataclass(frozen=True)
class ImportedRuns:
    """Runs made of a profiler's file, notes on them, and what was left out, with reasons."""

    runs: tuple[Run, ...]
    notes: tuple[str, ...]
    rejected: tuple[str, ...]


class _Child:
    """One process that reads files, and what it has read."""

    def __init__(self, limits: UploadLimits) -> None:
        bounds = (str(limits.memory_bytes), str(limits.seconds))
        command = [sys.executable, "-m", "crossperf.serve.child", *bounds]
        # Two threads are enough for one upload, and stacks of more count towards the memory.
        quiet = {**os.environ, "POLARS_MAX_THREADS": "2", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=quiet,
            start_new_session=True,
        )
        self.files = 0
        self._met_a_fault = False

    @property
    def is_worn_out(self) -> bool:
        """Whether it should read nothing more: what a fault or too much memory left of native threads may hang."""
        return self._met_a_fault or self.files >= _FILES_OF_A_CHILD

    def ask(self, request: Mapping[str, Any], until: float) -> tuple[dict[str, Any], bytes]:
        """Return the answer to a request; none by a moment raises `TimeoutError`, a dead child `EOFError`."""
        assert self._process.stdin is not None  # noqa: S101 - it was made with a pipe
        self.files += 1
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            raise EOFError from error
        facts, arrays = FRAME.unpack(self._read(FRAME.size, until))
        if facts + arrays > _MOST_ANSWER:
            raise EOFError
        answer = json.loads(self._read(facts, until))
        self._met_a_fault = "crash" in answer
        return answer, self._read(arrays, until)

    def _read(self, count: int, until: float) -> bytes:
        assert self._process.stdout is not None  # noqa: S101
        number, parts = self._process.stdout.fileno(), bytearray()
        while len(parts) < count:
            ready, _, _ = select.select([number], [], [], max(0.0, until - time.monotonic()))
            if not ready:
                raise TimeoutError
            part = os.read(number, min(count - len(parts), MEGABYTE))
            if not part:
                raise EOFError
            parts += part
        return bytes(parts)

    def end(self) -> None:
        """Kill the process, and wait for it."""
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process.wait()


class Readers:
    """Some children that read uploads; made when first needed, used again, replaced when they fail.

    Parameters
    ----------
    count
        Uploads that are read at the same time; further ones wait as long as one may take, then raise `BusyError`.
    """

    def __init__(self, limits: UploadLimits | None = None, count: int = 2) -> None:
        self.limits = limits or UploadLimits()
        self._count = count
        self._free: queue.SimpleQueue[_Child | None] = queue.SimpleQueue()
        self._process = 0
        self._lock = threading.Lock()

    def measure(self, data: bytes, kind: str) -> Measured:
        """Return the cells of a runs table of a format (``jsonl``, ``csv``, ``parquet``)."""
        facts, arrays = self._ask("measure", f"runs.{kind}", data, need_runtime=False)
        values = np.load(io.BytesIO(arrays), allow_pickle=False)
        texts = {name: tuple(facts[name]) for name in ("names", "app_n", "input_n", "platform_n", "runnable_n")}
        halves_hn = np.full((2, len(texts["app_n"])), np.nan)
        return Measured(
            where="runs",
            values_nc=values["values_nc"],
            runtime_s_n=values["runtime_s_n"],
            runtime_s_halves_hn=halves_hn,
            failed_runs=int(facts["failed_runs"]),
            **texts,
        )

    def runs(self, data: bytes, kind: str, **needed: bool) -> list[Run]:
        """Return the runs of a table as records; `needed` are ``need_runtime`` and ``need_counters``."""
        facts, _ = self._ask("runs", f"runs.{kind}", data, **needed)
        return [Run.from_json(own) for own in facts["runs"]]

    def check(self, data: bytes, kind: str, *, need_runtime: bool = True) -> list[Problem]:
        """Return the problems of a table, errors first."""
        facts, _ = self._ask("check", f"runs.{kind}", data, need_runtime=need_runtime)
        return _problems(facts["problems"])

    def import_file(self, data: bytes, name: str, **settings: Any) -> ImportedRuns:
        """Return the runs of a profiler's file; see `importers.detect.import_runs` for the settings."""
        facts, _ = self._ask("import", _safe_name(name), data, **settings)
        runs = tuple(Run.from_json(own) for own in facts["runs"])
        return ImportedRuns(runs, tuple(facts["notes"]), tuple(facts["rejected"]))

    def _ask(self, task: str, name: str, data: bytes, **settings: Any) -> tuple[dict[str, Any], bytes]:
        until = time.monotonic() + self.limits.seconds
        with self._child() as child, tempfile.TemporaryDirectory(prefix="crossperf-upload-") as folder:
            (Path(folder) / name).write_bytes(data)
            request = {"task": task, "folder": folder, "name": name, "settings": settings}
            facts, arrays = child.ask(request, until)
        if "crash" in facts:
            why = "more memory than one file may take" if facts["crash"] == "memory" else f"a fault ({facts['crash']})"
            raise UploadError(f"Reading the upload met {why}, expected a sound file. Check it, or send it in parts.")
        if "error" in facts:
            raise _raised(facts["error"])
        return facts, arrays

    @contextmanager
    def _child(self) -> Iterator[_Child]:
        """Yield a child of this process; one that did not answer, or is worn out, is replaced."""
        with self._lock:
            if self._process != os.getpid():  # after a fork they are the parent's
                self._process, self._free = os.getpid(), queue.SimpleQueue()
                for _ in range(self._count):
                    self._free.put(None)
        try:
            child = self._free.get(timeout=self.limits.seconds)
        except queue.Empty:
            raise BusyError("Other uploads are being read. Send it again in a moment.") from None
        kept: _Child | None = None
        try:
            child = child or _Child(self.limits)
            yield child
            kept = None if child.is_worn_out else child
        except TimeoutError:
            limit = f"{self.limits.seconds:g} s"
            raise UploadError(f"Reading the upload took more than {limit}. Send it in parts.") from None
        except EOFError:
            raise UploadError(
                "The upload took down the process that read it (a fault in its reader, or too much memory), expected a "
                "sound file. Check it, or send it in parts."
            ) from None
        finally:
            if child is not None and kept is None:
                child.end()
            self._free.put(kept)

    def warm(self) -> None:
        """Start one child now, so that the first upload does not wait for it."""
        with self._child():
            pass

    def close(self) -> None:
        """End the children of this process."""
        with self._lock:
            while self._process == os.getpid() and not self._free.empty():
                child = self._free.get()
                if child is not None:
                    child.end()
            self._process = 0


def _safe_name(name: str) -> str:
    """Return the last part of a file's name with plain characters alone; importers look at its ending.

    >>> _safe_name("../../etc/passwd"), _safe_name("a b.cali"), _safe_name("..")
    ('passwd', 'a_b.cali', 'profile')
    """
    last = re.sub(r"[^\w.-]", "_", re.split(r"[/\\]", name)[-1])[-100:].strip(".")
    return last or "profile"


def _problems(entries: list[dict[str, Any]]) -> list[Problem]:
    return [from_json(Problem, entry) for entry in entries]


def _raised(facts: Mapping[str, Any]) -> CrossperfError:
    """Return the error that a child reported, as its own class."""
    kind = getattr(errors, str(facts["kind"]), CrossperfError)
    if not (isinstance(kind, type) and issubclass(kind, CrossperfError)):
        kind = CrossperfError
    problems = _problems(facts["problems"])
    known = {**facts["facts"], **({"problems": problems} if problems or kind is RunsTableError else {})}
    return kind(str(facts["message"]), **known)
