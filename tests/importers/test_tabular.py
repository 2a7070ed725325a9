from __future__ import annotations

from pathlib import Path

import pytest

from crossperf.errors import ProfileFileError
from crossperf.importers import tabular
from crossperf.runs.rules import Problem


def test_rows_count_from_one_without_the_header_and_blank_lines(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('a,b\n1,"x, y"\n\n2,z\n')
    assert list(tabular.rows(path)) == [(1, {"a": "1", "b": "x, y"}), (2, {"a": "2", "b": "z"})]


def test_a_row_of_another_length_is_told_and_the_rest_read(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1\n2,3\n")
    first, second = tabular.rows(path)
    assert str(first[1]) == "row 1: found 1 cells, expected 2 as in the header. Correct the row."
    assert second[1] == {"a": "2", "b": "3"}


def test_lines_of_json_keep_their_line_numbers(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"a": 1}\n\n[1]\n{"a": 2\n')
    numbers = [number for number, _ in tabular.rows(path)]
    kinds = [type(row) for _, row in tabular.rows(path)]
    assert numbers == [1, 3, 4]
    assert kinds == [dict, Problem, Problem]


@pytest.mark.parametrize("content", [b"", b"\n", b"a,a\n1,2\n", b"a,b\n\xff\xfe,1\n", b'a,b\n"1,\x00'])
def test_what_is_no_table_is_one_clear_error_or_a_told_row(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    try:
        assert all(isinstance(row, Problem) for _, row in tabular.rows(path))
    except ProfileFileError as error:
        assert str(path) in str(error)


def test_a_header_is_never_an_error(tmp_path: Path) -> None:
    (tmp_path / "noise").write_bytes(b"\xff\x00\xfe")
    assert tabular.header(tmp_path / "noise") == tabular.header(tmp_path / "nowhere") == tabular.header(tmp_path) == []


def test_a_rejected_row_says_where_it_is() -> None:
    assert str(tabular.Rejected("t.csv", "found nothing.", 1234)) == "t.csv, row 1,234: found nothing."
