"""What the studies under benchmarks/ share: who works on pieces, where finished ones are kept, how far they are."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from crossperf.workers import Kept, Progress, Study, Workers, processes
from crossperf.workers.calls import name_of
from crossperf.workers.kept import Piece
from crossperf.workers.remaining import Remaining

HERE = Path(__file__).parent


def add_options(parser: argparse.ArgumentParser, name: str) -> None:
    """Add who works, with how many threads, and the folder that keeps the pieces."""
    parser.add_argument("--jobs", type=int, default=1, help="processes that work on pieces at the same time  [1]")
    parser.add_argument("--threads", type=int, default=1, help="threads of each of them  [1]")
    folder = HERE / "kept" / name
    parser.add_argument(
        "--kept", type=Path, default=folder, help=f"folder of finished pieces  [benchmarks/kept/{name}]"
    )
    parser.add_argument("--no-resume", action="store_true", help="score pieces again that were kept")


def workers_of(arguments: argparse.Namespace) -> AbstractContextManager[Workers]:
    return processes(arguments.jobs, threads=arguments.threads)


def kept_of(arguments: argparse.Namespace) -> Kept:
    return Kept(arguments.kept, resume=not arguments.no_resume)


def pieces_of(arguments: argparse.Namespace, study: Study) -> Iterator[Piece]:
    """Yield the pieces of a study that were kept, the oldest first."""
    kept = Kept(arguments.kept)
    return (piece for piece in kept.pieces() if piece.question["function"] == name_of(study.function))


def progress_of(title: str) -> Progress:
    """Return what prints a line on stderr at each step: how many pieces are done, the time left, and what runs."""
    remaining = Remaining()

    def show(step: str, done: int, total: int) -> None:
        left = remaining.words(done, total)
        print(f"{title}: {done}/{total}{f', {left}' if left else ''}: {step}", file=sys.stderr, flush=True)

    return show
