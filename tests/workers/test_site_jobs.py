"""Studies by jobs of a real Slurm: answers, faults of jobs, a driver that is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from crossperf.errors import CrossperfError, DatasetError, WorkerError
from crossperf.workers import Kept
from crossperf.workers.site_jobs import site
from tests.cluster.conftest import nodes, slurm  # noqa: F401, fixtures
from tests.schedule.slurm.cluster import Cluster
from tests.workers.test_processes import until
from tests.workers.work import DOUBLE, begun, questions

pytest.importorskip("submitit")
pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
SITE = '[workers]\npartition = "cpu"\ntime = "5"\ncpus = 1\n'


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs import the functions of these tests, too."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def site_file(folder: Path, text: str = SITE) -> Path:
    path = folder / "site.toml"
    path.write_text(f"poll_s = 0.3\n{text}")
    return path


def test_a_study_is_one_array_and_a_cancelled_element_is_begun_again(slurm: Cluster, tmp_path: Path) -> None:  # noqa: F811
    """An element is cancelled while it runs: its piece is sent again, and no other."""
    log = tmp_path / "log"
    asked = questions(log, 4, n1={"sleep_s": 4.0})
    cancelled = False
    with Kept(tmp_path / "kept") as kept, site(site_file(tmp_path), tmp_path / "jobs") as workers:
        for n, answer in DOUBLE.answers(asked, workers, kept):
            assert answer.facts["number"] == 2 * n
            if not cancelled:
                until(lambda: 1 in begun(log), "begin of the slow piece")
                (array,) = workers._arrays
                slurm.output("scancel", array.array.id(1))
                cancelled = True
        assert len(kept) == 4
    assert sorted(begun(log)) == [0, 1, 1, 2, 3]
    assert not (tmp_path / "jobs").exists()  # nothing is left of jobs that are all done


def test_an_error_of_a_piece_is_raised_as_it_was_and_the_rest_is_cancelled(slurm: Cluster, tmp_path: Path) -> None:  # noqa: F811
    asked = questions(tmp_path / "log", 3, n0={"fails": True}, n2={"sleep_s": 60})
    with (
        pytest.raises(DatasetError, match=r"^runs.csv: found nothing, expected something.$"),
        site(site_file(tmp_path), tmp_path / "jobs") as workers,
    ):
        list(DOUBLE.answers(asked, workers))
    until(lambda: not slurm.output("squeue", "--noheader").strip(), "end of all jobs")


PROGRAM = """
import sys
from pathlib import Path
from crossperf.workers import Kept
from crossperf.workers.site_jobs import site
from tests.workers.work import DOUBLE, questions
folder = Path(sys.argv[1])
asked = questions(folder / "log", 4, n2={"sleep_s": 3.0}, n3={"sleep_s": 3.0})
with Kept(folder / "kept") as kept, site(folder / "site.toml", folder / "jobs") as workers:
    print(sorted(answer.facts["number"] for _, answer in DOUBLE.answers(asked, workers, kept)))
"""


def test_a_driver_that_is_killed_finds_its_jobs_and_their_answers_again(slurm: Cluster, tmp_path: Path) -> None:  # noqa: F811
    """Killed with -9 while jobs run, and started again: nothing is submitted twice."""
    site_file(tmp_path)
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    first = subprocess.Popen(command, cwd=ROOT)
    until(lambda: {2, 3} <= set(begun(tmp_path / "log")), "begin of the slow pieces")
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    second = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    assert second.stdout.strip() == "[0, 2, 4, 6]"
    assert sorted(begun(tmp_path / "log")) == [0, 1, 2, 3]


def test_a_piece_that_kills_its_jobs_ends_the_study(slurm: Cluster, tmp_path: Path) -> None:  # noqa: F811
    asked = questions(tmp_path / "log", 2, n1={"dies": "always"})
    with (
        Kept(tmp_path / "kept") as kept,
        pytest.raises(WorkerError, match=r"job \d+(_1)? of a piece ended without its answer \("),
        site(site_file(tmp_path), tmp_path / "jobs") as workers,
    ):
        list(DOUBLE.answers(asked, workers, kept))
    assert 0 in begun(tmp_path / "log")


def test_sites_that_cannot_serve_are_one_sentence_each(slurm: Cluster, tmp_path: Path) -> None:  # noqa: F811
    lacking = site_file(tmp_path, '[platforms.epyc]\npartition = "cpu"\n')
    with pytest.raises(CrossperfError, match=r"no table \[workers\], expected one with the partition"):
        site(lacking, tmp_path / "jobs").__enter__()
    wrong = site_file(tmp_path, '[workers]\npartition = "nowhere"\n')
    with (
        pytest.raises(CrossperfError, match=r"Slurm did not take the array .* for partition nowhere"),
        site(wrong, tmp_path / "jobs") as workers,
    ):
        list(DOUBLE.answers(questions(tmp_path / "log", 1), workers))
