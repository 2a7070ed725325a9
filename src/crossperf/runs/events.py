"""Raw events of runs as named numbers: what each tool counted, under the tool's own names."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from crossperf.documents import parse
from crossperf.runs.rules import as_number

if TYPE_CHECKING:
    import polars as pl

#: The column of a runs table that holds them: an object of tools, each with its events.
EVENTS = "events"
EVENT_PREFIX = "event."


def event_name(tool: str, event: str) -> str:
    """Return the name of an event's column; a tool that stands in the event's own name already is not repeated.

    >>> event_name("valgrind", "Ir"), event_name("qemu", "qemu.loads")
    ('event.valgrind.Ir', 'event.qemu.loads')
    """
    return f"{EVENT_PREFIX}{event}" if event.startswith(f"{tool}.") else f"{EVENT_PREFIX}{tool}.{event}"


def events_of(recorded: Any) -> dict[str, float]:
    """Return the numeric events of one run by the names of their columns; what is no number is left out.

    >>> events_of('{"valgrind": {"Ir": 2557, "Dr": null}}'), events_of("no JSON")
    ({'event.valgrind.Ir': 2557.0}, {})
    """
    if isinstance(recorded, str):
        try:
            recorded = parse(recorded.encode(), lenient=True)
        except ValueError:
            return {}
    if not isinstance(recorded, Mapping):
        return {}
    numbers = (
        (event_name(tool, event), None if isinstance(value, str) else as_number(value))
        for tool, events in recorded.items()
        if isinstance(events, Mapping)
        for event, value in events.items()
    )
    return {name: number for name, number in numbers if number is not None and math.isfinite(number)}


def distinct_events(column: pl.Series) -> pl.DataFrame:
    """Return each different text of a table's events once, with a column for every event: null where it has none.

    Repeats of a workload mostly share their counts, so that far fewer texts are read than there are runs.
    """
    import polars as pl

    texts = column.drop_nulls().unique(maintain_order=True)
    return pl.concat([texts.to_frame(EVENTS), pl.DataFrame(_by_column(texts, len(texts)))], how="horizontal")


def _by_column(texts: Iterable[Any], count: int) -> dict[str, pl.Series]:
    """Return the events of texts as columns, by name: one pass, with one number kept for each text and event."""
    import polars as pl

    columns: dict[str, array[float]] = {}
    empty = array("d", [math.nan]) * count
    for row, text in enumerate(texts):
        for name, value in events_of(text).items():
            if name not in columns:
                columns[name] = empty[:]
            columns[name][row] = value
    return {name: pl.Series(name, columns[name], dtype=pl.Float64).fill_nan(None) for name in sorted(columns)}
