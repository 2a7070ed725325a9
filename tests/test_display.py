"""One description of a table, shown three ways: the same cells, the same emphasis, nothing unescaped."""

from io import StringIO

import pytest
from rich.console import Console

from crossperf.display import CellView, TableView, numbers, to_html, to_text, words
from crossperf.report.terminal import rich_table

TABLE = TableView(
    "Scores <of> [models]",
    (*words("model"), *numbers("r2")),
    (("[bold]", CellView("0.50", 0.5)), ("<b>", CellView("0.75", 0.75, best=True))),
    (("noise ceiling", CellView("0.90", 0.9)),),
)


def in_terminal(table: TableView) -> str:
    console = Console(file=StringIO(), width=80, force_terminal=True, color_system=None)
    console.print(rich_table(table))
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


@pytest.mark.parametrize("show", [to_text, in_terminal])
def test_the_best_has_a_star_and_names_stay_names(show) -> None:  # type: ignore[no-untyped-def]
    text = show(TABLE)
    assert "0.75*" in text
    assert "0.50*" not in text
    assert "[bold]" in text
    assert text.index("<b>") < text.index("noise ceiling")


def test_html_is_escaped_sorts_by_value_and_keeps_references_in_the_foot() -> None:
    html = to_html(TABLE, "scores")
    assert '<caption id="scores">Scores &lt;of&gt; [models]</caption>' in html
    assert '<th scope="row">&lt;b&gt;</th>' in html
    assert (
        '<td class="number best" data-value="0.75" data-label="r2"><b>0.75</b><span class="unseen"> (best)</span></td>'
        in html
    )
    assert html.index("<tfoot>") < html.index("noise ceiling")
    assert "(best)" not in to_html(TABLE)  # in a notebook nothing hides it


def test_the_text_of_a_long_table_has_few_lines_and_counts_the_rest() -> None:
    long = TableView("", TABLE.columns, TABLE.rows * 50, TABLE.reference)
    lines = to_text(long).splitlines()
    assert len(lines) == 1 + 5 + 1 + 1
    assert lines[-2:] == ["... 95 more", "noise ceiling   0.90"]
