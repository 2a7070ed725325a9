from __future__ import annotations

import errno
import gzip
import json
import math
import os
from pathlib import Path

import pytest

from crossperf.errors import RunsTableError
from crossperf.records import Run
from crossperf.runs import jsonl, table

RUNS = [
    Run("a", "1", "cpu-a", 2.0, counters={"instructions": 5.0, "page_faults": None}),
    Run("ä", "2", "cpu-b", None, status="timeout", counters={"instructions": 0.0}, metadata={"job": "7"}),
]


def test_runs_come_back_as_they_were_appended(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    assert jsonl.append(path, RUNS[:1]) == 1
    assert jsonl.append(path, RUNS[1:]) == 1
    assert jsonl.read(path) == RUNS
    assert len(path.read_text().splitlines()) == 2


def test_appending_nothing_makes_no_file(tmp_path: Path) -> None:
    assert jsonl.append(tmp_path / "runs.jsonl", []) == 0
    assert not (tmp_path / "runs.jsonl").exists()


def test_after_an_interrupted_append_the_next_run_starts_on_its_own_line(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    jsonl.append(path, RUNS)
    path.write_bytes(path.read_bytes()[:-20])  # the second line is torn
    jsonl.append(path, RUNS[:1])
    lines = path.read_text().splitlines()
    assert len(lines) == 3
    assert Run.from_json(json.loads(lines[2])) == RUNS[0]
    with pytest.raises(RunsTableError) as caught:
        jsonl.read(path)
    assert [problem.row for problem in caught.value.facts["problems"]] == [2]
    assert "interrupted write" in str(caught.value)


def test_every_bad_line_is_reported_with_its_number(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    lines = [
        b"{",
        b"[1, 2]",
        b'{"app": "a", "input": "1", "platform": "p"}',
        b"",
        b'{"app": "caf\xe9"}',
        b'{"app": "a", "counters": [1]}',
        b'{"input": "1"}',
    ]
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(RunsTableError) as caught:
        jsonl.read(path)
    problems = caught.value.facts["problems"]
    assert [problem.row for problem in problems] == [1, 2, 5, 6, 7, 7]
    found = [problem.actual for problem in problems]
    assert found[0].startswith("text that is not JSON")
    assert found[1:4] == ["a list", "text that is not JSON (it is not UTF-8 text)", "a list under 'counters'"]
    assert [problem.column for problem in problems[4:]] == ["app", "platform"]


def test_a_compressed_file_is_read_alike_and_is_not_appended_to(tmp_path: Path) -> None:
    plain, packed = tmp_path / "runs.jsonl", tmp_path / "runs.jsonl.gz"
    jsonl.append(plain, RUNS)
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    before = packed.read_bytes()
    assert jsonl.read(packed) == RUNS
    with pytest.raises(RunsTableError, match="Append to a plain"):
        jsonl.append(packed, RUNS)
    assert packed.read_bytes() == before


@pytest.mark.parametrize("bad", [math.inf, math.nan])
def test_a_number_json_cannot_hold_is_refused_before_anything_is_written(tmp_path: Path, bad: float) -> None:
    path = tmp_path / "runs.jsonl"
    with pytest.raises(RunsTableError, match="not finite"):
        jsonl.append(path, [RUNS[0], Run("a", "1", "p", 1.0, counters={"x": bad})])
    assert not path.exists()


def test_a_number_for_a_name_reads_as_the_same_text_as_in_a_csv_file(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text('{"app": "a", "input": 30, "platform": "p", "runtime_s": 1, "counters": {"x": 1}}\n')
    assert table.read(path).frame["input"].to_list() == ["30"]


def test_a_number_too_large_for_a_float_is_reported_in_its_place(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text(
        '{"app": "a", "input": "1", "platform": "p", "runtime_s": 1, "counters": {"x": 1' + 400 * "0" + "}}\n"
    )
    (problem,) = table.check(path)
    assert (problem.row, problem.column) == (1, "counter.x")


def test_the_next_repeat_follows_the_highest_of_the_same_workload_on_the_same_platform(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    assert jsonl.next_repeat(path, "a", "1", "p") == 0
    jsonl.append(path, [Run("a", "1", "p", 1.0, repeat=4), Run("a", "2", "p", 1.0, repeat=9), Run("b", "1", "p", 1.0)])
    assert jsonl.next_repeat(path, "a", "1", "p") == 5
    assert jsonl.next_repeat(path, "a", "1", "q") == 0


def test_lines_that_a_full_disk_cut_off_are_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "runs.jsonl"
    jsonl.append(path, [Run("a", "1", "p", 1.0)])
    before = path.read_bytes()
    real_write, calls = os.write, []

    def nearly_full(descriptor: int, data: memoryview) -> int:
        calls.append(len(data))
        if len(calls) > 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real_write(descriptor, data[:10])

    monkeypatch.setattr(os, "write", nearly_full)
    with pytest.raises(OSError, match="No space"):
        jsonl.append(path, [Run("b", "1", "p", 1.0)])
    assert path.read_bytes() == before
