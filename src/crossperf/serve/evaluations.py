"""Evaluations that a server shows beside its models: files of ``crossperf evaluate --json``, read when asked for."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from crossperf.errors import did_you_mean
from crossperf.serve.models import UnknownNameError

if TYPE_CHECKING:
    from crossperf.evaluation.result import Evaluation


class Evaluations:
    """Evaluations by name, which is that of their file; each is read again when its file has changed."""

    def __init__(self, paths: Sequence[Path] = ()) -> None:
        self._paths: dict[str, Path] = {}
        for path in paths:
            stems = (path.stem, *(f"{path.stem}-{n}" for n in range(2, 999)))
            self._paths[next(name for name in stems if name not in self._paths)] = path
        self._lock = threading.Lock()
        self._read: dict[str, tuple[int, Evaluation]] = {}
        self._pages: dict[str, tuple[int, str]] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)

    def find(self, name: str) -> Evaluation:
        """Return an evaluation by its name."""
        from crossperf.evaluation.result import read_evaluation

        if name not in self._paths:
            raise UnknownNameError(
                f"evaluation: found {name[:80]!r}, which is not known here{did_you_mean(name, self)}."
            )
        with self._lock:
            stamp = self._stamp(name)
            if name not in self._read or self._read[name][0] != stamp:
                self._read[name] = stamp, read_evaluation(self._paths[name])
            return self._read[name][1]

    def page(self, name: str) -> str:
        """Return the report of an evaluation; to draw it the first time takes seconds."""
        from crossperf import report

        evaluation = self.find(name)
        with self._lock:
            stamp = self._stamp(name)
            if name not in self._pages or self._pages[name][0] != stamp:
                self._pages[name] = stamp, report.render(evaluation)
            return self._pages[name][1]

    def _stamp(self, name: str) -> int:
        try:
            return self._paths[name].stat().st_mtime_ns
        except OSError:
            return 0
