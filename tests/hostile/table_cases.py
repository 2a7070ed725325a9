"""Bad runs tables, and bad mapping files of other tables."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import polars as pl

from tests.hostile.case import (
    FAULTS,
    TOO_DEEP,
    Case,
)
from tests.hostile.targets import BY_NAME

#: A row of a runs table with one value changed: column, value as JSON, what is found, what is expected.
ROWS: list[tuple[str, Any, str, str]] = [
    ("runtime_s", -1.0, r"-1\.0", "seconds above 0"),
    ("runtime_s", 0.0, r"0\.0", "seconds above 0"),
    ("runtime_s", 1e50, r"1e\+50", r"seconds from 1e-18 to 1e\+18"),
    ("runtime_s", 5e-324, "5e-324", r"seconds from 1e-18 to 1e\+18"),
    ("runtime_s", "fast", "'fast'", "seconds above 0"),
    ("runtime_s", "1_000", "'1_000'", "seconds above 0"),
    ("runtime_s", "inf", "'?inf'?", "seconds above 0"),
    ("runtime_s", "٣", "'٣'", "seconds above 0"),
    ("repeat", -1, r"-1(\.0)?", "a whole number of 0 or more"),
    ("repeat", 1.5, r"1\.5", "a whole number of 0 or more"),
    ("repeat", "x", "'x'", "a whole number of 0 or more"),
    ("ranks", 1e300, r"1e\+300", "a whole number of 0 or more"),
    ("threads", "many", "'many'", "a whole number of 0 or more"),
    ("app", "", "nothing", "the name of the app"),
    ("platform", None, "nothing", "the name of the platform"),
    ("counter.instructions", "x", "'x'", "a number, or nothing where it was not measured"),
    ("counter.instructions", -5.0, r"-5\.0", "a number of 0 or more"),
    ("counter.instructions", "1e999", r"'?(1e999|inf)'?", "a finite number"),
]


def _table(ending: str, column: str, value: Any) -> bytes:
    base: dict[str, Any] = {"app": "lu", "input": "1", "platform": "p", "runtime_s": 1.0, "counter.instructions": 3e9}
    row = base | {column: value}
    if ending == "jsonl":
        counters = {"instructions": row.pop("counter.instructions")}
        return (json.dumps(row | {"counters": counters}) + "\n").encode()
    texts = {name: None if cell is None else str(cell) for name, cell in row.items()}
    frame = pl.DataFrame({name: [cell] for name, cell in texts.items()}, schema=dict.fromkeys(texts, pl.String))
    if ending == "csv":
        return frame.write_csv().encode()
    typed = {name: [cell] for name, cell in row.items()}
    made = io.BytesIO()
    pl.DataFrame(typed, strict=False).write_parquet(made)
    return made.getvalue()


_ROADS = (("few", "jsonl"), ("jsonl", "jsonl"), ("csv", "csv"), ("parquet", "parquet"), ("learned", "jsonl"))


def of_rows() -> Iterator[Case]:
    """Yield tables of one run with a value that its column may not hold, in every format and by every road."""
    for target, ending in (
        ("few", "jsonl"),
        ("jsonl", "jsonl"),
        ("csv", "csv"),
        ("parquet", "parquet"),
        ("learned", "jsonl"),
    ):
        for column, value, found, expected in ROWS:
            quoted = rf"'?{found}'?" if ending == "csv" else found
            sentence = rf"row 1, column '{re.escape(column)}': found {quoted}, expected {expected}"
            if target == "learned" and value is None:
                sentence = "found nothing, expected the platform of the run"
            made = lambda ending=ending, column=column, value=value: _table(ending, column, value)  # noqa: E731
            yield Case(target, f"{column} = {value}", made, sentence)


#: Lines that are no runs, by any road that reads JSONL.
LINES: dict[str, tuple[bytes, str]] = {
    "text": (b"hello", r"text that is not JSON \(Expecting value"),
    "a list": (b"[1]", "found a list, expected one JSON object"),
    "cut short": (b'{"app": "a', r"text that is not JSON \(Invalid control character.*interrupted write"),
    "not UTF-8": (b'{"app": "\xff"}', r"text that is not JSON \(it is not UTF-8 text\)"),
    "half a character": (b'{"app": "\\ud800"}', r"half a character \(a lone surrogate\)"),
    "deep": (b'{"app": ' + b"[" * 1000 + b"]" * 1000 + b"}", TOO_DEEP),
    "5,000 digits": (b'{"repeat": ' + b"9" * 5000 + b"}", "a number has too many digits"),
    "counters of a list": (b'{"app": "a", "counters": [1]}', "a list under 'counters'"),
    "format 99": (
        b'{"runs_format": 99, "app": "a"}',
        r"found format 99, expected runs of format 1\. Upgrade crossperf",
    ),
    "format text": (b'{"runs_format": "x", "app": "a"}', "found format 'x', expected runs of format 1"),
}


def of_lines() -> Iterator[Case]:
    """Yield lines that are no runs."""
    for target in ("few", "jsonl", "learned"):
        for name, (line, sentence) in LINES.items():
            yield Case(target, name, lambda line=line: line + b"\n", f"row 1.*{sentence}")  # type: ignore[misc]


def _parquet(**columns: Any) -> Callable[[], bytes]:
    def made() -> bytes:
        base = {"app": ["a"], "input": ["1"], "platform": ["p"], "runtime_s": [1.0], "counter.instructions": [3e9]}
        packed = io.BytesIO()
        pl.DataFrame(base | columns).write_parquet(packed)
        return packed.getvalue()

    return made


_HEADER = b"app,input,platform,runtime_s,counter.instructions\n"


def of_tables() -> Iterator[Case]:
    """Yield files that are no tables, and columns that are none."""
    for name in ("jsonl", "csv", "parquet"):
        yield Case(name, "empty", lambda: b"", "found no runs, expected at least one row")
    yield Case(
        "parquet",
        "durations",
        _parquet(runtime_s=[timedelta(seconds=1)]),
        "'runtime_s': found '0:00:01', expected seconds",
    )
    yield Case(
        "parquet", "bytes", _parquet(app=[b"\xff"]), "column 'app': found values of type Binary, expected numbers"
    )
    yield Case("parquet", "bytes in another column", _parquet(more=[b"x"]), "'more': found values of type Binary")
    yield Case(
        "parquet", "lists", _parquet(runtime_s=[[1.0]]), r"found values of type List\(Float64\), expected one value"
    )
    yield Case(
        "parquet", "records", _parquet(app=[{"a": 1}]), "found values of type Struct.*, expected one value a row"
    )
    yield Case("parquet", "truth values", _parquet(runtime_s=[True]), "'runtime_s': found .?true.?, expected seconds")
    yield Case(
        "parquet", "the name of row numbers", _parquet(__row__=[1]), "the column '__row__', expected another name"
    )
    yield Case(
        "parquet", "format 99", _parquet(runs_format=[99]), "found format '99', expected runs of format 1. Upgrade"
    )
    yield Case("parquet", "noise", lambda: b"PAR1" + bytes(range(200)) + b"PAR1", "does not read as parquet")
    yield Case("parquet", "a CSV", lambda: _HEADER, "does not read as parquet")
    yield Case("csv", "the name of row numbers", lambda: b"__row__," + _HEADER + b"1,a,1,p,1,2\n", "column '__row__'")
    yield Case("csv", "twice", lambda: b"app," + _HEADER + b"a,a,1,p,1,2\n", "the column 'app' more than once")
    yield Case("csv", "too many cells", lambda: _HEADER + b"a,1,p,1,2,3\n", "does not read as csv")
    yield Case(
        "csv", "cut in the middle of a row", lambda: _HEADER + b"a,1,p,1,2\na,1,q,1", "4 cells in a last line without"
    )
    yield Case(
        "csv", "cut in the middle of a name", lambda: _HEADER + b"a,1,p,1,2\nlules", "1 cells in a last line without"
    )
    yield Case("csv", "an open quote", lambda: _HEADER + b'"a,1,p,1,2\n', "does not read as csv")
    yield Case("csv", "Latin-1", lambda: _HEADER + b"caf\xe9,1,p,1,2\n", "does not read as csv")
    yield Case("csv", "a header alone", lambda: _HEADER, "found no runs, expected at least one row")
    yield Case("csv", "no app", lambda: b"ap,input,platform,runtime_s,counter.x\na,1,p,1,2\n", "no column 'app'.*'ap'")
    yield Case(
        "csv", "format 99", lambda: b"runs_format," + _HEADER + b"99,a,1,p,1,2\n", "found format '99', expected runs"
    )
    yield Case("jsonl", "the name of row numbers", lambda: b'{"__row__": 1, "app": "a"}\n', "the column '__row__'")
    yield Case("jsonl.gz", "no archive", lambda: b"hello", r"does not read as jsonl\.gz")
    yield Case("jsonl.gz", "cut short", lambda: BY_NAME["jsonl.gz"].sound()[:-9], r"does not read as jsonl\.gz")


#: Mappings, as TOML: what stands in them, and the sentence.
MAPPINGS: dict[str, tuple[bytes, str]] = {
    "empty": (b"", r"found neither \[events\] nor \[counters\]"),
    "no TOML": (b"= 3", r"text that is not TOML \(Invalid"),
    "not UTF-8": (b'tool = "\xff"', r"text that is not TOML \(it is not UTF-8 text\)"),
    "deep lists": (b"a = " + b"[" * 50_000, "nested more than 50 deep"),
    "a long key": (b"a." * 100_000 + b"a = 1", "a line has more than 200 dots"),
    "a deep key": (b"a." * 100 + b"a = 1", "nested more than 50 deep"),
    "deep tables": (b"a = " + b"{a = " * 20_000, "nested more than 50 deep"),
    "5,000 digits": (b"a = " + b"9" * 5000, r"text that is not TOML \(.*digits"),
    "too long": (b"#" * 300_000, r"cannot be read \(it has .* MB"),
    "an unknown key": (b"colums = 1", r"unknown key 'colums' \(did you mean 'columns'\?\)"),
    "a text for columns": (b'columns = "x"', "found 'x' under columns, expected a table of names"),
    "a list for events": (b"events = [1]", "found a list of 1 under events, expected a table of names"),
    "an unknown column": (b'[columns]\nap = "x"', r"found 'ap' among the columns of a run \(did you mean 'app'"),
    "a number as a column": (b"[columns]\napp = 5", r"found 5 for columns\.app, expected the name of a column"),
    "several for a number": (b'[columns]\nruntime_s = ["a", "b"]', r"for columns\.runtime_s, expected the name"),
    "a factor of text": (
        b'[columns]\nruntime_s = {column = "a", factor = "x"}',
        r"found an object for columns\.runtime_s",
    ),
    "a factor of inf": (
        b'[columns]\nruntime_s = {column = "a", factor = inf}',
        r"found an object for columns\.runtime_s",
    ),
    "a factor of nan": (
        b'[columns]\nruntime_s = {column = "a", factor = nan}',
        r"found an object for columns\.runtime_s",
    ),
    "both": (b'[columns]\napp = "x"\n[constants]\napp = "y"', "'app' as a column and as a constant"),
    "a constant of a list": (
        b"[constants]\napp = [1]",
        r"found a list of 1 for constants\.app, expected a number or a text",
    ),
    "a constant of a table": (
        b"[constants]\napp = {a = 1}",
        r"found an object for constants\.app, expected a number or",
    ),
    "a constant of a date": (
        b"[constants]\nstarted = 2026-01-01",
        r"for constants\.started, expected a number or a text",
    ),
    "a runtime of 0": (b"[constants]\nruntime_s = 0", r"found 0 for constants\.runtime_s, expected seconds above 0"),
    "a runtime of nan": (b"[constants]\nruntime_s = -inf", r"found -inf for constants\.runtime_s, expected seconds"),
    "half a thread": (b"[constants]\nthreads = 1.5", r"found 1\.5 for constants\.threads, expected a whole number"),
    "an empty app": (b'[constants]\napp = ""', r"found '' for constants\.app, expected the name of the app"),
    "missing as text": (b'missing = "x"', "found 'x' for missing, expected a list of numbers and texts"),
    "missing of lists": (b"missing = [[1]]", "found a list of 1 for missing, expected a list of numbers and texts"),
    "a tool of a number": (b"tool = 3", "found 3 for tool, expected its name"),
}


def of_mappings() -> Iterator[Case]:
    """Yield mapping files that are none."""
    for name, (data, sentence) in MAPPINGS.items():
        yield Case("mapping", name, lambda data=data: data, sentence)  # type: ignore[misc]
    for name in (
        "empty",
        "not UTF-8",
        "half a character",
        "deep lists",
        "deep objects",
        "5,000 digits",
        "NaN",
        "cut short",
    ):
        data, sentence = FAULTS[name]
        words = sentence.removeprefix("is not JSON ")
        yield Case("mapping-json", name, lambda data=data: data, f"text that is not JSON .*{words}")  # type: ignore[misc]
    yield Case("mapping-json", "a list", lambda: b"[1]", "found a list of 1, expected an object of sections")
