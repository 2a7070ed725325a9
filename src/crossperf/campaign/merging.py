"""Brings what elements logged into the campaign's own logs: whole lines alone, each visit once."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from crossperf.campaign.element import MARK
from crossperf.campaign.log import COUNTS, TIMES, add, lines
from crossperf.campaign.tasks import element_folder, size_of
from crossperf.documents import opened, parse
from crossperf.errors import CollectError
from crossperf.files import add_lines

Line = Mapping[str, Any]
#: What an element writes for its driver alone.
_OWN = {"element", "begun", "stopped", "ended"}


class Merger:
    """Adds new lines of elements to ``times.jsonl`` and ``counts.jsonl`` of a campaign.

    A visit is known by platform, round and input: one that ended is never added a second time, whoever made it.
    """

    def __init__(self, output: Path, jobs: Path) -> None:
        self._output, self._jobs = output, jobs
        self._sizes: dict[tuple[str, int], int] = {}
        self._logs: dict[tuple[str, int], list[Line]] = {}
        self._seen: set[str] = set()
        #: Whether each visit, or counting, that is known ended well.
        self.known: dict[tuple[str, ...], bool] = {}
        for name in (TIMES, COUNTS):
            for line in lines(output / name):
                self._note(line)

    def _note(self, line: Line) -> None:
        self._seen.add(_canonical(line))
        if key := key_of(line):
            self.known[key] = self.known.get(key, False) or "error" not in line

    def log(self, array: str, number: int) -> list[Line]:
        """Return the lines of an element as they were when they were merged last."""
        return self._logs.get((array, number), [])

    def merge(self, array: str, number: int, output: Path | None = None) -> int:
        """Add the new lines of an element, and return how many; `output` is what its job printed."""
        folder = element_folder(self._jobs, array, number)
        files = [folder / TIMES, folder / COUNTS, *([output] if output else [])]
        size = sum(map(size_of, files))
        if size == self._sizes.get((array, number), 0):
            return 0
        times, counts = [*lines(folder / TIMES), *_printed(output)], list(lines(folder / COUNTS))
        self._sizes[array, number] = size
        self._logs[array, number] = [*times, *({"workload": "", **line} for line in counts)]
        return self._add(TIMES, times) + self._add(COUNTS, counts)

    def forget(self, array: str, number: int) -> None:
        """Let go of the lines of an element that has ended."""
        self._logs.pop((array, number), None)

    def _add(self, name: str, read: Sequence[Line]) -> int:
        new = []
        for line in read:
            if not line.keys() & _OWN and _canonical(line) not in self._seen and not self.is_done(key_of(line)):
                new.append(line)
                self._note(line)
        text = "".join(json.dumps(line) + "\n" for line in new)
        if text:
            add_lines(self._output / name, text, CollectError, synced=False)
        return len(new)

    def fail(self, facts: dict[str, Any], name: str = TIMES) -> None:
        """Add an input that failed without a word of its element."""
        if not self.is_done(key_of(facts)):
            add(self._output / name, facts)
            self._note(facts)

    def is_done(self, key: tuple[str, ...] | None) -> bool:
        """Tell whether a visit, or a counting, ended well."""
        return key is not None and self.known.get(key, False)


def key_of(line: Line) -> tuple[str, ...] | None:
    """Return what a visit or a counting is known by; ``None`` for other lines."""
    if "workload" not in line:
        return None
    where = ("counts", line["counts"]) if "counts" in line else (line.get("platform"), line.get("round"))
    return tuple(map(str, (*where, line["workload"], line.get("input"))))


def _canonical(line: Line) -> str:
    return json.dumps({name: value for name, value in line.items() if name != "format"}, sort_keys=True)


def _printed(output: Path | None) -> Iterator[Line]:
    """Yield the lines that an element could only print."""
    if output is None or not size_of(output):
        return
    mark = MARK.encode()
    with opened(output) as file:
        for raw in file:
            if raw.startswith(mark) and raw.endswith(b"\n"):
                try:
                    line = parse(raw.removeprefix(mark), lenient=True)
                except ValueError:
                    continue
                if isinstance(line, dict):
                    yield line
