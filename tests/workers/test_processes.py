"""Worker processes of this machine: real ones, killed for real."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from crossperf.errors import DatasetError, SettingsError, WorkerError
from crossperf.workers import Kept, processes
from tests.workers.work import DOUBLE, LIBRARIES, TABLE, begun, pids, questions

ROOT = Path(__file__).parents[2]


def is_alive(pid: int) -> bool:
    try:
        return "\tZ" not in Path(f"/proc/{pid}/status").read_text().partition("State:")[2][:4]
    except OSError:
        return False


def until(condition, what: str, seconds: float = 60.0) -> None:  # type: ignore[no-untyped-def]
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"no {what} within {seconds:g} s"
        time.sleep(0.05)


@pytest.mark.slow
def test_a_worker_that_is_killed_costs_its_own_piece_and_no_other(tmp_path: Path) -> None:
    """One of two workers is killed with -9 while the other is at a piece: only the first is begun again."""
    log = tmp_path / "log"
    asked = questions(log, 6, n1={"dies": "once"}, n0={"sleep_s": 1.0})
    with processes(2) as workers:
        answers = dict(DOUBLE.answers(asked, workers))
    assert {n: answer.facts["number"] for n, answer in answers.items()} == {n: 2 * n for n in range(6)}
    counts = {n: begun(log).count(n) for n in range(6)}
    assert counts == {0: 1, 1: 2, 2: 1, 3: 1, 4: 1, 5: 1}


@pytest.mark.slow
def test_a_piece_that_kills_every_worker_ends_the_study_and_finished_pieces_stay(tmp_path: Path) -> None:
    asked = questions(tmp_path / "log", 3, n2={"dies": "always"})
    with Kept(tmp_path / "kept") as kept, processes(1) as workers:
        with pytest.raises(WorkerError, match=r"ended 3 times before its answer .* memory ran out"):
            list(DOUBLE.answers(asked, workers, kept))
        assert len(kept) == 2
    assert begun(tmp_path / "log") == [0, 1, 2, 2, 2]


@pytest.mark.slow
def test_a_driver_that_is_killed_goes_on_with_what_is_missing(tmp_path: Path) -> None:
    """Killed with -9 in the middle: its workers end soon; started again, no finished piece is begun a second time."""
    command = [sys.executable, "-m", "tests.workers.driver", str(tmp_path / "kept"), str(tmp_path / "log"), "8", "0.4"]
    first = subprocess.Popen(command, cwd=ROOT)
    until(lambda: len(list(tmp_path.glob("kept/*.npz"))) >= 3, "finished pieces")
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    finished = len(list(tmp_path.glob("kept/*.npz")))
    before = begun(tmp_path / "log")
    until(lambda: not any(map(is_alive, pids(tmp_path / "log"))), "end of the workers of a killed driver", 20)
    second = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert second.stdout.strip() == str([2 * n for n in range(8)])
    again = begun(tmp_path / "log")[len(before) :]
    assert len(again) == 8 - finished < 8
    assert len(set(again)) == len(again)


@pytest.mark.slow
def test_a_worker_has_one_thread_unless_more_are_asked_for(tmp_path: Path) -> None:
    asked = questions(tmp_path / "log", 1)
    for threads in (1, 2):
        with processes(1, threads=threads) as workers:
            ((_, answer),) = LIBRARIES.answers(asked, workers)
        assert set(answer.facts["pools"].values()) == {threads}
        assert answer.facts["torch"] == threads
        assert answer.facts["pid"] != os.getpid()


def test_an_error_of_a_piece_is_raised_as_it_was_and_finished_pieces_stay(tmp_path: Path) -> None:
    asked = questions(tmp_path / "log", 2, n1={"fails": True})
    with Kept(tmp_path / "kept") as kept, processes(1) as workers:
        with pytest.raises(DatasetError, match=r"^runs.csv: found nothing, expected something.$") as raised:
            list(DOUBLE.answers(asked, workers, kept))
        assert raised.value.path == "runs.csv"  # type: ignore[attr-defined]
        assert len(kept) == 1


def test_numbers_of_processes_and_threads_are_checked() -> None:
    with pytest.raises(SettingsError, match=r"jobs: found 0, expected 1 or more\."), processes(0):
        pass
    with pytest.raises(SettingsError, match=r"threads: found 0"), processes(1, threads=0):
        pass


def test_only_functions_of_a_module_travel() -> None:
    with processes(1) as workers, pytest.raises(SettingsError, match="expected a function of a module"):
        workers.submit(lambda table: table, TABLE)
