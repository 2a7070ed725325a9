from __future__ import annotations

import time
from pathlib import Path

import pytest

from crossperf.cluster import GONE, Allocation, Call, ControllerError, JobArray, JobArrays, JobState, SubmissionError
from crossperf.cluster.arrays import private
from crossperf.errors import CrossperfError
from tests.schedule.slurm.cluster import Cluster, until

pytest.importorskip("submitit")
pytestmark = pytest.mark.slow
CPU = Allocation("cpu", time="5", cpus=1)


def ended(jobs: JobArrays, array: JobArray, seconds: float = 40.0) -> dict[int, JobState]:
    """Wait until no element runs any more, and return how each ended."""
    until(lambda: all(state.ended for state in jobs.states([array]).values()), f"the end of {array}", seconds)
    return {number: state for (_, number), state in jobs.states([array]).items()}


def test_an_array_executes_its_calls_and_a_failure_is_told_by_state_and_last_words(
    slurm: Cluster, tmp_path: Path
) -> None:
    jobs = JobArrays(tmp_path / "jobs")
    calls = [Call("tests.cluster.jobs:square", (str(tmp_path / f"out-{n}"), n)) for n in range(3)]
    array = jobs.submit("t-squares", [*calls, Call("tests.cluster.jobs:fail", (str(tmp_path / "failed"),))], CPU)
    assert array.size == 4
    states = ended(jobs, array)
    assert [states[number].word for number in range(4)] == ["COMPLETED"] * 3 + ["FAILED"]
    assert [(tmp_path / f"out-{n}").read_text() for n in range(3)] == ["0 0\n", "1 1\n", "2 4\n"]
    assert jobs.last_words(array, 3) == "no such input: 7"
    assert jobs.last_words(array, 0) == ""


def test_one_call_is_a_plain_job_with_the_element_0(slurm: Cluster, tmp_path: Path) -> None:
    jobs = JobArrays(tmp_path / "jobs")
    array = jobs.submit("t-single", [Call("tests.cluster.jobs:square", (str(tmp_path / "out"), 3))], CPU)
    assert ended(jobs, array) == {0: JobState("COMPLETED", "None")}
    assert (tmp_path / "out").read_text() == "3 9\n"


def test_a_job_that_is_queued_again_goes_on_where_its_file_ends(slurm: Cluster, tmp_path: Path) -> None:
    jobs, out = JobArrays(tmp_path / "jobs"), tmp_path / "out"
    calls = [Call("tests.cluster.jobs:count_up", (str(path), 8, 0.2)) for path in (out, tmp_path / "other")]
    array = jobs.submit("t-again", calls, CPU)
    until(lambda: out.exists() and len(out.read_text().split()) > 2, "some progress")
    # What Slurm sends before the time limit: submitit has the job queued again.
    slurm.output("scancel", "--signal=USR2", array.id(0))
    states = ended(jobs, array)
    assert [states[number].word for number in range(2)] == ["COMPLETED"] * 2
    assert out.read_text().split() == [str(number) for number in range(8)]
    restarts = slurm.output("scontrol", "-o", "show", "job", array.id(0))
    assert "Restarts=1" in restarts


def test_a_cancelled_element_ends_soon_and_the_others_go_on(slurm: Cluster, tmp_path: Path) -> None:
    jobs = JobArrays(tmp_path / "jobs")
    calls = [Call("tests.cluster.jobs:count_up", (str(tmp_path / f"out-{n}"), 12, 0.1)) for n in range(2)]
    array = jobs.submit("t-cancel", calls, CPU)
    until((tmp_path / "out-1").exists, "a start")
    jobs.cancel([array], [1])
    states = ended(jobs, array)
    assert (states[0].word, states[1].word) == ("COMPLETED", "CANCELLED")
    assert len((tmp_path / "out-0").read_text().split()) == 12
    assert len((tmp_path / "out-1").read_text().split()) < 12
    jobs.cancel([array])  # all have ended: nothing is left to do


def test_states_are_not_known_while_the_controller_is_down_and_true_again_afterwards(
    slurm: Cluster, tmp_path: Path
) -> None:
    jobs = JobArrays(tmp_path / "jobs")
    calls = [Call("tests.cluster.jobs:count_up", (str(tmp_path / f"out-{n}"), 10, 0.1)) for n in range(2)]
    array = jobs.submit("t-down", calls, CPU)
    until((tmp_path / "out-0").exists, "a start")
    slurm.stop_controller()
    start = time.monotonic()
    with pytest.raises(ControllerError):
        jobs.states([array])
    assert time.monotonic() - start < 15
    slurm.start_controller()
    assert [state.word for state in ended(jobs, array).values()] == ["COMPLETED"] * 2


def test_what_nobody_shows_is_gone(slurm: Cluster, tmp_path: Path) -> None:
    jobs = JobArrays(tmp_path / "jobs")
    assert jobs.states([JobArray("t-never", "999999", 2)]) == {
        ("t-never", 0): JobState(GONE),
        ("t-never", 1): JobState(GONE),
    }
    # Without accounting, a job's own output may tell.
    line = "slurmstepd: error: *** JOB 7 ON cpu1 CANCELLED AT 2026-11-18T12:43:35"
    (jobs.folder / "999999_0_0_log.err").write_text(f"{line} DUE TO JOB REQUEUE ***\n")
    (jobs.folder / "999999_1_0_log.err").write_text(f"{line} DUE TO TIME LIMIT ***\n{line} ***\n")
    assert [state.word for state in jobs.states([JobArray("t-never", "999999", 2)]).values()] == [GONE, "CANCELLED"]
    assert jobs.find("t-never") is None
    held = slurm.submit("--hold", "-J", "t-orphan")
    assert jobs.find("t-orphan") == held


def test_slurms_refusal_of_a_submission_is_one_sentence(slurm: Cluster, tmp_path: Path) -> None:
    jobs = JobArrays(tmp_path / "jobs")
    with pytest.raises(SubmissionError, match=r"partition nosuch \(Batch job submission failed: Invalid partition"):
        jobs.submit("t-refused", [Call("tests.cluster.jobs:fail", ("x",))], Allocation("nosuch"))


def test_a_call_of_another_version_is_refused_with_both(slurm: Cluster, tmp_path: Path) -> None:
    jobs = JobArrays(tmp_path / "jobs")
    array = jobs.submit("t-version", [Call("tests.cluster.jobs:square", (str(tmp_path / "out"), 1), "9.9")], CPU)
    assert ended(jobs, array)[0].word == "FAILED"
    assert "was submitted by crossperf 9.9 and this node has 0.1.0" in jobs.last_words(array, 0)
    assert not (tmp_path / "out").exists()


def test_a_folder_that_others_may_enter_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir(0o755)
    with pytest.raises(CrossperfError, match=r"open to others.*chmod 700"):
        private(folder)
    assert private(tmp_path / "new").stat().st_mode & 0o777 == 0o700
