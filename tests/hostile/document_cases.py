"""Bad predictions, platforms, evaluations and transfers."""

from __future__ import annotations

from collections.abc import Iterator

from tests.hostile.case import (
    FAULTS,
    NO_COUNT,
    NO_LIST,
    NO_OBJECT,
    NO_TEXT,
    NO_TIME,
    TOO_LARGE,
    Case,
    Place,
    at,
    changed,
    each,
    without,
)


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
