"""Lines of JSON that are added as they come and read again when a campaign goes on."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from crossperf.campaign.spec import Work

TIMES = "times.jsonl"
COUNTS = "counts.jsonl"


def add(path: Path, facts: Mapping[str, Any]) -> None:
    """Add one line, whole: a kill leaves at most one torn line, which `lines` passes over."""
    data = (json.dumps(facts) + "\n").encode()
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        while data:
            data = data[os.write(descriptor, data) :]
    finally:
        os.close(descriptor)


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of a file; none where it is absent."""
    if not path.exists():
        return
    for text in path.read_bytes().splitlines():
        try:
            facts = json.loads(text)
        except ValueError:
            continue
        if isinstance(facts, dict):
            yield facts


def work_of(facts: Mapping[str, Any]) -> Work:
    """Return which input a program's line is about."""
    return Work(str(facts.get("workload")), str(facts.get("input")))


def in_words(seconds: float) -> str:
    """Return a duration as a person reads it.

    >>> in_words(75.2), in_words(8.0)
    ('1 min 15 s', '8 s')
    """
    whole = round(seconds)
    return f"{whole // 60} min {whole % 60} s" if whole >= 60 else f"{whole} s"
