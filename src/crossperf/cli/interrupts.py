"""Signals that ask a command to end: each becomes an interrupt, so that nothing is left half-done."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

_ASKING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """Turns the first signal that asks this process to end into `KeyboardInterrupt`; a second ends it at once.

    `number` is the signal that came, or ``None``. What the caller has ignored, as under ``nohup``, stays ignored.
    """

    def __init__(self) -> None:
        self.number: int | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            for number in _ASKING:
                before = signal.getsignal(number)
                if before in (signal.SIG_DFL, signal.default_int_handler):
                    self._before[number] = before
                    signal.signal(number, self._receive)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _receive(self, number: int, _: FrameType | None) -> None:
        self.number = number
        for own in self._before:
            signal.signal(own, signal.SIG_DFL)
        raise KeyboardInterrupt
