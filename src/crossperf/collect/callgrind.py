"""Reads callgrind's output: total events, and how often each instruction of each object was executed."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from crossperf.errors import ProfileFileError

_PLUS, _MINUS, _STAR, _ZERO, _NINE = b"+-*09"


@dataclass
class CallgrindProfile:
    """One process as callgrind saw it.

    `line_bytes` holds the size of a line of each simulated cache (``D1``, ``LL``). `executions` maps an object file to
    the addresses in it and how often each was executed; it is empty for a file written without ``--dump-instr=yes``.
    """

    command: str = ""
    creator: str = ""
    totals: dict[str, int] = field(default_factory=dict)
    line_bytes: dict[str, int] = field(default_factory=dict)
    executions: dict[str, dict[int, int]] = field(default_factory=dict)


def read(path: Path) -> CallgrindProfile:
    """Return a callgrind file's totals and executed instructions.

    Raises `ProfileFileError` for another format, another version, or a file cut short.
    """
    data = path.read_bytes()
    head, _, body = data.partition(b"\nsummary:")
    profile = _head(path, head)
    events = profile.totals
    summary, line_end, body = body.partition(b"\n")
    # The summary misses what was collected between marks of the program; the totals at the end have all.
    body, _, totals = body.rpartition(b"\ntotals:") if b"\ntotals:" in body else (body, b"", b"")
    words = (totals or summary).split()
    counts = [int(word) for word in words] if all(map(bytes.isdigit, words)) else []
    if not line_end or len(counts) < 1 or len(counts) > len(events):
        raise _damaged(path, "no totals", "a line 'summary:' with one count for each event")
    profile.totals = dict(zip(events, [*counts, *[0] * (len(events) - len(counts))], strict=True))
    if b"\npositions: instr" not in head:
        return profile
    try:
        profile.executions = _executions(body)
    except (ValueError, IndexError, KeyError) as error:
        raise _damaged(path, f"a line that is no cost line ({error})", "addresses and counts") from error
    executed = sum(sum(counts.values()) for counts in profile.executions.values())
    # What the summary has beyond the lines are a few instructions at the end of the process.
    if executed < 0.99 * profile.totals.get("Ir", 0):
        named = f"the {profile.totals['Ir']:,} that its summary names"
        raise _damaged(path, f"{executed:,} executed instructions", named)
    return profile


def _head(path: Path, head: bytes) -> CallgrindProfile:
    pairs = (line.partition(":") for line in head.decode(errors="replace").splitlines())
    facts = {key: value.strip() for key, _, value in pairs}
    totals = dict.fromkeys(facts.get("events", "").split(), 0)
    lines = re.findall(rb"^desc: (\w+) cache: \d+ B, (\d+) B,", head, re.MULTILINE)
    line_bytes = {cache.decode(): int(n_bytes) for cache, n_bytes in lines}
    profile = CallgrindProfile(facts.get("cmd", ""), facts.get("creator", ""), totals, line_bytes)
    version = facts.get("version")
    if version is None or not totals:
        raise _damaged(path, "no 'version:' and 'events:' lines", "the output of valgrind --tool=callgrind")
    if version != "1":
        expected = "version 1 of the callgrind format"
        raise ProfileFileError(f"{path}: found version {version}, expected {expected}. Report it to us.", path=path)
    return profile


def _damaged(path: Path, problem: str, expected: str) -> ProfileFileError:
    advice = "The process may have been killed while it was written; count again."
    return ProfileFileError(f"{path}: found {problem}, expected {expected}. {advice}", path=path)


def _executions(body: bytes) -> dict[str, dict[int, int]]:
    """Return how often each address was executed.

    A cost line is ``ADDRESS LINE Ir ...``, positions given relative to the line before it (``+4``, ``*``).
    The line after ``calls=`` holds the cost of the callee, which its own lines hold as well.
    """
    names: dict[bytes, str] = {}
    executions: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    here: dict[int, int] = executions["???"]
    address = 0
    of_callee = False
    for line in body.split(b"\n"):
        if not line:
            continue
        first = line[0]
        if first in (_PLUS, _MINUS):
            words = line.split(b" ", 3)
            address += int(words[0])
        elif first == _STAR:
            words = line.split(b" ", 3)
        elif _ZERO <= first <= _NINE:
            words = line.split(b" ", 3)
            address = int(words[0], 16)
        else:
            if line.startswith((b"ob=", b"cob=")):
                key, _, name = line.partition(b"=")[2].partition(b" ")
                if name:
                    names[key] = name.decode(errors="surrogateescape")
                if first == b"o"[0]:
                    here = executions[names[key]]
            elif line.startswith(b"calls="):
                of_callee = True
            continue
        if of_callee:
            of_callee = False
        elif len(words) > 2:
            here[address] += int(words[2])
    return {name: dict(counts) for name, counts in executions.items() if counts}
