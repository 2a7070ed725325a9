"""Tables in a terminal of 80 columns: every number whole, nothing beyond the edge."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from crossperf.display import CellView, TableView, number, numbers, words
from crossperf.evaluation.result import Evaluation
from crossperf.report import tables
from crossperf.report.columns import fitting, least, natural, turned
from crossperf.report.terminal import rich_table
from crossperf.schedule.outcome import metrics_table
from tests.report.test_schedule import outcome


def shown(view: TableView, width: int) -> str:
    """Return what a terminal of a width shows of a table."""
    out = io.StringIO()
    console = Console(file=out, width=width, highlight=False, soft_wrap=True)
    for part in fitting(view, width):
        console.print(rich_table(part, width))
    return out.getvalue()


def table_of(rows: int, columns: int) -> TableView:
    cells = [[number(1000.0 * row + place + 0.125) for place in range(columns)] for row in range(rows)]
    heads = (*words("platform"), *numbers(*(f"a rather long heading {place}" for place in range(columns))))
    return TableView("numbers", heads, tuple((f"row-{row}", *own) for row, own in enumerate(cells)))


def assert_whole(view: TableView, width: int) -> None:
    text = shown(view, width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    written = re.sub(r"[^\w.,%×x*−–:-]+", " ", text)
    for row, _ in view.all_rows:
        for cell, column in zip(row, view.columns, strict=True):
            if column.number:
                assert re.sub(r"[^\w.,%×x*−–:-]+", " ", cell.text).strip() in written, cell.text


@pytest.mark.parametrize(("rows", "columns"), [(3, 4), (3, 16), (40, 16), (1, 60), (200, 3)])
@pytest.mark.parametrize("width", [60, 80, 160])
def test_no_number_is_cut_however_many_columns_there_are(rows: int, columns: int, width: int) -> None:
    assert_whole(table_of(rows, columns), width)


def test_scores_fit_80_columns_on_their_side(ordinary: Evaluation) -> None:
    scores = tables.scores(ordinary)
    assert natural(scores) > 160
    assert_whole(scores, 80)
    text = shown(scores, 80)
    first = ordinary.scores["crossperf"]
    assert f"{first.typical_factor:.3f}" in text
    assert "typical factor" in text
    assert "noise" in text and "ceiling" in text


def test_what_a_table_on_its_side_says_is_the_same() -> None:
    view = TableView("", (*words("model"), *numbers("r2", "mae")), (("a", number(0.5, best=True), number(2.0)),))
    on_its_side = turned(view)
    assert [column.name for column in on_its_side.columns] == ["", "a"]
    assert on_its_side.rows == ((CellView("r2"), number(0.5, best=True)), (CellView("mae"), number(2.0)))


def test_parts_of_a_table_begin_with_its_names_and_hold_each_column_once() -> None:
    view = table_of(20, 12)
    parts = fitting(view, 60)
    assert len(parts) > 1
    assert all(part.columns[0].name == "platform" and least(part) <= 60 for part in parts)
    assert [column.name for part in parts for column in part.columns[1:]] == [
        column.name for column in view.columns[1:]
    ]
    assert parts[1].caption == "numbers (continued)"


def test_the_metrics_of_a_simulation_have_a_name_each_and_fit() -> None:
    view = metrics_table([outcome(60)])
    names = [column.name for column in view.columns]
    assert len(set(names)) == len(names)
    assert sum("p95" in name for name in names) == 3
    assert_whole(view, 80)
