"""Job arrays of Slurm through submitit: submit calls, ask for all states at once, cancel.

```
[Call, ...] --submit--> JobArray --states--> {(array, element): JobState}
                                 --cancel-->
```
submitit pickles each call into a folder that only its owner may enter, and reads it there; so a call holds names and
plain settings alone. It writes a pickle of what the function returned, too. That file is never read: a function writes
its results into files of its own as they come, and whoever submitted it reads these. Called again, such a function goes
on where its files end. That is what happens to a job that Slurm starts again: after preemption, a failed node, or its
time limit, which a signal announces; submitit then has the job queued again.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import shlex
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crossperf.cluster import states as slurm
from crossperf.cluster.calls import Call
from crossperf.cluster.commands import ControllerError, ask, refuse_unless_up
from crossperf.cluster.site import Allocation
from crossperf.cluster.states import JobState
from crossperf.errors import CrossperfError, MissingDependencyError

_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,120}")
#: Bytes at the end of a job's errors that are looked at.
_TAIL = 1 << 16
#: How often a job may start again at its time limit; the function ends what makes no progress.
_MOST_STARTS = 1000
_THAT_IT_ENDED = re.compile(r"srun: (error: .*\btasks? [\d,-]+: |got SIG|forcing |Job step aborted)")
_ITS_ERROR = re.compile(r"(?:[\w.]+\.)?[A-Z]\w*(?:Error|Exception|Interrupt|Exit): (.*)")


class SubmissionError(CrossperfError):
    """Slurm did not take a submission; the message has its reason."""


@dataclass(frozen=True)
class JobArray:
    """An array that was submitted: its name, the number that Slurm gave it, and how many elements it has."""

    name: str
    job: str
    size: int

    def id(self, element: int) -> str:
        """Return what Slurm calls an element; submitit submits a single call as a plain job."""
        return self.job if self.size == 1 else f"{self.job}_{element}"


class JobArrays:
    """Submits calls as arrays of Slurm, and follows them.

    Parameters
    ----------
    folder
        Where submitit keeps what it needs, made with the rights 0700; compute nodes must see it under the same name.
        One that others may enter, or that belongs to somebody else, raises.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = private(Path(folder).absolute())

    def submit(
        self, name: str, calls: Sequence[Call], allocation: Allocation, *, after: JobArray | None = None
    ) -> JobArray:
        """Submit calls as one array and return it; nothing is submitted where Slurm refuses.

        Parameters
        ----------
        name
            The job's name, given once: an array whose number was not noted is known by it (`find`).
        after
            An array that must have ended before.
        """
        if not _NAME.fullmatch(name) or not calls:
            raise ValueError(f"name: found {name!r} for {len(calls)} calls, expected a word, and one call or more")
        executor = _executor(self.folder, allocation, name, after)
        submitit = _submitit()
        try:
            with executor.batch():
                jobs = [executor.submit(call) for call in calls]
        except OSError as error:
            problem = f"{self.folder}: cannot be written ({error.strerror or error}), so that nothing can be submitted"
            raise SubmissionError(f"{problem}. Make room, or choose another place.", name=name) from error
        except (submitit.core.utils.FailedJobError, submitit.core.utils.FailedSubmissionError) as error:
            problem = (
                f"Slurm did not take the array {name} for partition {allocation.partition} ({_sbatch_says(error)})"
            )
            raise SubmissionError(f"{problem}. Try the site with --check.", name=name) from error
        return JobArray(name, str(jobs[0].job_id).partition("_")[0], len(calls))

    def states(self, arrays: Sequence[JobArray]) -> dict[tuple[str, int], JobState]:
        """Return the state of every element by its array's name and its number, from one query for all.

        What squeue no longer shows is looked up in the accounting, where there is any, and then in what Slurm wrote
        into the job's output; what nobody knows is `GONE`. A controller that does not answer raises `ControllerError`,
        and tells nothing of any job.
        """
        if not arrays:
            return {}
        refuse_unless_up()  # answers at once, where squeue would try for a while
        in_queue = slurm.shown([array.name for array in arrays])
        partly = [array.job for array in arrays if len(in_queue.get(array.job, {})) < array.size]
        ended = slurm.accounted(partly)
        known: dict[tuple[str, int], JobState] = {}
        for array in arrays:
            shown, accounted = in_queue.get(array.job, {}), ended.get(array.job, {})
            for number in range(array.size):
                state = shown.get(number) or accounted.get(number)
                known[array.name, number] = state or JobState(slurm.last_end(self._errors(array, number)))
        return known

    def find(self, name: str) -> str | None:
        """Return the number of the array that was submitted under a name, where squeue still shows it."""
        return next(iter(slurm.shown([name])), None)

    def is_whole(self, array: JobArray) -> bool:
        """Tell whether every element has its call: a driver that is killed while it submits may leave some without."""
        return all((self.folder / f"{array.id(number)}_submitted.pkl").exists() for number in range(array.size))

    def cancel(self, arrays: Iterable[JobArray], elements: Sequence[int] | None = None) -> None:
        """Cancel arrays, or some of their elements; those that have ended already are passed over."""
        for array in arrays:
            ids = [array.job] if elements is None else [array.id(number) for number in elements]
            ask("scancel", "--quiet", *ids)

    def last_words(self, array: JobArray, element: int) -> str:
        """Return the last line that an element wrote about its end, or nothing."""
        return last_error(self._errors(array, element))

    def _errors(self, array: JobArray, element: int) -> str:
        path = self.folder / f"{array.id(element)}_0_log.err"
        try:
            with path.open("rb") as file:
                file.seek(max(0, path.stat().st_size - _TAIL))
                return file.read(_TAIL).decode(errors="replace")
        except OSError:
            return ""


def last_error(text: str) -> str:
    r"""Return the sentence of the last error in a text: of an exception, otherwise of Slurm's daemon.

    >>> last_error("Traceback\n  x\nKeyError: 'a'\nsrun: error: cpu1: task 0: Exited with exit code 1\n")
    "'a'"
    >>> last_error("slurmstepd: error: execve(): python: No such file\nsrun: error: cpu1: task 0: Exited\n")
    'slurmstepd: error: execve(): python: No such file'
    """
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("submitit ")]
    own = [match[1] for line in lines if (match := _ITS_ERROR.fullmatch(line))]
    # That a task ended is known; why it did stands before.
    causes = [line for line in lines if not _THAT_IT_ENDED.match(line)]
    return (own or causes or lines or [""])[-1].strip("* ")[:500]


def private(folder: Path) -> Path:
    """Return a folder that only its owner may enter, made if absent; another's, or an open one, raises."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            folder.mkdir(0o700)
        facts = folder.stat()
    except OSError as error:
        expected = "expected a place for the files of jobs that all nodes share"
        problem = f"{folder}: cannot be made ({error.strerror}), {expected}. Name another as folder in the site."
        raise CrossperfError(problem, path=str(folder)) from error
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.geteuid() or facts.st_mode & 0o077:
        owner = "it is open to others" if facts.st_uid == os.geteuid() else "it belongs to somebody else"
        expected = "expected a folder that only you may enter: what lies in it is executed by your jobs"
        raise CrossperfError(f"{folder}: {owner}, {expected}. Choose another, or: chmod 700 {folder}", path=str(folder))
    return folder


def _submitit() -> Any:
    try:
        import submitit
    except ModuleNotFoundError as error:
        problem = "submitting to Slurm needs the package submitit, which is not installed"
        raise MissingDependencyError(f"{problem}. Install it with: pip install 'crossperf[cluster]'") from error
    return submitit


def _executor(folder: Path, allocation: Allocation, name: str, after: JobArray | None) -> Any:
    python = shlex.join(allocation.python) if allocation.python else None
    submitit = _submitit()
    try:
        executor = submitit.SlurmExecutor(folder, max_num_timeout=_MOST_STARTS, python=python)
    except RuntimeError as error:
        raise ControllerError(
            "srun cannot be run (not found). Install Slurm's commands, or add them to PATH."
        ) from error
    # The job's own step: one process on the first node, with all of the job's processors, shared with what it starts.
    step = ["--nodes=1", "--ntasks=1", "--overlap"]
    step += [f"--cpus-per-task={allocation.cpus}"] if allocation.cpus else []
    options: dict[str, Any] = dict(allocation.sbatch())
    options |= {"dependency": f"afterany:{after.job}"} if after else {}
    executor.update_parameters(
        job_name=name,
        time=max(1, math.ceil(min(allocation.limit_s, 365 * 86400.0) / 60)),
        signal_delay_s=allocation.warning_s,
        setup=list(allocation.setup) or None,
        srun_args=step,
        array_parallelism=allocation.at_once,
        wckey=None,
        additional_parameters=options,
    )
    return executor


def _sbatch_says(error: BaseException) -> str:
    lines = [line.strip().rstrip(".") for line in str(error).splitlines() if line.strip()]
    return lines[-1].removeprefix("sbatch: error: ") if lines else "it gave no reason"
