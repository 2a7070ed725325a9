from __future__ import annotations

from pathlib import Path

import pytest

from crossperf.collect import callgrind
from crossperf.errors import ProfileFileError

SMALL = """# callgrind format
version: 1
creator: callgrind-3.19.0
pid: 7
cmd:  ./app 3
desc: D1 cache: 49152 B, 64 B, 12-way associative
desc: LL cache: 1048576 B, 128 B, direct-mapped
positions: instr line
events: Ir Dr Bc
summary: 20 3 2


ob=(1) /bin/app
fl=(1) app.c
fn=(1) main
0x100 3 5 1
+4 * 5 0 1
cfn=(2) helper
cob=(2) /lib/other.so
calls=2 0x200
* 4 900 30
-4 3 2 1

ob=(2)
fn=(2)
0x200 1 8 1 1
"""


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "callgrind.out.7"
    path.write_text(SMALL)
    return path


def test_executions_are_counted_by_object_and_address_without_the_cost_of_callees(small: Path) -> None:
    profile = callgrind.read(small)
    assert profile.totals == {"Ir": 20, "Dr": 3, "Bc": 2}
    assert profile.executions == {"/bin/app": {0x100: 7, 0x104: 5}, "/lib/other.so": {0x200: 8}}
    assert profile.command == "./app 3"
    assert profile.line_bytes == {"D1": 64, "LL": 128}


def test_trailing_events_that_are_zero_are_left_out_by_callgrind_and_read_as_zero(small: Path) -> None:
    small.write_text(SMALL.replace("summary: 20 3 2", "summary: 20 3"))
    assert callgrind.read(small).totals["Bc"] == 0


def test_totals_at_the_end_are_believed_before_the_summary(small: Path) -> None:
    """With marks in the program, callgrind's summary is 0 and its totals hold what lies between the marks."""
    small.write_text(SMALL.replace("summary: 20 3 2", "summary: 0") + "\ntotals: 20 3 2\n")
    assert callgrind.read(small).totals == {"Ir": 20, "Dr": 3, "Bc": 2}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (("version: 1", "version: 9"), "found version 9, expected version 1"),
        (("events: Ir Dr Bc\n", ""), "no 'version:' and 'events:' lines"),
        (("summary: 20 3 2", ""), "no totals"),
        (("0x200 1 8 1 1", "0x200 1 eight"), "no cost line"),
        (("0x200 1 8 1 1", ""), "12 executed instructions, expected the 20"),
        ((SMALL, ""), "no 'version:'"),
    ],
)
def test_a_damaged_file_is_refused_in_one_sentence(small: Path, change: tuple[str, str], sentence: str) -> None:
    small.write_text(SMALL.replace(*change))
    with pytest.raises(ProfileFileError, match=sentence):
        callgrind.read(small)


def test_every_way_of_cutting_the_file_short_is_refused_or_loses_nothing(small: Path) -> None:
    whole = callgrind.read(small)
    for end in range(len(SMALL) - 1):
        small.write_text(SMALL[:end])
        try:
            assert callgrind.read(small).totals == whole.totals
        except ProfileFileError:
            continue
