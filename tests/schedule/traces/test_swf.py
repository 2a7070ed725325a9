from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from crossperf.errors import SettingsError
from crossperf.schedule.jobs import TraceError
from crossperf.schedule.traces.swf import read_swf, write_swf
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
    assert any("1 jobs ran for 0 s and count as 1 s" in note for note in jobs.notes)


def test_run_times_below_0_are_dropped_and_counted_and_limits_below_0_are_none(tmp_path: Path) -> None:
    """Two such lines had 17,900 good ones refused."""
    good = [line(i, i, 100) for i in range(1, 6)]
    jobs = read_swf(trace(tmp_path, *good, line(6, 9, -50), line(7, 9, -1), line(8, 10, 30, limit=-7)))
    assert jobs.left_out == {"with a run time below 0": 1, "without a run time": 1}
    assert jobs.run_s.tolist() == [100] * 5 + [30]
    assert jobs.requested_s[-1] == 30
    assert any("1 jobs have a limit below 0, which counts as none" in note for note in jobs.notes)


def test_numbers_of_a_header_may_have_commas(tmp_path: Path) -> None:
    header = "; MaxNodes: 128\n;  MaxProcs:  1,024 (8 a node)\n"
    assert read_swf(trace(tmp_path, line(1, 0, 100, asked=16), header=header)).nodes.tolist() == [2]


def test_where_limits_are_missing_the_trace_says_that_backfilling_is_clairvoyant(tmp_path: Path) -> None:
    some = read_swf(trace(tmp_path, line(1, 0, 100), line(2, 0, 100, limit=-1)))
    assert any("1 of 2 jobs have no limit" in note and "clairvoyant" in note for note in some.notes)
    every = read_swf(trace(tmp_path, line(1, 0, 100, limit=-1)))
    assert any("the trace has no limit" in note and "clairvoyant" in note for note in every.notes)
    assert not any("clairvoyant" in note for note in read_swf(trace(tmp_path, line(1, 0, 100))).notes)


def full_line(job: int, submit: int, run: int, *, wait: int = 0, memory: int = -1, queue: int = 1, **after: int) -> str:
    preceding, think, user = after.get("preceding", -1), after.get("think", -1), after.get("user", 3)
    return f"{job} {submit} {wait} {run} 8 -1 -1 8 600 {memory} 1 {user} 1 7 {queue} -1 {preceding} {think}\n"


def test_jobs_take_parts_of_nodes_where_they_share_them(tmp_path: Path) -> None:
    path = trace(tmp_path, full_line(1, 0, 100, memory=1024**2), header=HEADER)
    whole, shared = read_swf(path), read_swf(path, share_nodes=True)
    assert (whole.nodes.tolist(), shared.nodes.tolist()) == ([2], [8])
    assert whole.memory_gb is not None
    assert shared.memory_gb is not None
    assert (whole.memory_gb.tolist(), shared.memory_gb.tolist()) == ([4.0], [1.0])  # a gigabyte for each processor
    assert "4 for each node of a machine" in shared.notes[0]


def test_preceding_jobs_and_think_times_are_used_or_named_as_ignored(tmp_path: Path) -> None:
    lines = (full_line(4, 0, 100), full_line(9, 50, 10, preceding=4, think=30), full_line(10, 60, 10, preceding=4))
    path = trace(tmp_path, *lines, full_line(11, 70, 10, preceding=99))
    ignored, used = read_swf(path), read_swf(path, feedback="jobs")
    assert ignored.follows is None
    assert ignored.ignored == ("preceding jobs and think times (--feedback jobs)",)
    assert used.ignored == ()
    assert used.follows is not None
    assert used.think_s is not None
    assert used.follows.tolist() == [-1, 0, 0, -1]  # the last one's is not in the trace
    np.testing.assert_array_equal(used.think_s, [np.nan, 30, np.nan, np.nan])
    with pytest.raises(SettingsError, match="feedback: found 'job', expected jobs or users"):
        read_swf(path, feedback="job")


def test_sessions_of_users_give_think_times(tmp_path: Path) -> None:
    lines = (
        full_line(1, 0, 100, wait=20),  # ends at 120
        full_line(2, 150, 10, wait=0),  # 30 s later
        full_line(3, 155, 10, user=4),  # somebody else's
        full_line(4, 5000, 10),  # another session
    )
    jobs = read_swf(trace(tmp_path, *lines), feedback="users")
    assert jobs.follows is not None
    assert jobs.think_s is not None
    assert jobs.follows.tolist() == [-1, 0, -1, -1]
    assert jobs.think_s[1] == 30


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
    line(1, 0, 1e13): "run time of 1e+13 s, expected at most 1e+12",
    line(1, 0, "inf"): "not finite",
}


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        (line(1, 0, 100).replace(" 8 600 ", " 1e300 600 "), "found 1e+300 nodes of job 1, expected at most"),
        (line(1, 0, 100).replace(" 3 1 7 ", " 1e300 1 7 "), "found 1e+300 for user of job 1"),
        (line(1, 0, 100).replace(" 7 1 ", " 7e99 1 "), "found 7e+99 for executable of job 1"),
    ],
)
def test_a_number_too_long_to_count_is_refused_and_not_taken_for_another(
    bad: str, sentence: str, tmp_path: Path
) -> None:
    """A cast of 1e300 to 64 bits gave -9223372036854775808 nodes, in silence."""
    with pytest.raises(TraceError) as caught:
        read_swf(trace(tmp_path, bad))
    assert sentence in str(caught.value)


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
