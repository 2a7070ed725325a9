"""The table of bad inputs: what stands in a file, and the sentence that its reader answers with.

A case is the name of a reader, a name of its own, the bytes of the file, and a pattern of the sentence. Most are made
from small tables: every document with every fault that a document can have, every field with every value that it may
not hold.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
import polars as pl

from tests.hostile.mutations import drop, put, put_raw
from tests.hostile.targets import BY_NAME

Place = tuple[Any, ...]


@dataclass(frozen=True)
class Case:
    """A bad input, and the sentence expected."""

    target: str
    name: str
    made: Callable[[], bytes]
    sentence: str

    def __str__(self) -> str:
        return f"{self.target}: {self.name}"


#: The readers of a JSON object, with the formats that each reads.
DOCUMENTS = {"evaluation": (2, 3), "platforms": (1, 1), "predictions": (1, 1), "model": (2, 3)}
_TOO_DEEP = r"nested more than 50 deep"
#: What is no JSON, or no document of ours, whatever the reader.
FAULTS: dict[str, tuple[bytes, str]] = {
    "empty": (b"", r"is not JSON \(Expecting value: line 1 column 1\)"),
    "blank": (b" \n\n", r"is not JSON \(Expecting value"),
    "a zero byte": (b"\x00", r"is not JSON \(Expecting value"),
    "not UTF-8": (b'{"a": "\xff"}', r"is not JSON \(it is not UTF-8 text\)"),
    "UTF-16": ('{"a": 1}'.encode("utf-16"), r"is not JSON \(it is not UTF-8 text\)"),
    "half a character in UTF-8": (b'{"a": "\xed\xa0\x80"}', r"is not JSON \(it is not UTF-8 text\)"),
    "half a character": (b'{"a": "\\ud800"}', r"half a character \(a lone surrogate\)"),
    "the other half": (b'{"a\\uDC00": 1}', r"half a character \(a lone surrogate\)"),
    "deep lists": (b"[" * 100_000, _TOO_DEEP),
    "deep lists that end": (b"[" * 51 + b"]" * 51, _TOO_DEEP),
    "deep objects": (b'{"a":' * 5_000, _TOO_DEEP),
    "deep behind a text": (b'["[", "\\"]", ' + b"[" * 60, _TOO_DEEP),
    "5,000 digits": (b'{"format": ' + b"9" * 5_000 + b"}", r"a number has too many digits"),
    "NaN": (b'{"format": NaN}', r"NaN is no number of JSON"),
    "Infinity": (b"[-Infinity]", r"-Infinity is no number of JSON"),
    "a comment": (b"// a\n{}", r"is not JSON"),
    "single quotes": (b"{'format': 1}", r"is not JSON \(Expecting property name"),
    "two documents": (b'{"format": 1}{"format": 1}', r"is not JSON \(Extra data"),
    "cut short": (b'{"format": 1, "pl', r"is not JSON \(Unterminated string"),
    "a list": (b"[1, 2]", r"found a list of 2, expected .*, which is an object"),
    "a number": (b"7", r"found 7, expected .*, which is an object"),
    "a text": (b'"evaluation"', r"found 'evaluation', expected .*, which is an object"),
    "null": (b"null", r"found null, expected .*, which is an object"),
    "no format": (b"{}", r"found no format, expected .*, which names its format"),
    "format 0": (b'{"format": 0}', r"found format 0, expected .* of format"),
    "format 99": (b'{"format": 99}', r"found format 99, expected .* of format .*\. Upgrade crossperf\."),
    "format '3'": (b'{"format": "3"}', r"found format '3', expected .* of format"),
    "format true": (b'{"format": true}', r"found format true, expected .* of format"),
    "format 1.0": (b'{"format": 1.0}', r"found format 1\.0, expected .* of format"),
    "format null": (b'{"format": null}', r"found format null, expected .* of format"),
    "a format of a list": (b'{"format": [1]}', r"found format a list of 1, expected .* of format"),
    "a huge format": (b'{"format": 1' + b"0" * 4_000 + b"}", r"found format a number of more than 64 bits, .*Upgrade"),
}


def faulty_documents() -> Iterator[Case]:
    """Yield every document with every fault."""
    for target in DOCUMENTS:
        for name, (data, sentence) in FAULTS.items():
            yield Case(target, name, lambda data=data: data, sentence)  # type: ignore[misc]


def _document(target: str) -> Any:
    return json.loads(BY_NAME[target].sound())


def changed(target: str, place: Place, value: Any, sentence: str) -> Case:
    """Return a sound document with another value at a place; bytes stand there as they are."""

    def made() -> bytes:
        document = _document(target)
        if isinstance(value, bytes):
            return put_raw(document, place, value)
        return json.dumps(put(document, place, value)).encode()

    shown = value[:12] if isinstance(value, bytes) else str(value)[:20]
    return Case(target, f"{'.'.join(map(str, place))} = {shown}", made, sentence)


def without(target: str, place: Place, sentence: str) -> Case:
    """Return a sound document without the entry at a place."""
    made = lambda: json.dumps(drop(_document(target), place)).encode()  # noqa: E731
    return Case(target, f"no {'.'.join(map(str, place))}", made, sentence)


def at(place: Place, found: str, expected: str) -> str:
    """Return the pattern of a misfit at a place."""
    where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).lstrip(".")
    return rf"at {re.escape(where)}: found {found}, expected {expected}"


TOO_LARGE = "a number too large to compute with"
#: What is no number above 0, and how it is named.
NO_TIME: dict[str, tuple[Any, str, str]] = {
    "0": (0, "0", "a number above 0"),
    "-1": (-1.5, r"-1\.5", "a number above 0"),
    "text": ("fast", "'fast'", "a number"),
    "true": (True, "true", "a number"),
    "list": ([], "a list of 0", "a number"),
    "object": ({}, "an object", "a number"),
    "1e999": (b"1e999", TOO_LARGE, "a finite number"),
    "400 digits": (10**400, TOO_LARGE, "a finite number"),
}
NO_COUNT: dict[str, tuple[Any, str, str]] = {
    "text": ("two", "'two'", "a whole number"),
    "-1": (-1, "-1", "a number of 0 or more"),
    "1.5": (1.5, r"1\.5", "a whole number"),
    "true": (True, "true", "a whole number"),
    "list": ([], "a list of 0", "a whole number"),
    "30 digits": (10**30, "a number of more than 64 bits", "a whole number"),
}
NO_TEXT: dict[str, tuple[Any, str, str]] = {
    "number": (5, "5", "a text"),
    "null": (None, "null", "a text"),
    "list": (["x"], "a list of 1", "a text"),
    "object": ({}, "an object", "a text"),
}
NO_LIST: dict[str, tuple[Any, str, str]] = {
    "text": ("x", "'x'", "a list"),
    "null": (None, "null", "a list"),
    "object": ({}, "an object", "a list"),
}
NO_OBJECT: dict[str, tuple[Any, str, str]] = {
    "text": ("x", "'x'", "an object"),
    "list": ([1], "a list of 1", "an object"),
    "number": (3, "3", "an object"),
}


def each(target: str, places: list[Place], values: dict[str, tuple[Any, str, str]]) -> Iterator[Case]:
    """Yield a case for every place and every value that may not stand there."""
    for place in places:
        for value, found, expected in values.values():
            yield changed(target, place, value, at(place, found, expected))


def of_predictions() -> Iterator[Case]:
    """Yield predictions with numbers that are no times, and entries that are none."""
    first: Place = ("predictions", 0)
    times = [(*first, name, "h200") for name in ("relative_time", "seconds", "low", "high")]
    yield from each("predictions", times, NO_TIME)
    for place in times:
        yield changed("predictions", place, None, at(place, "no number", "one, or a reason under 'cannot'"))
    chances = [(*first, "chance_fastest", "h200"), (*first, "chance_faster", "h200", "epyc-2"), (*first, "level")]
    for place in chances:
        for value, found in ((-0.1, r"-0\.1"), (1.5, r"1\.5")):
            yield changed("predictions", place, value, at(place, found, "0 to 1"))
        yield changed("predictions", place, "x", at(place, "'x'", "a number"))
    yield from each("predictions", [(*first, name) for name in ("app", "input", "source", "relative_to")], NO_TEXT)
    yield from each("predictions", [(*first, name) for name in ("relative_time", "low", "cannot")], NO_OBJECT)
    yield changed(
        "predictions", (*first, "relative_time"), {}, "found no platform that is offered, expected one at least"
    )
    word = (*first, "familiarity", "word")
    yield changed("predictions", word, "great", at(word, "'great'", "one of 'familiar', 'unusual', 'unknown'"))
    yield changed("predictions", ("predictions",), {}, at(("predictions",), "an object", "a list"))
    yield changed("predictions", first, 5, at(first, "5", "an object"))
    yield without("predictions", ("predictions",), "found no 'predictions', expected one")
    for name in ("app", "source", "relative_time"):
        yield without("predictions", (*first, name), at(first, f"no '{name}'", "one"))


def of_platforms() -> Iterator[Case]:
    """Yield files of platforms whose facts are none."""
    first: Place = ("platforms", 0)
    for name in ("cores", "sockets", "numa_nodes", "page_bytes"):
        for value, found, expected in NO_COUNT.values():
            sentence = rf"platform 1 is not as expected \(at facts\.{name}: found {found}, expected {expected}\)"
            yield changed("platforms", (*first, "facts", name), value, sentence)
    for value, found in (("x", "'x'"), (-1, "-1"), ([], "a list of 0")):
        sentence = rf"at facts\.memory_bytes: found {found}, expected"
        yield changed("platforms", (*first, "facts", "memory_bytes"), value, sentence)
    for value, found in ((None, "null"), ("L1", "'L1'"), (-1, "-1")):
        sentence = rf"at facts\.caches\[0\]\.level: found {found}, expected"
        yield changed("platforms", (*first, "facts", "caches", 0, "level"), value, sentence)
    for value, found, _ in NO_TEXT.values():
        yield changed("platforms", (*first, "name"), value, rf"at name: found {found}, expected a text")
    for value, found, _ in NO_OBJECT.values():
        yield changed("platforms", (*first, "facts"), value, rf"at facts: found {found}, expected an object")
        yield changed(
            "platforms", first, value, rf"platform 1 is not as expected \(found {found}, expected an object\)"
        )
    for value in ("x", 5, None, {}):
        yield changed("platforms", ("platforms",), value, "has no list 'platforms'")
    yield changed("platforms", (*first, "name"), "h200", "the name 'h200' stands twice")
    yield changed("platforms", (*first, "name"), " ", "found ' ' of class 'cpu', expected two names")
    yield changed("platforms", (*first, "facts", "gpus"), "H200", r"at facts\.gpus: found 'H200', expected a list")
    yield without("platforms", (*first, "name"), "found no 'name', expected one")
    yield without("platforms", ("platforms",), "has no list 'platforms'")


def of_evaluations() -> Iterator[Case]:
    """Yield evaluations whose scores and cells do not fit."""
    own: Place = ("held_out",)
    together = r"values that do not fit together \({}\)"
    yield from each(
        "evaluation", [("table", "runs"), ("folds",), ("seed",)], {k: NO_COUNT[k] for k in ("text", "1.5", "list")}
    )
    yield from each("evaluation", [("split",), ("table", "path"), ("versions", "python")], NO_TEXT)
    yield from each("evaluation", [("scores",), ("table",), ("constant",), ("scores", "models")], NO_OBJECT)
    yield from each("evaluation", [("caveats",), (*own, "workloads"), (*own, "platforms")], NO_LIST)
    score: Place = ("scores", "models", "ridge", "mean", "typical_factor")
    for value, found, _ in (v for k, v in NO_TIME.items() if k not in ("0", "-1")):
        yield changed("evaluation", score, value, at(score, found, "a"))
    for name in ("table", "split", "folds", "seed", "scores", "constant"):
        yield without("evaluation", (name,), f"found no '{name}', expected one")
    for name in ("platforms", "platform_classes", "workloads", "log_time_s", "workload", "source", "fold"):
        yield without("evaluation", (*own, name), at(own, f"no '{name}'", "one"))
    for name, value, words in (
        ("workload", 10_000, r"workload holds 10,000, expected numbers from 0 to below 6"),
        ("workload", -1, r"workload holds -1, expected.*"),
        ("source", 4, r"source holds 4, expected numbers from 0 to below 4"),
        ("source", -3, r"source holds -3, expected.*"),
        ("fold", -1, r"fold holds -1, expected.*"),
    ):
        yield changed("evaluation", (*own, name, 0), value, at(own, together.format(words), "what crossperf wrote"))
    for name in ("workload", "source", "fold"):
        for value, found in (("x", "'x'"), (1.5, r"1\.5"), (None, "null"), ([1], "lists of different lengths")):
            sentence = at((*own, name), found if value != [1] else ".*", "")[: -len(", expected ")]
            yield changed("evaluation", (*own, name, 0), value, sentence)
        yield changed("evaluation", (*own, name, 0), 10**30, at((*own, name), TOO_LARGE, "numbers of 64 bits"))
    for name in ("order", "otherwise"):
        yield changed(
            "evaluation", ("constant", name), ["x"], "the constant answer names 'x', which is no platform here"
        )
    yield changed(
        "evaluation", ("constant", "fastest"), "x", "the constant answer names 'x', which is no platform here"
    )
    cells: Place = (*own, "predictions", "ridge", "log_relative_time")
    yield changed("evaluation", cells, [[1.0]], at(own, together.format(".*'ridge'.*"), "what crossperf wrote"))
    yield changed("evaluation", (*cells, 0), [1.0], at(cells, "lists of different lengths", "rows of the same length"))
    yield changed("evaluation", (*cells, 0, 0), "x", at(cells, "'x'", "numbers"))
    yield changed("evaluation", (*cells, 0, 0), b"1e999", at(cells, TOO_LARGE, "finite numbers"))
    yield changed("evaluation", (*cells, 0, 0), 1e9, "hold times that none could be")
    yield changed("evaluation", (*own, "log_time_s", 0, 0), 1e9, "a time is none that a clock could show")
    yield changed("evaluation", (*own, "platforms"), ["a", "a", "b", "c"], "the platforms do not fit together")
    yield changed("evaluation", (*own, "platform_classes"), ["cpu"], "the platforms do not fit together")
    yield changed("evaluation", (*own, "workloads", 0), ["a"], at((*own, "workloads", 0), "a list of 1", "a list of 2"))


def of_descriptions() -> Iterator[Case]:
    """Yield descriptions of models that do not fit their arrays, sealed with a digest of their own."""
    yield from each("model", [("model",), ("counters", 0), ("platforms", 0), ("workloads", 0, 0)], NO_TEXT)
    yield from each("model", [("counters",), ("platforms",), ("workloads",), ("platform_classes",)], NO_LIST)
    yield from each("model", [("settings",), ("fit",), ("versions",)], NO_OBJECT)
    for name in ("model", "counters", "platforms", "platform_classes", "settings", "fit", "versions", "training"):
        yield without("model", (name,), f"found no '{name}', expected one")
    swapped = ["cpu-b", "cpu-a", "gpu-a", "gpu-b"]
    yield changed("model", ("platforms",), swapped, "its platforms are not those of its features, in their order")
    yield changed("model", ("platforms",), ["cpu-a"], "do not fit together")
    yield changed("model", ("platforms",), ["cpu-a"] * 4, "do not fit together")
    yield changed("model", ("platform_classes",), [], "the platforms do not fit together")
    yield changed("model", ("counters",), ["x"], "its counters are not those of its features")
    yield changed("model", ("workloads",), [], "the columns of the cells do not fit together")
    yield changed("model", ("runnable",), ["cpu"], "'runnable' does not fit the workloads")
    yield changed("model", ("training",), "toy", at(("training",), "'toy'", "an object"))


#: Arrays of a model changed behind a digest that was made for them: the name, the change, the sentence.
def _arrays(target: str, name: str, change: Callable[[Any], Any], sentence: str, words: str) -> Case:
    def made() -> bytes:
        with np.load(io.BytesIO(BY_NAME[target].sound())) as held:
            arrays = dict(held)
        own = next(key for key in arrays if key.split("@")[0].endswith(name))
        whole = arrays.pop(own)
        if own.endswith("@place"):
            whole = whole.astype(np.int64) + np.arange(len(whole))
        arrays[own.removesuffix("@place")] = change(whole.copy())
        packed = io.BytesIO()
        np.savez(packed, **arrays)  # type: ignore[arg-type]
        return packed.getvalue()

    return Case(target, f"{name}: {words}", made, sentence)


def _with(index: Any, value: Any) -> Callable[[Any], Any]:
    def change(array: Any) -> Any:
        wide = array.astype(np.float64 if array.dtype.kind == "f" else np.int64)
        wide[index] = value
        return wide

    return change


def of_arrays() -> Iterator[Case]:
    """Yield arrays that cannot be asked: not finite, of other shapes and types, indices that point nowhere."""
    for name in ("limits.target_2p", "encoder.mean_f", "part.weights_pf", "part.bias_p", "limits.contrast_2p"):
        for value in (np.nan, np.inf):
            yield _arrays("arrays", name, _with(0, value), f"holds {value}, expected finite numbers", str(value))
        yield _arrays("arrays", name, lambda a: a[..., :-1], r"which does not fit|does not load", "one too few")
        yield _arrays("arrays", name, lambda a: a[None], "has the shape .*, expected . axes", "an axis more")
        yield _arrays("arrays", name, lambda a: a.astype(str), "holds <U.*, expected float64", "texts")
        yield _arrays("arrays", name, lambda a: a > 0, "holds bool, expected float64", "truth values")
    for name in ("encoder.scale_f", "encoder.spread_f"):
        for value in (0.0, -1.0):
            yield _arrays("arrays", name, _with(0, value), "expected numbers above 0", str(value))
    yield _arrays("arrays", "part.kind", lambda _: np.array("pickle"), "KeyError: 'pickle'", "a kind that is not known")
    yield _arrays("arrays", "cells.source_n", _with(0, 99), "source holds 99, expected numbers from 0 to below 4", "99")
    yield _arrays("arrays", "cells.source_n", _with(0, -1), "source holds -1, expected", "-1")
    yield _arrays("arrays", "cells.workload_n", _with(0, 99), "workload holds 99, expected numbers from 0", "99")
    yield _arrays("arrays", "cells.workload_n", lambda a: a[:-1], "which does not fit n=23", "one too few")
    yield _arrays("arrays", "features.values_nf", lambda a: a[:-1], "its features do not fit its cells", "one too few")
    yield _arrays("arrays", "features.values_nf", _with((0, 0), np.inf), "holds inf, expected finite numbers", "inf")
    yield _arrays("arrays", "features.columns.names", lambda a: a[:-1], "22 columns for 21 names", "one too few")
    yield _arrays("trees", "forest.left_m", _with(0, 0), "holds a tree that does not end", "half a leaf")
    yield _arrays("trees", "forest.left_m", _with(2, 1), "holds a tree that does not end", "a cycle")
    yield _arrays("trees", "forest.right_m", _with(0, 10**6), "right_m holds 1,000,000, expected numbers", "beyond")
    yield _arrays("trees", "forest.right_m", _with(0, -1), "right_m holds -1, expected indices", "-1")
    yield _arrays("trees", "forest.root_t", _with(0, 10**6), "root_t holds 1,000,000, expected numbers", "beyond")
    yield _arrays("trees", "forest.feature_m", _with(0, 10**6), "feature_m holds 1,000,000, expected numbers", "beyond")
    yield _arrays("trees", "forest.feature_m", _with(0, -2), "feature_m holds -2, expected indices", "-2")
    yield _arrays("trees", "forest.value_row_m", _with(0, 10**6), "value_row_m holds 1,000,000, expected", "beyond")
    yield _arrays("trees", "forest.threshold_m", _with(0, np.nan), "threshold_m holds nan, expected finite", "nan")
    yield _arrays("trees", "forest.leaf_values_lp", _with((0, 0), np.nan), "holds nan, expected finite numbers", "nan")
    yield _arrays("trees", "forest.leaf_values_lp", lambda a: a[:, :-1], "could not be broadcast", "a column less")
    yield _arrays("trees", "forest.left_m", lambda a: a[:-1], "which does not fit m=", "one too few")
    yield Case("arrays", "no archive", lambda: b"PK", "does not load .BadZipFile")
    yield Case("arrays", "huge shape", lambda: _npz(b"(9000000000000,)"), "declares .* which .* bytes cannot hold")
    yield Case("arrays", "negative shape", lambda: _npz(b"(-1,)"), "does not load")
    yield Case("arrays", "an object", lambda: _npz(b"(1,)", b"|O"), "declares .* of object, which")
    yield Case("arrays", "a bomb", _bomb, r"arrays of .* bytes in a file of")


def _npz(shape: bytes, dtype: bytes = b"<f8") -> bytes:
    """Return an archive with one array of a header that is not true."""
    import zipfile

    header = b"{'descr': '" + dtype + b"', 'fortran_order': False, 'shape': " + shape + b", }"
    header += b" " * (117 - len(header)) + b"\n"
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("fitted.part.bias_p.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    return made.getvalue()


def _bomb() -> bytes:
    """Return an archive of a few hundred kilobytes that unfolds to 300 MB."""
    import zipfile

    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("a.npy", "w") as member:
        for _ in range(300):
            member.write(bytes(2**20))
    return made.getvalue()


#: A row of a runs table with one value changed: column, value as JSON, what is found, what is expected.
ROWS: list[tuple[str, Any, str, str]] = [
    ("runtime_s", -1.0, r"-1\.0", "seconds above 0"),
    ("runtime_s", 0.0, r"0\.0", "seconds above 0"),
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
    "deep": (b'{"app": ' + b"[" * 1000 + b"]" * 1000 + b"}", _TOO_DEEP),
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


def of_transfers() -> Iterator[Case]:
    """Yield scores of new platforms that are none."""
    first: Place = ("scores", 0)
    yield from each("transfer", [(*first, "column"), (*first, "vector")], NO_TIME)
    yield from each("transfer", [(*first, "model"), (*first, "way")], NO_TEXT)
    yield from each("transfer", [("scores",), ("left_out",)], NO_LIST)
    yield changed("transfer", ("format",), 99, r"found format 99, expected .*Upgrade crossperf")
    for name in ("empty", "not UTF-8", "half a character", "deep lists", "5,000 digits", "NaN"):
        data, sentence = FAULTS[name]
        words = sentence.removeprefix("is not JSON ")
        yield Case("transfer", name, lambda data=data: data, f"a file that is not JSON .*{words}")  # type: ignore[misc]


CASES: list[Case] = [
    *faulty_documents(),
    *of_predictions(),
    *of_platforms(),
    *of_evaluations(),
    *of_descriptions(),
    *of_arrays(),
    *of_rows(),
    *of_lines(),
    *of_tables(),
    *of_mappings(),
    *of_transfers(),
]
