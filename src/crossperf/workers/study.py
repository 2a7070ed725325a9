"""A study: one pure function mapped over many questions by workers, each finished piece kept.

The seam between studies and what runs them is `Workers.submit`. Answers are the same bit for bit whatever runs them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from typing import Any, Protocol

from crossperf.versions import code_digest
from crossperf.workers.calls import Function, name_of, own_versions
from crossperf.workers.kept import Kept, Piece
from crossperf.workers.parcels import Parcel

#: How often engines are asked how many workers they have, in seconds, where no answer comes.
_LOOK_S = 1.0
#: Called before a piece begins, or when one is done, with its label, the number of pieces done and that of all.
Progress = Callable[[str, int, int], None]


class Workers(Protocol):
    """An engine that calls functions elsewhere: processes of this machine, a cluster of Dask, jobs of a site."""

    #: Threads of the numerical libraries in each worker.
    threads: int

    def capacity(self) -> int:
        """Return how many pieces may be on their way at a time."""

    def share(self, parcel: Parcel) -> Any:
        """Return what stands for a parcel among the arguments of calls; each worker reads it once."""

    def submit(self, function: Function, *arguments: Any) -> Future[Parcel]:
        """Have a function of a module called with plain arguments, and return its answer to come."""

    def start(self) -> None:
        """See that what was submitted so far runs; for engines that submit many calls at once."""


@dataclass(frozen=True)
class PieceQuestion:
    """What is asked of a function: a table, plain facts, a label for people, and notes to keep beside the answer."""

    table: Parcel
    facts: Mapping[str, Any]
    label: str = ""
    notes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Study:
    """A function of a table and a question, and the code that its answers depend on.

    Parameters
    ----------
    function
        Takes a parcel and the facts of a question, returns a parcel. It is a function of a module.
    code
        The rooms and modules of the package that decide its answers (`versions.code_digest`).
    """

    function: Function
    code: tuple[str, ...]

    def asked(self, question: PieceQuestion, threads: int) -> dict[str, Any]:
        """Return all that an answer depends on, as it is kept beside it."""
        packages = {name: version for name, version in own_versions().items() if name != "code"}
        return {
            "function": name_of(self.function),
            "code": code_digest(self.code),
            "versions": packages,
            "threads": threads,
            "table": question.table.fingerprint,
            **question.facts,
        }

    def answers(
        self,
        questions: Sequence[PieceQuestion],
        workers: Workers,
        kept: Kept | None = None,
        progress: Progress | None = None,
    ) -> Iterator[tuple[int, Parcel]]:
        """Yield the place and the answer of each question as they come: first those that were kept."""
        asked = [self.asked(own, workers.threads) for own in questions]
        left = []
        for i, facts in enumerate(asked):
            known = kept.get(facts) if kept is not None and kept.resume else None
            if known is None:
                left.append(i)
            else:
                yield i, known
        if not left:
            return
        shared: dict[str, Any] = {}
        done, total = len(questions) - len(left), len(questions)
        running: dict[Future[Parcel], int] = {}
        waiting = iter(left)
        last: tuple[str, int, int] | None = None
        try:
            while True:
                for i in _next(waiting, workers.capacity() - len(running)):
                    table = questions[i].table
                    if table.fingerprint not in shared:
                        shared[table.fingerprint] = workers.share(table)
                    call = (self.function, shared[table.fingerprint], dict(questions[i].facts))
                    running[workers.submit(*call)] = i
                if progress and (shown := (_labels(questions, running), done, total)) != last:
                    progress(*(last := shown))
                if done == total:
                    return
                workers.start()
                # Ended now and then, so that workers that come or go are seen.
                for future in _completed(running):
                    i = running.pop(future)
                    answer = future.result()
                    if kept is not None:
                        kept.put(Piece(asked[i], answer, questions[i].notes))
                    done += 1
                    yield i, answer
        finally:
            for future in running:
                future.cancel()


def _completed(running: Mapping[Future[Parcel], int]) -> list[Future[Parcel]]:
    """Return what has an answer; waited for, but not for ever."""
    if not running:
        time.sleep(_LOOK_S)
    done = wait(running, timeout=_LOOK_S, return_when=FIRST_COMPLETED).done
    return sorted(done, key=lambda future: future.exception() is not None)  # answers are kept before an error ends all


def _next(numbers: Iterator[int], count: int) -> Iterator[int]:
    """Yield the next numbers, at most `count`."""
    for _, number in zip(range(count), numbers, strict=False):
        yield number


def _labels(questions: Sequence[PieceQuestion], running: Mapping[Any, int]) -> str:
    """Return what is on its way, in a few words."""
    labels = [questions[i].label for i in running.values()]
    return ", ".join(labels[:2]) + (f" and {len(labels) - 2} more" if len(labels) > 2 else "")
