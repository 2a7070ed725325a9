"""The states of submitted jobs, from one query for all of them: what squeue still shows, and what accounting knows.

``squeue`` shows a job that has ended for some minutes more (``MinJobAge``), so that its end is known without
accounting. A job that neither shows is `GONE`: it has ended, nobody knows how. A controller that gives no answer
raises, and tells nothing about any job.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from crossperf.cluster.commands import ControllerError, ask

#: Nobody shows the job any more.
GONE = "GONE"
PENDING = "PENDING"
#: States in which a job will run, runs or cleans up after itself; it writes nothing more in any other.
_WAITING = {PENDING, "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD"}
_RUNNING = {"RUNNING", "COMPLETING", "CONFIGURING", "SUSPENDED", "STAGE_OUT", "SIGNALING", "STOPPED", "RESIZING"}
#: Base number, number in the array, state, reason: the last may hold blanks and bars.
_FORMAT = "%F|%K|%T|%r"
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")
_END = re.compile(r"\*\*\* (?:JOB|STEP) \S+ ON \S+ CANCELLED AT \S+( DUE TO [A-Z ]+)? \*\*\*")
_CAUSES = {"": "CANCELLED", "DUE TO TIME LIMIT": "TIMEOUT", "DUE TO PREEMPTION": "PREEMPTED"}
_CAUSES |= {"DUE TO NODE FAILURE": "NODE_FAIL"}
#: A controller may be busy for this long.
_PATIENCE_S = 60.0
#: Names in one query: a command line has bounds.
_MOST_NAMES = 500


@dataclass(frozen=True)
class JobState:
    """The state of a job as Slurm has it, and Slurm's reason for it.

    >>> JobState("TIMEOUT", "TimeLimit").ended
    True
    """

    word: str
    reason: str = ""

    @property
    def waiting(self) -> bool:
        """Whether the job has still to start, for the first time or again."""
        return self.word in _WAITING

    @property
    def running(self) -> bool:
        """Whether the job runs now."""
        return self.word in _RUNNING

    @property
    def ended(self) -> bool:
        """Whether the job writes nothing more."""
        return not self.waiting and not self.running

    def __str__(self) -> str:
        plain = self.reason in ("", "None", self.word)
        return self.word if plain else f"{self.word}, {self.reason}"


def shown(names: Sequence[str]) -> dict[str, dict[int, JobState]]:
    """Return the states that squeue shows, by the number of an array and that of its element.

    A job that is no array has the element 0.

    Parameters
    ----------
    names
        The names that the arrays were submitted under.
    """
    known: dict[str, dict[int, JobState]] = {}
    for first in range(0, len(names), _MOST_NAMES):
        some = ",".join(names[first : first + _MOST_NAMES])
        words = ("--noheader", "--array", "--states=all", f"--name={some}", f"--format={_FORMAT}")
        text = ask("squeue", *words, patience_s=_PATIENCE_S)
        for job, element, state in _shown(text):
            known.setdefault(job, {})[element] = state
    return known


def _shown(text: str) -> Iterator[tuple[str, int, JobState]]:
    r"""Yield what squeue prints about jobs and elements of arrays.

    >>> list(_shown("7|3|PENDING|Nodes required for job are DOWN, DRAINED\n8|N/A|RUNNING|None\n"))[0]
    ('7', 3, JobState(word='PENDING', reason='Nodes required for job are DOWN, DRAINED'))
    """
    for line in text.splitlines():
        job, _, rest = line.strip().partition("|")
        elements, _, rest = rest.partition("|")
        word, _, reason = rest.partition("|")
        for element in _elements(elements):
            yield job, element, JobState(word.split(" ")[0], reason.strip())


def _elements(text: str) -> Iterator[int]:
    """Yield the numbers of elements, which may come as ranges with a bound on how many run at once.

    >>> list(_elements("[0-2,5%4]")), list(_elements("N/A")), list(_elements("3"))
    ([0, 1, 2, 5], [0], [3])
    """
    if not any(map(str.isdigit, text)):
        yield 0
        return
    for first, last in _RANGE.findall(text.partition("%")[0]):
        yield from range(int(first), int(last or first) + 1)


def last_end(text: str) -> str:
    """Return the state in which a job ended as its node wrote it into the job's output; `GONE` where it did not.

    >>> last_end("slurmstepd: error: *** JOB 4 ON cpu1 CANCELLED AT 2026-11-18T12:43:35 ***")
    'CANCELLED'
    >>> last_end("*** JOB 4 ON cpu1 CANCELLED AT 2026-11-18T12:43:35 DUE TO TIME LIMIT ***")
    'TIMEOUT'
    """
    causes = _END.findall(text)
    return _CAUSES.get(causes[-1].strip(), GONE) if causes else GONE


def accounted(jobs: Sequence[str]) -> Mapping[str, dict[int, JobState]]:
    """Return what accounting knows of jobs that squeue no longer shows; nothing where there is no accounting."""
    known: dict[str, dict[int, JobState]] = {}
    if not jobs:
        return known
    try:
        text = ask("sacct", "-nXP", f"--jobs={','.join(jobs)}", "--format=JobID,State", patience_s=_PATIENCE_S)
    except ControllerError:
        return known  # without slurmdbd it fails; squeue and the logs must do
    for line in text.splitlines():
        number, _, word = line.strip().partition("|")
        job, _, elements = number.partition("_")
        if job.isdigit() and word:
            for element in _elements(elements):
                # CANCELLED comes with who did it.
                known.setdefault(job, {})[element] = JobState(word.split(" ")[0], word.partition(" ")[2])
    return known
