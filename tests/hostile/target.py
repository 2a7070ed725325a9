"""A reader of a file, as the table of bad inputs and fuzzing know it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: What real tools wrote.
DATA = Path(__file__).parents[1] / "data"


@dataclass(frozen=True)
class Target:
    """A reader: the name of its file, the bytes of a sound one, and what reads and uses it."""

    name: str
    file: str
    made: Callable[[], bytes]
    read: Callable[[Path], Any]

    def sound(self) -> bytes:
        """Return the bytes of a sound file; made once."""
        return _made(self.made)


@functools.cache
def _made(made: Callable[[], bytes]) -> bytes:
    return made()
