"""What the elements of an array are to do: batches of inputs, in a file that the jobs read, and a folder for each.

```
FOLDER/tasks/ARRAY.json                 what each element takes, written before the array is submitted
FOLDER/elements/ARRAY-NUMBER/*.jsonl    what came of it, a line for each input, written by the element alone
FOLDER/submitit/                        what submitit needs
```
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crossperf import plain
from crossperf.campaign.spec import Mode, Spec, Work
from crossperf.documents import Document
from crossperf.errors import CollectError
from crossperf.files import write_json

FORMAT = 1
_DOCUMENT = Document("tasks of a campaign", "Start the campaign again.", FORMAT, error=CollectError)
#: What an element says of its own end, where it was cut off.
BY_REQUEST, BY_LIMIT = "SIGTERM", "time limit"


@dataclass(frozen=True)
class ElementTask:
    """The inputs that one element takes: in a round, or with `counts` to be counted.

    `to_count` are the numbers of the inputs whose programs are to be counted besides; `cut_off` is how often an input
    was cut off before, by its line.
    """

    works: tuple[Work, ...]
    round: str = ""
    counts: str = ""
    to_count: tuple[int, ...] = ()
    cut_off: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class ArrayTasks:
    """The tasks of an array, with what its elements need to know of the campaign (without its inputs)."""

    spec: Spec
    platform: str
    tries: int
    elements: tuple[ElementTask, ...]

    @property
    def mode(self) -> Mode:
        """The platform that the elements measure on."""
        return self.spec.modes[self.platform]

    def write(self, folder: Path, array: str) -> None:
        """Write the tasks of an array, before it is submitted."""
        path = tasks_file(folder, array)
        path.parent.mkdir(exist_ok=True)
        write_json(path, {"format": FORMAT, **plain.to_json(self)})

    @classmethod
    def read(cls, folder: Path, array: str) -> ArrayTasks:
        """Return the tasks of an array."""
        path = tasks_file(folder, array)
        return _DOCUMENT.shaped(cls, _DOCUMENT.read(path), path)


def tasks_file(folder: Path, array: str) -> Path:
    """Return where the tasks of an array are."""
    return folder / "tasks" / f"{array}.json"


def element_folder(folder: Path, array: str, number: int) -> Path:
    """Return where an element writes."""
    return folder / "elements" / f"{array}-{number}"


def cut_offs(lines: Iterable[Mapping[str, Any]], *, dead: bool) -> Counter[str]:
    """Return how often each input was begun and cut off, as the log of an element tells.

    What was ended by request (preemption, ``scancel``) is not held against an input; what ended at the time limit, or
    without a word, is.

    Parameters
    ----------
    dead
        The element runs no more: the input that it was at was cut off, too.
    """
    counts: Counter[str] = Counter()
    at: str | None = None
    for line in lines:
        if "begun" in line or "element" in line:
            if at is not None:
                counts[at] += 1
            at = str(line["begun"]) if "begun" in line else None
        elif "stopped" in line:
            if at is not None and line["stopped"] != BY_REQUEST:
                counts[at] += 1
            at = None
        elif "workload" in line:
            at = None
    if at is not None and dead:
        counts[at] += 1
    return counts


def at_hand(lines: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the input that an element was at when its log ends, or ``None``."""
    last = [line for line in lines if line.keys() & {"begun", "workload", "stopped", "element", "ended"}]
    return str(last[-1]["begun"]) if last and "begun" in last[-1] else None


def size_of(path: Path) -> int:
    """Return how many bytes a file has; none where it is absent."""
    try:
        return os.stat(path).st_size  # noqa: PTH116, called for each file in each look
    except OSError:
        return 0
