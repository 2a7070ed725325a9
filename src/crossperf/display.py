"""Tables of results: one description of a table, shown as text and as HTML."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

#: What stands for a number that is not known.
GAP = "–"
#: Rows of a table that the text form of an object shows; it has ten lines in all.
_TEXT_ROWS = 5


@dataclass(frozen=True)
class CellView:
    """What a cell shows, the number it is sorted by (``None`` comes last), and its emphasis."""

    text: str
    value: float | None = None
    best: bool = False
    bold: bool = False


@dataclass(frozen=True)
class ColumnView:
    """The heading of a column; numbers are set to the right."""

    name: str
    hint: str = ""
    number: bool = True


#: A cell that shows words alone may be a plain string.
Entry = CellView | str
Row = tuple[Entry, ...]


@dataclass(frozen=True)
class TableView:
    """A table whose first column names its rows; ``reference`` rows are compared with and never sorted."""

    caption: str
    columns: tuple[ColumnView, ...]
    rows: tuple[Row, ...]
    reference: tuple[Row, ...] = ()

    @property
    def all_rows(self) -> Iterator[tuple[tuple[CellView, ...], bool]]:
        """Each row, and whether it is a reference."""
        for rows, reference in ((self.rows, False), (self.reference, True)):
            for row in rows:
                yield tuple(CellView(cell) if isinstance(cell, str) else cell for cell in row), reference


def number(value: float | None, digits: int = 3, *, best: bool = False, unit: str = "") -> CellView:
    """Return a cell with a number, or a gap.

    >>> number(-0.25), number(None).text
    (CellView(text='−0.250', value=-0.25, best=False, bold=False), '–')
    """
    if value is None:
        return CellView(GAP)
    return CellView(f"{value:,.{digits}f}{unit}".replace("-", "−"), float(value), best)


def share(value: float | None, digits: int = 0) -> CellView:
    """Return a cell with a share in per cent, or a gap."""
    return CellView(GAP) if value is None else CellView(f"{value:.{digits}%}", float(value))


def integer(value: int) -> CellView:
    """Return a cell with a count."""
    return number(value, 0)


def words(*names: str) -> tuple[ColumnView, ...]:
    """Return columns of words, which are set to the left."""
    return tuple(ColumnView(name, number=False) for name in names)


def numbers(*names: str) -> tuple[ColumnView, ...]:
    """Return columns of numbers without hints."""
    return tuple(ColumnView(name) for name in names)


def to_html(table: TableView, identity: str = "") -> str:
    """Return a table as HTML: escaped, with captions and headings that a screen reader finds.

    Parameters
    ----------
    identity
        The id of the caption on the report's page, whose style hides the words meant for screen readers alone.

    >>> print(to_html(TableView("Scores", words("model"), (("<b>",),))))
    <table class="sortable">
    <caption>Scores</caption>
    <thead><tr><th scope="col">model</th></tr></thead>
    <tbody>
    <tr><th scope="row">&lt;b&gt;</th></tr>
    </tbody>
    </table>
    """
    heads = "".join(
        f'<th scope="col"{_class(column)}{_attribute("title", column.hint)}>{escape(column.name)}</th>'
        for column in table.columns
    )
    lines = ['<table class="sortable">', f"<caption{_attribute('id', identity)}>{escape(table.caption)}</caption>"]
    lines.append(f"<thead><tr>{heads}</tr></thead>")
    for tag, kind in (("tbody", False), ("tfoot", True)):
        rows = [row for row, reference in table.all_rows if reference is kind]
        if rows or not kind:
            cells = (_html_row(row, table.columns, " (best)" if identity else "") for row in rows)
            lines += [f"<{tag}>", *(f"<tr>{row}</tr>" for row in cells), f"</{tag}>"]
    return "\n".join([*lines, "</table>"])


def _html_row(row: Sequence[CellView], columns: Sequence[ColumnView], best: str) -> str:
    cells = []
    for place, (cell, column) in enumerate(zip(row, columns, strict=True)):
        tag, scope = ("td", "") if place else ("th", ' scope="row"')
        value = _attribute("data-value", str(cell.value)) if column.number and cell.value is not None else ""
        text = f"<b>{escape(cell.text)}</b>" if cell.best or cell.bold else escape(cell.text)
        mark = f'<span class="unseen">{best}</span>' if cell.best and best else ""
        cells.append(f"<{tag}{scope}{_class(column, cell)}{value}>{text}{mark}</{tag}>")
    return "".join(cells)


def _class(column: ColumnView, cell: CellView | None = None) -> str:
    return _attribute("class", "number" * column.number + " best" * (cell is not None and cell.best))


def _attribute(name: str, value: str) -> str:
    return f' {name}="{escape(value)}"' if value else ""


def to_text(table: TableView) -> str:
    """Return a table as plain text, its first rows and the references, for the ``repr`` of an object."""
    rows = [row for row, reference in table.all_rows if not reference]
    shown = [*rows[:_TEXT_ROWS], *(row for row, reference in table.all_rows if reference)]
    texts = [[column.name for column in table.columns], *([_marked(cell) for cell in row] for row in shown)]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    lines = ["  ".join(map(_set, line, widths, table.columns)).rstrip() for line in texts]
    more = len(rows) - _TEXT_ROWS
    return "\n".join(
        [*lines[: _TEXT_ROWS + 1], *([f"... {more:,} more"] if more > 0 else []), *lines[_TEXT_ROWS + 1 :]]
    )


def _set(text: str, width: int, column: ColumnView) -> str:
    return text.rjust(width) if column.number else text.ljust(width)


def _marked(cell: CellView) -> str:
    return f"{cell.text}*" if cell.best else cell.text
