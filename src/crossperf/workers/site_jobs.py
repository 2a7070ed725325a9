"""Workers that are jobs of a site: the calls of a study as job arrays of Slurm, one element a piece.

A job writes its answer into a folder that all nodes share. A driver that was killed finds the answers that came
meanwhile, and the jobs that still wait or run, when it is started again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from crossperf import plain
from crossperf.cluster import Call, ClusterSite, ControllerError, JobArray, JobArrays, JobState
from crossperf.cluster import read as read_site
from crossperf.cluster.commands import array_limit, refuse_unless_up
from crossperf.documents import Document
from crossperf.errors import WorkerError
from crossperf.files import write_json
from crossperf.workers.calls import Function, Shared, WorkCall, name_of
from crossperf.workers.elements import answer_of, answer_path, error_of, error_path, to_plain
from crossperf.workers.parcels import Parcel, canonical

_LEDGER = "arrays.json"
_DOCUMENT = Document("a list of submitted arrays", "Remove its folder to begin anew.", 1, error=WorkerError)
_ELEMENT = "crossperf.workers.elements:element"
#: States of jobs that did end with an error of their own; in any other that ended, something befell them.
_FAILED = "FAILED"
#: How long an answer may take from a node that has ended its job to here: file systems show files late.
_LATE_S = 5.0


@dataclass(frozen=True)
class SubmittedCalls:
    """An array with the names of its calls, in the order of its elements; without a number until Slurm gave one."""

    name: str
    calls: tuple[str, ...]
    job: str = ""

    @property
    def array(self) -> JobArray:
        """The array as Slurm knows it."""
        return JobArray(self.name, self.job, len(self.calls))


@dataclass
class _UnansweredCall:
    """A call without answer: what to send, who waits, how often it was sent, and since when its job has ended."""

    facts: dict[str, Any]
    future: Future[Parcel] = field(default_factory=Future)
    tries: int = 0
    ended_at: float | None = None


class SiteWorkers:
    """Jobs of a site; made by `site`."""

    def __init__(self, cluster: ClusterSite, folder: Path, threads: int) -> None:
        self.threads, self.folder = threads, folder
        self._allocation, self._poll_s = cluster.for_workers(), cluster.poll_s
        self._jobs = JobArrays(folder)
        self._limit = array_limit()
        self._waiting: dict[str, _UnansweredCall] = {}
        self._unsent: list[str] = []
        self._asked_at = 0.0
        self._arrays = list(self._known())
        self._note()

    def capacity(self) -> int:
        """Return as many as there may be: the batch system decides what runs when."""
        return 1_000_000

    def share(self, parcel: Parcel) -> Shared:
        """Return what stands for a parcel, which jobs read from a file of the shared folder."""
        path = self.folder / f"{parcel.fingerprint}.table.npz"
        if not path.exists():
            parcel.write(path)
        return Shared(parcel.fingerprint, str(path))

    def submit(self, function: Function, *arguments: Any) -> Future[Parcel]:
        """Have a function called by a job; one that runs already for the same call is waited for."""
        facts = to_plain(WorkCall(name_of(function), arguments, self.threads))
        name = hashlib.sha256(canonical(facts)).hexdigest()
        self._waiting[name] = waiting = _UnansweredCall(facts)
        error_path(self.folder, name).unlink(missing_ok=True)
        if not any(name in array.calls for array in self._arrays):
            self._unsent.append(name)
        return waiting.future

    def start(self) -> None:
        """Submit what was not yet, as arrays, and look which answers have come."""
        self._collect()
        unsent = [name for name in self._unsent if name in self._waiting]
        self._unsent.clear()
        for first in range(0, len(unsent), self._limit):
            self._send(unsent[first : first + self._limit])
        if self._waiting and time.monotonic() - self._asked_at >= self._poll_s:
            with contextlib.suppress(ControllerError):  # a controller that is away tells nothing of any job
                states = self._jobs.states([own.array for own in self._arrays])
                self._follow(states)
            self._asked_at = time.monotonic()

    def close(self, *, cancel: bool) -> None:
        """Cancel what is left, or remove the folder of jobs that are all done."""
        if cancel:
            with contextlib.suppress(ControllerError):
                self._jobs.cancel(own.array for own in self._arrays)
        else:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _send(self, names: list[str]) -> None:
        starts = self._allocation.tries
        arguments = [(str(self.folder), name, self._waiting[name].facts, starts) for name in names]
        submitted = SubmittedCalls(f"crossperf-study-{uuid.uuid4().hex[:12]}", tuple(names))
        self._arrays.append(submitted)
        self._note()  # before it is sent: a driver that is killed in between finds it by its name
        array = self._jobs.submit(submitted.name, [Call(_ELEMENT, own) for own in arguments], self._allocation)
        self._arrays[-1] = replace(submitted, job=array.job)
        self._note()
        for name in names:
            self._waiting[name].tries += 1

    def _collect(self) -> None:
        for name, waiting in list(self._waiting.items()):
            answer = answer_of(answer_path(self.folder, name))
            error = None if answer else error_of(error_path(self.folder, name))
            if answer is not None:
                self._waiting.pop(name).future.set_result(answer)
            elif error is not None:
                self._waiting.pop(name).future.set_exception(error)
            elif waiting.future.cancelled():
                self._waiting.pop(name)

    def _follow(self, states: dict[tuple[str, int], JobState]) -> None:
        """See which jobs ended without an answer: begin their calls again, a few times."""
        for array in list(self._arrays):
            for number, name in enumerate(array.calls):
                waiting, state = self._waiting.get(name), states[array.name, number]
                if waiting is None or not state.ended:
                    continue
                waiting.ended_at = waiting.ended_at or time.monotonic()
                if time.monotonic() - waiting.ended_at >= _LATE_S:
                    self._begin_again(name, array, number, state)

    def _begin_again(self, name: str, array: SubmittedCalls, number: int, state: JobState) -> None:
        waiting = self._waiting[name]
        words = self._jobs.last_words(array.array, number)
        if state.word == _FAILED or waiting.tries >= self._allocation.tries:
            reason = f"{state}{f': {words}' if words else ''}"
            self._waiting.pop(name).future.set_exception(
                WorkerError(
                    f"job {array.array.id(number)} of a piece ended without its answer ({reason}), expected one. Look "
                    f"into {self.folder}; finished pieces stay, the same command goes on."
                )
            )
            return
        waiting.ended_at = None
        self._arrays = [
            replace(own, calls=tuple("" if call == name else call for call in own.calls)) for own in self._arrays
        ]
        self._unsent.append(name)

    def _known(self) -> Iterator[SubmittedCalls]:
        """Yield the arrays that an earlier driver submitted, as far as Slurm has them."""
        if not (self.folder / _LEDGER).exists():
            return
        facts = _DOCUMENT.read(self.folder / _LEDGER)
        submitted = _DOCUMENT.shaped(list[SubmittedCalls], facts.get("arrays", []), self.folder / _LEDGER)
        numbered = [own if own.job else replace(own, job=self._jobs.find(own.name) or "") for own in submitted]
        known = [own for own in numbered if own.job and self._is_whole(own.array)]
        states = self._jobs.states([own.array for own in known])
        for own in known:
            live = (
                "" if states[own.name, number].ended else call for number, call in enumerate(own.calls)
            )  # what has ended without an answer is sent again
            yield replace(own, calls=tuple(live))

    def _is_whole(self, array: JobArray) -> bool:
        """Tell whether every element has its call; an array that a killed driver left without some is cancelled."""
        whole = self._jobs.is_whole(array)
        if not whole:
            self._jobs.cancel([array])
        return whole

    def _note(self) -> None:
        write_json(self.folder / _LEDGER, {"format": 1, "arrays": plain.to_json(self._arrays)})


@contextlib.contextmanager
def site(path: str | os.PathLike[str], folder: str | os.PathLike[str], *, threads: int = 1) -> Iterator[SiteWorkers]:
    """Yield the jobs of a site, which its table ``[workers]`` describes.

    Parameters
    ----------
    path
        The SITE: a TOML file.
    folder
        Where answers and the files of jobs go unless the SITE names a folder: all nodes must share it.
    threads
        Threads of the numerical libraries in each job.
    """
    cluster = read_site(os.fspath(path))
    cluster.for_workers()
    refuse_unless_up()
    place = Path(folder).absolute()
    if cluster.folder is not None:
        place = cluster.folder / f"study-{hashlib.sha256(os.fsencode(place)).hexdigest()[:12]}"
    workers = SiteWorkers(cluster, place, threads)
    try:
        yield workers
    except BaseException:
        workers.close(cancel=True)
        raise
    workers.close(cancel=False)
