"""The files in which Linux describes a machine: /proc and /sys."""

from __future__ import annotations

import contextlib
import re
from functools import cached_property
from pathlib import Path


class Tree:
    """The files of a machine below a root; what is not there reads as ``None``."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.here = root.resolve() == Path("/")

    def text(self, path: str) -> str | None:
        """Return what a file holds."""
        try:
            return (self.root / path).read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            return None

    def number(self, path: str) -> int | None:
        """Return the whole number that a file holds."""
        text = self.text(path)
        try:
            return int(text) if text else None
        except ValueError:
            return None

    def numbered(self, folder: str, prefix: str) -> list[str]:
        """Return the entries ``prefix0, prefix1, ...`` of a folder, in the order of their numbers."""
        try:
            names = [entry.name for entry in (self.root / folder).iterdir()]
        except OSError:
            return []
        numbers = sorted(int(name[len(prefix) :]) for name in names if re.fullmatch(rf"{prefix}\d+", name))
        return [f"{folder}/{prefix}{number}" for number in numbers]

    def match(self, pattern: str, path: str) -> str | None:
        """Return the first group of a pattern in the lines of a file."""
        match = re.search(pattern, self.text(path) or "", re.MULTILINE)
        return match[1] if match else None

    @cached_property
    def cpuinfo(self) -> list[dict[str, str]]:
        """The paragraphs of /proc/cpuinfo: one for each hardware thread, and on some machines one for the whole."""
        blocks = []
        for paragraph in re.split(r"\n\s*\n", self.text("proc/cpuinfo") or ""):
            pairs = (line.split(":", 1) for line in paragraph.splitlines() if ":" in line)
            blocks.append({name.strip().lower(): value.strip() for name, value in pairs})
        return [block for block in blocks if block]

    def cpu(self, *names: str) -> str | None:
        """Return the first value of /proc/cpuinfo under one of these names."""
        return next((block[name] for name in names for block in self.cpuinfo if block.get(name)), None)

    @cached_property
    def flags(self) -> set[str]:
        """The features of an x86 processor by Linux' short names."""
        return set((self.cpu("flags") or "").split())

    @cached_property
    def online(self) -> list[int]:
        """The numbers of the hardware threads that are in use."""
        listed = cpu_list(self.text("sys/devices/system/cpu/online"))
        return listed or [int(path.rsplit("cpu", 1)[1]) for path in self.numbered("sys/devices/system/cpu", "cpu")]


def cpu_list(text: str | None) -> list[int]:
    """Return the numbers of a list as Linux writes it.

    >>> cpu_list("0-3,8")
    [0, 1, 2, 3, 8]
    """
    numbers: list[int] = []
    for part in (text or "").split(","):
        with contextlib.suppress(ValueError):
            first, _, last = part.partition("-")
            numbers += range(int(first), int(last or first) + 1)
    return numbers
