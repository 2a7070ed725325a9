"""The table as a file: what is written is read back, and nothing else is taken for a table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossperf.errors import CrossperfError
from crossperf.schedule.slurm import setup, table
from crossperf.schedule.slurm.names import Named
from crossperf.schedule.slurm.table import KeyRow, PartitionChoice, SlurmTableError
from tests.schedule.slurm.conftest import TABLE

ANY_TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
TIMES = st.floats(1e-3, 1e3).map(lambda number: float(f"{number:.6g}"))


def test_a_table_is_read_as_it_was_written(tmp_path: Path) -> None:
    facts = replace(TABLE.partitions[2], adds="gpu:1", qos="gpu, all", closed="its jobs can be preempted")
    made = replace(TABLE, partitions=(*TABLE.partitions[:2], facts), made=5, expires=9)
    made.write(tmp_path / "t")
    stored = table.read(tmp_path / "t")
    assert (stored.default, stored.policy, stored.partitions) == (made.default, made.policy, made.partitions)
    assert (stored.made, stored.expires) == (5, 9)
    assert {key: stored.row(key) for key in TABLE.rows} == TABLE.rows
    assert len(stored.rows) == len(TABLE.rows)


def test_no_name_of_an_application_a_user_or_an_input_can_be_read_off_a_table() -> None:
    rows = {("secret-code", "alice", "reactor"): TABLE.rows["lmp", "", ""]}
    data = replace(TABLE, rows=rows).to_bytes()
    assert not any(name in data for name in (b"secret", b"alice", b"reactor"))


def test_the_same_name_has_other_digests_in_other_tables(tmp_path: Path) -> None:
    for number in range(2):
        replace(TABLE, made=number).write(tmp_path / f"{number}")
    first, second = (table.read(tmp_path / f"{number}") for number in range(2))
    assert not set(first.rows) & set(second.rows)


@settings(max_examples=40, deadline=None)
@given(
    st.dictionaries(
        st.tuples(ANY_TEXT, ANY_TEXT, ANY_TEXT),
        st.builds(
            KeyRow,
            st.lists(st.builds(PartitionChoice, ANY_TEXT, TIMES, TIMES, TIMES, st.integers(0, 9)), min_size=1).map(
                tuple
            ),
            TIMES,
        ),
        max_size=5,
    )
)
def test_any_names_come_back(tmp_path_factory: pytest.TempPathFactory, rows: dict[table.Key, KeyRow]) -> None:
    path = tmp_path_factory.mktemp("table") / "t"
    replace(TABLE, rows=rows).write(path)
    stored = table.read(path)
    assert {key: stored.row(key) for key in rows} == rows


def test_any_byte_that_changes_is_noticed(tmp_path: Path) -> None:
    data = TABLE.to_bytes()
    for place in range(0, len(data), 7):
        spoiled = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
        (tmp_path / "t").write_bytes(spoiled)
        with pytest.raises(SlurmTableError):
            table.read(tmp_path / "t")


def test_any_cut_is_noticed(tmp_path: Path) -> None:
    data = TABLE.to_bytes()
    for length in range(0, len(data), 11):
        (tmp_path / "t").write_bytes(data[:length])
        with pytest.raises(SlurmTableError):
            table.read(tmp_path / "t")


def test_a_table_takes_the_place_of_a_table_alone(tmp_path: Path) -> None:
    path = tmp_path / "advice.table"
    path.write_bytes(TABLE.to_bytes()[:100])  # torn, and one of ours all the same
    TABLE.write(path)
    assert path.read_bytes() == TABLE.to_bytes()
    path.write_text("app,input,cpu\n")
    with pytest.raises(CrossperfError, match="found a file that crossperf did not write, expected a new name"):
        TABLE.write(path)
    assert path.read_text() == "app,input,cpu\n"


def test_a_key_that_the_controller_could_not_find_is_left_out(tmp_path: Path) -> None:
    many = KeyRow(tuple(PartitionChoice("p" * 100 + str(number), 1.0, 1.0, 1.0) for number in range(20)))
    long, short = ("long", "", ""), ("x" * 3000, "", "")
    made = replace(TABLE, rows={long: many, short: TABLE.rows["lmp", "", ""]})
    made.write(tmp_path / "t")
    stored = table.read(tmp_path / "t")
    assert (stored.row(long), stored.row(short)) == (None, TABLE.rows["lmp", "", ""])
    assert made.too_long == 1


def test_the_longest_line_and_the_version_are_the_same_for_both_readers() -> None:
    module = setup._packaged(setup.MODULE)
    assert f"PIECE, LONGEST_TAIL = {2 * table.LONGEST_LINE}, " in module
    assert f'VERSION = "{table.VERSION}"' in module


def test_a_job_is_found_by_its_most_special_key(tmp_path: Path) -> None:
    TABLE.write(tmp_path / "t")
    stored = table.read(tmp_path / "t")

    def key(app: str, user: str, input_: str) -> table.Key | None:
        entry = stored.find(Named((app,), user, input_))
        return entry[0] if entry else None

    assert key("lmp", "root", "melt") == ("lmp", "root", "melt")
    assert key("lmp", "ann", "melt") == ("lmp", "", "melt")
    assert key("lmp", "ann", "other") == ("lmp", "", "")
    assert key("nobody", "ann", "melt") is None
