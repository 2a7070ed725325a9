"""Tables that fit a terminal: headings folded, then turned on their side, then in parts; a number is never cut."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import replace

from crossperf.display import CellView, ColumnView, TableView

#: What the frame of a table takes beside its columns: a line and two blanks each, and a last line.
_FRAME, _END = 3, 1
#: Words longer than this are folded.
_LONGEST_WORD = 18
#: Up to this many rows a table is turned on its side; of more, nobody would find a row again.
_MOST_TURNED = 8


def fitting(view: TableView, width: int) -> list[TableView]:
    """Return a table as one that fits the width, whole or on its side, or as parts that each begin with its names.

    >>> from crossperf.display import number, numbers, words
    >>> wide = TableView("", (*words("model"), *numbers("first", "second")), (("a", number(1.5), number(2.5)),))
    >>> [[column.name for column in part.columns] for part in fitting(wide, 18)]
    [['', 'a']]
    """
    if least(view) <= width:
        return [view]
    on_its_side = turned(view)
    if least(on_its_side) <= width and len(on_its_side.columns) - 1 <= _MOST_TURNED:
        return [on_its_side]
    return _parts(view, width)


def natural(view: TableView) -> int:
    """Return how wide a table is where nothing is folded."""
    return _framed([max(len(column.name), *_cells(view, place), 0) for place, column in enumerate(view.columns)])


def least(view: TableView) -> int:
    """Return how narrow a table can be with every number whole."""
    return _framed(least_widths(view))


def least_widths(view: TableView) -> list[int]:
    """Return how narrow each column can be: numbers stay whole, headings and texts are folded between words."""
    widths = []
    for place, column in enumerate(view.columns):
        if column.number:
            widths.append(max(_longest_word(column.name), *_cells(view, place), 1))
        else:
            texts = [row[place].text for row, _ in view.all_rows]
            widths.append(min(max(map(_longest_word, [column.name, *texts]), default=1), _LONGEST_WORD))
    return widths


def folded(name: str, width: int) -> list[str]:
    """Return a heading in lines of a width, broken between words."""
    return textwrap.wrap(name, max(width, 1), break_long_words=False, break_on_hyphens=False) or [""]


def turned(view: TableView) -> TableView:
    """Return a table on its side: a row for each column, the names of the rows above; references stay last."""
    rows = [row for row, _ in view.all_rows]
    heads = [ColumnView("", number=False), *(ColumnView(row[0].text) for row in rows)]
    lines = tuple(
        (CellView(column.name), *(row[place] for row in rows)) for place, column in enumerate(view.columns) if place
    )
    return TableView(view.caption, tuple(heads), lines)


def _parts(view: TableView, width: int) -> list[TableView]:
    """Return a table in parts, as many columns in each as fit, its names before each part."""
    names = 1
    while names < len(view.columns) and not view.columns[names].number:
        names += 1
    widths = least_widths(view)
    while names > 1 and _framed(widths[:names]) > width // 2:
        names -= 1
    parts: list[list[int]] = []
    for place in range(names, len(view.columns)):
        if not parts or _framed([*widths[:names], *(widths[p] for p in parts[-1]), widths[place]]) > width:
            parts.append([])
        parts[-1].append(place)
    return [_taken(view, [*range(names), *part], first=not number) for number, part in enumerate(parts)]


def _taken(view: TableView, places: Sequence[int], *, first: bool) -> TableView:
    kept = {
        kind: tuple(tuple(row[place] for place in places) for row in getattr(view, kind))
        for kind in ("rows", "reference")
    }
    caption = view.caption if first or not view.caption else f"{view.caption} (continued)"
    return replace(view, caption=caption, columns=tuple(view.columns[place] for place in places), **kept)


def _cells(view: TableView, place: int) -> list[int]:
    return [len(row[place].text) + row[place].best for row, _ in view.all_rows]


def _framed(widths: Sequence[int]) -> int:
    return sum(widths) + _FRAME * len(widths) + _END


def _longest_word(text: str) -> int:
    return max(map(len, text.split(" ")), default=0)
