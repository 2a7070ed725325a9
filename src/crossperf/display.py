"""Tables of results: one description of a table, shown as text and as HTML."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

#: What stands for a number that is not known.
GAP = "–"
_TEXT_ROWS = 5  # rows of a table that the text form of an object shows; it has ten lines in all


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
RowView = tuple[Entry, ...]


@dataclass(frozen=True)
class TableView:
    """A table whose first column names its rows; ``reference`` rows are compared with and never sorted."""

    caption: str
    columns: tuple[ColumnView, ...]
    rows: tuple[RowView, ...]
    reference: tuple[RowView, ...] = ()

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
    return CellView(GAP) if value is None else CellView(percent(value, digits), float(value))


def percent(part: float, digits: int = 0) -> str:
    """Return a share in per cent; what is neither nothing nor all is never rounded to 0 or 100 %.

    >>> percent(0.5), percent(0.002), percent(0.998), percent(1.0)
    ('50%', '<1%', '>99%', '100%')
    """
    least = 10.0 ** -(digits + 2)
    if 0.0 < part < least / 2:
        return f"<{least:.{digits}%}"
    if 1.0 - least / 2 <= part < 1.0:
        return f">{1.0 - least:.{digits}%}"
    return f"{part:.{digits}%}"


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
    kinds = [{"scope": "col", "class": "number" * own.number, "title": own.hint} for own in table.columns]
    heads = "".join(_element("th", escape(own.name), kind) for own, kind in zip(table.columns, kinds, strict=True))
    caption = _element("caption", escape(table.caption), {"id": identity})
    lines = ['<table class="sortable">', caption, f"<thead><tr>{heads}</tr></thead>"]
    for tag, kind in (("tbody", False), ("tfoot", True)):
        rows = [row for row, reference in table.all_rows if reference is kind]
        if rows or not kind:
            cells = (_html_row(row, table.columns, " (best)" if identity else "") for row in rows)
            lines += [f"<{tag}>", *(f"<tr>{row}</tr>" for row in cells), f"</{tag}>"]
    return "\n".join([*lines, "</table>"])


def _html_row(row: Sequence[CellView], columns: Sequence[ColumnView], best: str) -> str:
    cells = []
    for place, (cell, column) in enumerate(zip(row, columns, strict=True)):
        value = str(cell.value) if column.number and cell.value is not None else ""
        kinds = {"class": "number" * column.number + " best" * cell.best, "data-value": value}
        if place and best:  # the page's style names the column again where a screen is too narrow for it
            kinds["data-label"] = column.name
        text = f"<b>{escape(cell.text)}</b>" if cell.best or cell.bold else escape(cell.text)
        mark = f'<span class="unseen">{best}</span>' if cell.best and best else ""
        cells.append(_element("td" if place else "th", text + mark, {"scope": "" if place else "row", **kinds}))
    return "".join(cells)


def _element(tag: str, content: str, attributes: dict[str, str]) -> str:
    known = "".join(f' {name}="{escape(value)}"' for name, value in attributes.items() if value)
    return f"<{tag}{known}>{content}</{tag}>"


def to_text(table: TableView) -> str:
    """Return a table as plain text, its first rows and the references, for the ``repr`` of an object."""
    rows = [row for row, reference in table.all_rows if not reference]
    shown = [*rows[:_TEXT_ROWS], *(row for row, reference in table.all_rows if reference)]
    names = [column.name for column in table.columns]
    texts = [names, *([cell.text + "*" * cell.best for cell in row] for row in shown)]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    pads = [str.rjust if column.number else str.ljust for column in table.columns]
    cells = ([pad(text, width) for pad, text, width in zip(pads, line, widths, strict=True)] for line in texts)
    lines = ["  ".join(line).rstrip() for line in cells]
    if len(rows) > _TEXT_ROWS:
        lines.insert(_TEXT_ROWS + 1, f"... {len(rows) - _TEXT_ROWS:,} more")
    return "\n".join(lines)
