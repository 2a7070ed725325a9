"""The page of the docs about counters, written from the catalog: ``python -m crossperf.catalog.page``."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from importlib.resources import files

from crossperf.catalog import COUNTERS, FORMULAS, Counter, Formula


def page() -> str:
    """Return the page as Markdown."""
    lines = [
        *_table(counter for counter in COUNTERS.values() if not counter.optional),
        *("", "Beyond Table I, each optional: a run without it is whole, and models do with what there is.", ""),
        *_table(counter for counter in COUNTERS.values() if counter.optional),
    ]
    for counter in COUNTERS.values():
        lines += ["", f"## {counter.name}", "", counter.meaning, ""]
        lines += ["| tool | on | formula | caveat |", "|---|---|---|---|"]
        lines += [_row(formula) for formula in FORMULAS if formula.counter == counter.name]
    text = (files("crossperf.catalog") / "page.md").read_text("utf-8")
    return text.replace("<!-- counters -->", "\n".join(lines))


def _table(counters: Iterable[Counter]) -> Iterator[str]:
    yield from ("| counter | unit | group | meaning |", "|---|---|---|---|")
    for counter in counters:
        yield f"| [`{counter.name}`](#{counter.name}) | {counter.unit} | {counter.group} | {counter.meaning} |"


def _row(formula: Formula) -> str:
    sentence = formula.caveat[:1].upper() + formula.caveat[1:].rstrip(".") + "." if formula.caveat else ""
    where = f" where `{formula.given}` is counted" if formula.given else ""
    return f"| {formula.tool} | {formula.on} | `{formula.text}`{where} | {sentence} |"


if __name__ == "__main__":
    sys.stdout.write(page())
