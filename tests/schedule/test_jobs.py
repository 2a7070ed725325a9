from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from crossperf.schedule.jobs import TraceError, read_swf, write_swf
from tests.schedule.worlds import random_jobs

HEADER = """; Version: 2.2
; Computer: a made-up machine
; UnixStartTime: 795990000
; MaxNodes: 64
; MaxProcs: 256
"""


def line(
    job: int, submit: object, run: object, asked: int = 8, limit: int = 600, status: int = 1, used: int = 8
) -> str:
    return f"{job} {submit} 5 {run} {used} -1 -1 {asked} {limit} -1 {status} 3 1 7 1 -1 -1 -1\n"


def trace(folder: Path, *lines: str, header: str = "") -> Path:
    path = folder / "trace.swf"
    path.write_text(header + "".join(lines), encoding="utf-8")
    return path


def test_jobs_come_with_their_times_users_and_programs(tmp_path: Path) -> None:
    jobs = read_swf(trace(tmp_path, line(1, 0, 100), line(2, 50, 200, asked=16)))
    assert jobs.submit_s.tolist() == [0, 50]
    assert jobs.nodes.tolist() == [8, 16]
    assert jobs.run_s.tolist() == [100, 200]
    assert jobs.requested_s.tolist() == [600, 600]
    assert (jobs.user.tolist(), jobs.executable.tolist()) == ([3, 3], [7, 7])


def test_the_header_tells_how_many_processors_make_a_node(tmp_path: Path) -> None:
    path = trace(tmp_path, line(1, 0, 100, asked=8), line(2, 0, 100, asked=9), header=HEADER)
    jobs = read_swf(path)
    assert jobs.nodes.tolist() == [2, 3]
    assert "4 processors make a node" in jobs.notes[0]
    assert read_swf(path, processors_per_node=1).nodes.tolist() == [8, 9]


def test_jobs_that_never_started_are_counted_and_those_that_failed_stay(tmp_path: Path) -> None:
    jobs = read_swf(
        trace(
            tmp_path,
            line(1, 0, 100, status=0),  # failed after 100 s
            line(2, 1, 50, status=5),  # cancelled after 50 s
            line(3, 2, -1, status=5),  # cancelled while it waited
            line(4, 3, 0, status=5),
            line(5, 4, -1, status=1),
            line(6, 5, 70, status=2),  # a part of a job that was stopped and went on
            line(7, 6, 10, asked=-1, used=-1),
            line(8, 7, 30, status=-1),
        )
    )
    assert jobs.run_s.tolist() == [100, 50, 30]
    assert jobs.left_out == {
        "cancelled before they started": 2,
        "without a run time": 1,
        "parts of jobs that another line tells whole": 1,
        "without a number of processors": 1,
    }


def test_what_a_line_leaves_open_is_filled_from_what_it_tells(tmp_path: Path) -> None:
    jobs = read_swf(trace(tmp_path, line(1, 0, 100, asked=-1, used=4), line(2, 0, 100, limit=-1), line(3, 0, 0)))
    assert jobs.nodes.tolist() == [4, 8, 8]
    assert jobs.requested_s.tolist() == [600, 100, 600]
    assert jobs.run_s.tolist() == [100, 100, 1]
    assert "1 jobs ran for 0 s and count as 1 s" in jobs.notes[0]


def test_jobs_are_put_in_order_of_arrival(tmp_path: Path) -> None:
    jobs = read_swf(trace(tmp_path, line(1, 90, 1), line(2, 10, 2), line(3, 90, 3)))
    assert jobs.run_s.tolist() == [2, 1, 3]


@pytest.mark.parametrize("name", ["trace.swf", "trace.swf.gz"])
def test_what_is_written_reads_back(name: str, tmp_path: Path) -> None:
    jobs = random_jobs(3, 50, 16)
    write_swf(tmp_path / name, jobs, wait_s=np.arange(50.0))
    back = read_swf(tmp_path / name)
    for column in ("submit_s", "nodes", "run_s", "requested_s", "user", "executable"):
        np.testing.assert_array_equal(getattr(back, column), getattr(jobs, column))


# Lines that cannot be read: what they are, and what the sentence says beside the place.
MALFORMED = {
    "1 0 5 100 8\n": "found 5 columns, expected 18",
    line(1, "soon", 100): "found 'soon', expected a number",
    line(1, -20, 100): "submit time of -20 s, expected 0 or more",
    line(1, 0, -50): "run time of -50 s, expected 0 or more, or -1",
    line(1, 0, 50, limit=-50): "requested time of -50 s, expected 0 or more, or -1",
    line(1, 0, "inf"): "not finite",
}


@pytest.mark.parametrize("bad", MALFORMED)
def test_a_malformed_line_is_named(bad: str, tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"trace\.swf, line 7: ") as caught:
        read_swf(trace(tmp_path, line(1, 0, 10), bad, header=HEADER))
    assert MALFORMED[bad] in str(caught.value)
    assert caught.value.facts["line"] == 7


def test_all_malformed_lines_are_named_at_once(tmp_path: Path) -> None:
    bad = "1 0 5\n"
    with pytest.raises(TraceError, match=r"line 2: found 3 columns.* Malformed as well: line 4, 5\.$"):
        read_swf(trace(tmp_path, line(1, 0, 10), bad, line(2, 0, 10), bad, bad))


def test_a_trace_without_jobs_or_cut_short_raises_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="no job that ran"):
        read_swf(trace(tmp_path, line(1, 0, -1), header=HEADER))
    path = tmp_path / "cut.swf.gz"
    path.write_bytes(gzip.compress(line(1, 0, 10).encode() * 1000)[:-20])
    with pytest.raises(TraceError, match=r"cut\.swf\.gz.*Copy it again"):
        read_swf(path)
    path.write_bytes(b"plain text")
    with pytest.raises(TraceError, match=r"cut\.swf\.gz.*Copy it again"):
        read_swf(path)
