"""What ``perf stat`` printed for people: numbers as their locale groups them, one text for each execution.

Thousands stand apart by commas, dots, blanks or apostrophes, so ``1.234`` could be two numbers. The line of the elapsed
time settles it for a file: it always has nine digits behind the decimal point.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from crossperf.importers.files import named_after, start_of, text_of, unusable
from crossperf.importers.measurement import Measurement
from crossperf.importers.perf.events import PerfEvent, to_measurement

_TITLE = re.compile(r"^\s*Performance counter stats for (?P<what>.+?)(?: \((?P<runs>\d+) runs\))?:\s*$")
_INTERVALS = re.compile(r"^#\s+time\s+counts\s+(unit\s+)?events")
_BLANKS = " \u00a0\u202f\u2009"
_NUMBER = rf"\d[\d.,'\u2019{_BLANKS}]*"
#: Where it was counted: a socket, die, core or node with the number of its processors, or one processor.
_PLACE = r"(?:[SN]\d+(?:-[DC]\d+)*\s+\d+\s+|CPU\d+\s+)?"
_EVENT = re.compile(rf"^\s*{_PLACE}(?P<value><not counted>|<not supported>|{_NUMBER}?)\s+(?P<words>[^\s\d#(].*)$")
_TIME = re.compile(rf"^\s*(?P<value>{_NUMBER}?)\s+(?:\+-.*\s)?seconds (?P<what>time elapsed|user|sys)\b")
_RUNNING = re.compile(r"[(\[]\s*(?P<percent>\d+[.,]\d+)\s*%\s*[)\]]\s*$")
_SPREAD = re.compile(r"\(\s*\+-[^)]*\)")
#: Documents that show such a text, and are none.
_DOCUMENTS = (".md", ".rst", ".html", ".tex", ".ipynb", ".py", ".sh", ".c", ".h", ".cc", ".cpp", ".rs", ".go", ".java")


def reads(path: Path) -> bool:
    """Tell whether a file is such a text; a document that shows one is not."""
    return path.suffix.lower() not in _DOCUMENTS and holds(path)


def holds(path: Path) -> bool:
    """Tell whether a file holds such a text, at its start or at its end."""
    return path.is_file() and any(_TITLE.match(line) or _INTERVALS.match(line) for line in _ends(path).splitlines())


def _ends(path: Path, n_bytes: int = 1 << 16) -> str:
    """Return the start and the end of a file: what a program printed may stand before the text of perf."""
    start = start_of(path, n_bytes)
    if len(start) == n_bytes:
        with path.open("rb") as file:
            file.seek(max(n_bytes, path.stat().st_size - n_bytes))
            start += file.read()
    return start.decode("utf-8", "replace")


def read(path: Path) -> list[Measurement]:
    """Return each execution of a file; what programs printed in between is passed over."""
    lines = text_of(path, "the output of perf stat", errors="replace").splitlines()
    titles = [at for at, line in enumerate(lines) if _TITLE.match(line)]
    starts = titles or [next(at for at, line in enumerate(lines) if _INTERVALS.match(line))]
    decimal = _decimal(lines)
    parts = [lines[start:end] for start, end in zip(starts, [*starts[1:], len(lines)], strict=True)]
    measurements = [_measurement(part, decimal) for part in parts]
    counted = [each for each in measurements if each.events]
    if not counted:
        raise unusable(path, "found no event, expected the output of perf stat. Count again.")
    return counted


def _decimal(lines: Sequence[str]) -> str:
    """Return the decimal point of a file's locale."""
    for line in lines:
        if settled := re.search(r"\d([.,])\d{9}\b", line):
            return settled[1]
    return "."


def _measurement(lines: Sequence[str], decimal: str) -> Measurement:
    title = _TITLE.match(lines[0])
    intervals = title is None
    rows: list[PerfEvent] = []
    times: dict[str, float] = {}
    for line in lines[1:]:
        if intervals:
            time, _, line = line.strip().partition(" ")
            times["time elapsed"] = _number(time, decimal) or times.get("time elapsed", 0.0)
        elif spent := _TIME.match(line):
            times.setdefault(spent["what"], _number(spent["value"], decimal) or 0.0)
            continue
        if intervals or "time elapsed" not in times:
            rows.extend(_events(line, decimal))
    facts, notes = _named(title) if title else ({}, [])
    facts |= {f"{what}_s": times[what] for what in ("user", "sys") if what in times}
    runtime_s = times.get("time elapsed") or None
    if runtime_s is None:
        notes.append("no runtime: the line of the time elapsed is absent, so the text is cut short")
    return to_measurement(rows, runtime_s, notes, facts)


def _named(title: re.Match[str]) -> tuple[dict[str, Any], list[str]]:
    """Return what the title of a text tells: the command, or that it was none."""
    notes = [f"means over {title['runs']} executions"] if title["runs"] else []
    command = re.fullmatch(r"'(.*)'", title["what"])
    if command and command[1] != "system wide" and not command[1].startswith("CPU(s)"):
        return named_after(command[1]), notes
    return {}, [*notes, f"counted over {title['what']}, not over one command"]


def _events(line: str, decimal: str) -> Iterator[PerfEvent]:
    """Yield the event of a line, if it holds one."""
    matched = _EVENT.match(line)
    if matched is None:
        return
    running = _RUNNING.search(matched["words"])
    words = _SPREAD.sub("", _RUNNING.sub("", matched["words"].split("#")[0])).split()
    if words[1:] == ["(msec)"]:
        words.reverse()
    if not 1 <= len(words) <= 2:
        return
    unit, event = ("", words[0]) if len(words) == 1 else (words[0].strip("()"), words[1])
    value = None if matched["value"].startswith("<") else _number(matched["value"], decimal)
    share = float(running["percent"].replace(",", ".")) / 100.0 if running else 1.0
    yield PerfEvent(event, value, share, unit)


def _number(text: str, decimal: str) -> float | None:
    """Return a number as a locale writes it.

    >>> _number("1 234 567", ","), _number("1.234.567,5", ","), _number("12,34,567", ".")
    (1234567.0, 1234567.5, 1234567.0)
    """
    try:
        return float(re.sub(rf"[^\d{re.escape(decimal)}]", "", text).replace(decimal, "."))
    except ValueError:
        return None
