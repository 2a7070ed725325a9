"""Checkpoints of a study: a folder of finished pieces, each under the fingerprint of its question.

A piece is a file of its own that appears whole or not at all, so a study that was broken off at any moment goes on with
the pieces that are missing. One driver at a time works in a folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from crossperf.documents import Document, at
from crossperf.errors import WorkerError
from crossperf.files import alone, naming, write_json
from crossperf.workers.parcels import Parcel, canonical

FORMAT = 1
_MARK = "pieces.json"
_LOCK = "driver.lock"
_PIECE = re.compile(r"[0-9a-f]{64}\.npz")
_DOCUMENT = Document("the mark of a folder of pieces", "Choose another folder.", FORMAT, error=WorkerError)


@dataclass(frozen=True)
class Piece:
    """A finished piece of work: what was asked, what was answered, and notes of whoever asked."""

    question: Mapping[str, Any]
    answer: Parcel
    notes: Mapping[str, Any]

    def parcel(self) -> Parcel:
        """Return the piece as a file keeps it."""
        facts = {"question": self.question, "answer": self.answer.facts, "notes": self.notes}
        return Parcel(facts, self.answer.arrays)

    @classmethod
    def of(cls, parcel: Parcel) -> Piece:
        """Return the piece of a file; what is none raises `ValueError`."""
        question, facts, notes = (at(parcel.facts, key, dict[str, Any]) for key in ("question", "answer", "notes"))
        return cls(question, Parcel(facts, parcel.arrays), notes)


def fingerprint_of(question: Mapping[str, Any]) -> str:
    """Return the name of a question: a digest of all that its answer depends on."""
    return hashlib.sha256(canonical(question)).hexdigest()


class Kept:
    """A folder of finished pieces; a context in which no other driver works in it.

    Parameters
    ----------
    folder
        Made where it is not there. A folder that holds anything else is refused.
    resume
        Whether pieces that stand there already are taken; otherwise they are answered again and replaced.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, Kept(Path(folder) / "pieces") as kept:
    ...     kept.put(Piece({"fold": 0}, Parcel({"r2": 0.5}), {}))
    ...     kept.get({"fold": 0}).facts, kept.get({"fold": 1}), len(kept)
    ({'r2': 0.5}, None, 1)
    """

    def __init__(self, folder: str | os.PathLike[str], *, resume: bool = True) -> None:
        self.folder = Path(folder)
        self.resume = resume
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Kept:
        with naming(self.folder, WorkerError):
            self.folder.mkdir(parents=True, exist_ok=True)
            self._refuse_unless_ours()
            try:
                self._stack.enter_context(alone(self.folder / _LOCK))
            except BlockingIOError as error:
                raise WorkerError(
                    f"{self.folder}: {error.strerror} works in this folder, expected one driver at a time. Wait until "
                    "it has ended, or choose another folder.",
                    path=str(self.folder),
                ) from error
        if not (self.folder / _MARK).exists():
            write_json(self.folder / _MARK, {"format": FORMAT})
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def __len__(self) -> int:
        return sum(1 for _ in self._files())

    def get(self, question: Mapping[str, Any]) -> Parcel | None:
        """Return the answer to a question; ``None`` where there is none, or where its file is damaged."""
        with contextlib.suppress(OSError, ValueError):
            piece = Piece.of(Parcel.read(self.path(question)))
            return piece.answer if canonical(piece.question) == canonical(question) else None
        return None

    def put(self, piece: Piece) -> None:
        """Keep a piece; a file of the same question is replaced."""
        piece.parcel().write(self.path(piece.question))

    def discard(self, question: Mapping[str, Any]) -> None:
        """Forget the answer to a question, if there is any."""
        self.path(question).unlink(missing_ok=True)

    def path(self, question: Mapping[str, Any]) -> Path:
        """Return the file of a question's answer, there or not."""
        return self.folder / f"{fingerprint_of(question)}.npz"

    def pieces(self) -> Iterator[Piece]:
        """Yield all pieces that can be read, the oldest first."""
        for path in sorted(self._files(), key=lambda path: (path.stat().st_mtime_ns, path.name)):
            with contextlib.suppress(OSError, ValueError):
                yield Piece.of(Parcel.read(path))

    def remove(self) -> None:
        """Remove the pieces, and the folder where it then holds nothing else."""
        for path in [*self._files(), self.folder / _MARK, self.folder / _LOCK]:
            path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self.folder.rmdir()

    def _files(self) -> Iterator[Path]:
        return (path for path in self.folder.iterdir() if _PIECE.fullmatch(path.name))

    def _refuse_unless_ours(self) -> None:
        if (self.folder / _MARK).exists():
            _DOCUMENT.read(self.folder / _MARK)
        elif strange := next((path.name for path in self.folder.iterdir() if path.name != _LOCK), None):
            raise WorkerError(
                f"{self.folder}: found {strange!r} and no {_MARK}, expected a new folder or one of finished pieces. "
                "It was left as it is; choose another folder.",
                path=str(self.folder),
            )
