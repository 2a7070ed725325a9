"""The page of the docs about counters, written from the catalog: ``python -m crossperf.catalog.page``."""

from __future__ import annotations

import sys

from crossperf.catalog import COUNTERS, FORMULAS, Formula

_OPENING = """# The vocabulary of counters

The names of the paper's Table I, as crossperf spells them, and how each tool's own events become them. A runs table
may hold any other counter too: models take whatever `counter.*` columns there are.

This page is written from the catalog (`python -m crossperf.catalog.page > docs/counters.md`), which is also what the
collectors apply: a formula that stands here is the one that was used. Where several tools know a counter, the first
in its list that has a value is believed. A run keeps the raw events under their own names beside the counters
(`events`), which tool each counter comes from (`measured_by`), and why others are missing (`missing`).

How a formula is read: names are the tool's own; `NAME?` counts as 0 on a processor that has no such event; `//`
divides and takes 1 for a divisor of 0 (where nothing hit, one hit is assumed; no misses of no branches are 0). An
event that was asked for and not counted leaves the counter missing, and so do any other division by zero and a
negative count (which events that share a register in time can give). *Missing*, *zero* and *negative* stay three
different things.
"""

_CLOSING = """## What no tool gives

- `independent_ratio` has no hardware event, on any processor or GPU: it needs the instructions themselves. On a
  machine with hardware counters the valgrind pass still supplies it.
- `page_levels` is a fact of the machine, not of the program; the paper does not say more about this row.
- GPUs predict no branches. What stands in for it, threads of a warp that part, is a related cost and not the same.
- Intel and AMD have no event for integer instructions; there `int_ratio` comes from valgrind. (`ARITH`, which an
  earlier event map used, counts cycles of the divider.)
- Where hardware counts floating-point *operations* instead of instructions, valgrind's share is believed first.
"""


def page() -> str:
    """Return the page as Markdown."""
    lines = [_OPENING, "| counter | unit | group | meaning |", "|---|---|---|---|"]
    lines += [
        f"| [`{counter.name}`](#{counter.name}) | {counter.unit} | {counter.group} | {counter.meaning} |"
        for counter in COUNTERS.values()
    ]
    for counter in COUNTERS.values():
        formulas = [formula for formula in FORMULAS if formula.counter == counter.name]
        lines += ["", f"## {counter.name}", "", counter.meaning, ""]
        lines += ["| tool | on | formula | caveat |", "|---|---|---|---|"]
        lines += map(_row, formulas)
    return "\n".join([*lines, "", _CLOSING])


def _row(formula: Formula) -> str:
    return f"| {formula.tool} | {formula.on} | `{formula.text}` | {_sentence(formula.caveat)} |"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:].rstrip(".") + "." if text else ""


if __name__ == "__main__":
    sys.stdout.write(page())
