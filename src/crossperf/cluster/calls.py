"""A call that travels to another process: the name of a function and plain arguments, never code."""

from __future__ import annotations

import importlib
import signal
import threading
from dataclasses import dataclass
from types import FrameType
from typing import Any

from crossperf import __version__
from crossperf.errors import CrossperfError

#: What an argument may be: JSON's own types, which mean the same in every process.
Plain = str | int | float | bool | None | list[Any] | dict[str, Any]


#: Calls of this process whose time was nearly over.
_WARNED: list[object] = []


class VersionError(CrossperfError):
    """The process that was to execute a call has another crossperf; ``asked`` and ``own`` are the versions."""


@dataclass(frozen=True)
class Call:
    """A function by its name, ``package.module:function``, and plain arguments for it.

    Calling it imports the function and executes it. SIGTERM, by which Slurm ends jobs, becomes `KeyboardInterrupt`
    there. A crossperf of another version refuses.

    >>> Call("math:hypot", (3, 4))()
    5.0
    """

    function: str
    arguments: tuple[Plain, ...] = ()
    version: str = __version__

    def __call__(self) -> Any:
        """Execute the function, and return what it returns."""
        if self.version != __version__:
            versions = f"was submitted by crossperf {self.version} and this node has {__version__}"
            raise VersionError(
                f"{self.function}: {versions}. Install the same version on both.", asked=self.version, own=__version__
            )
        if threading.current_thread() is threading.main_thread() and self._in_job():
            signal.signal(signal.SIGTERM, _interrupt)
        module, _, name = self.function.partition(":")
        return getattr(importlib.import_module(module), name)(*self.arguments)

    @staticmethod
    def _in_job() -> bool:
        # submitit passes SIGTERM over; a program's own handler is left alone.
        handler = signal.getsignal(signal.SIGTERM)
        return getattr(handler, "__module__", "").startswith("submitit")

    def checkpoint(self) -> Any:
        """Return what to do when the job starts again, for submitit: the same, which goes on where its files end."""
        import submitit

        _WARNED.append(self)
        return submitit.helpers.DelayedSubmission(self)


def warned() -> bool:
    """Tell whether this job's time is nearly over, so that it is being queued again."""
    return bool(_WARNED)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
