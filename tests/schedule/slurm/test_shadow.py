"""What shadow mode would have saved, with numbers worked out by hand, and from a real Slurm."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crossperf.schedule.slurm import history, setup, shadow
from crossperf.schedule.slurm.history import FinishedJob
from tests.cli.test_cli import Crossperf, assert_one_sentence, crossperf
from tests.collect.real import need
from tests.schedule.slurm.cluster import ACCOUNTING, PROGRAMS, Cluster, until
from tests.schedule.slurm.conftest import SITE, TABLE, speak_to

__all__ = ["crossperf"]


def job(seconds: float, partition: str = "cpu", wait: int = 0, work: str = "a", **more: Any) -> FinishedJob:
    """Return a job that was submitted at noon, waited some minutes, and would have gone to 'big' at half the time."""
    would = "" if partition != "cpu" else " would=big there=0.5,0.4,0.8 here=1,1,1"
    tag = f"crossperf app=lmp input=nodes-1 work={work}{would}"
    facts = {"state": "COMPLETED", "started": f"2026-11-16T12:{wait:02d}:00", "submitted": "2026-11-16T12:00:00"} | more
    return FinishedJob("c", "1", "lmp", "ann", partition, seconds=seconds, nodes=1, **{"tag": tag} | facts)


def test_running_time_is_scaled_by_the_prediction_and_its_range() -> None:
    result = shadow.report([job(100.0), job(300.0)])
    assert (result.noted, result.moved) == (2, {"big": 2})
    assert (result.run_s, result.would_run_s) == (400.0, 200.0)
    assert (result.low_s, result.high_s) == pytest.approx((80.0, 240.0))
    assert result.compared == 0
    assert result.lines[1] == "running: 6.67 min as it was, 3.33 min as predicted; saved 3.33 min (range 80 s to 4 min)"


def test_waits_are_compared_with_those_of_others_there_at_about_the_same_time() -> None:
    others = [job(5.0, "big", wait=minutes, work="b") for minutes in (1, 2, 30)]
    late = job(5.0, "big", wait=59, submitted="2026-11-16T09:00:00", started="2026-11-16T12:00:00")
    result = shadow.report([job(100.0, wait=10), *others, late])
    assert (result.compared, result.wait_s, result.would_wait_s) == (1, 600.0, 120.0)


def test_a_list_waits_for_the_first_of_its_partitions() -> None:
    tag = "crossperf app=lmp input=nodes-1 would=big,cpu there=0.5,0.4,0.8 here=1,1,1"
    others = [job(5.0, "big", wait=30)]
    result = shadow.report([job(100.0, wait=10, tag=tag), *others])
    assert (result.moved, result.wait_s, result.would_wait_s) == ({"big,cpu": 1}, 600.0, 600.0)
    assert "a job with a list counts as if it had run in the first partition of it." in result.doubts


def test_works_that_ran_in_both_places_tell_how_good_the_predictions_were() -> None:
    result = shadow.report([job(100.0), job(100.0, "big"), job(10.0, work="z"), job(70.0, "big", work="y")])
    assert (result.checked, result.typical_factor) == (1, pytest.approx(2.0))
    assert "1 work ran in both: off by a factor of 2.00." in result.doubts[0]


def test_jobs_that_failed_or_were_not_noted_do_not_count() -> None:
    odd = [job(5.0, state="FAILED"), job(5.0, tag=""), job(5.0, tag="crossperf app=x input=y would=big there=nan")]
    result = shadow.report(odd)
    assert (result.noted, result.lines) == (0, ["0 finished jobs noted in shadow mode, 0 would have gone elsewhere"])


def test_a_report_needs_a_source_and_tells_the_same_as_json(crossperf: Crossperf) -> None:
    assert_one_sentence(crossperf("slurm", "report"), "report: expected one of --sacct, --sacct-file FILE.")
    row = job(100.0)
    values = (row.cluster, "7", row.name, row.user, row.partition, row.state, "100", "1", row.started, "", row.tag)
    lines = ["|".join(history.COLUMNS), "|".join((*values, row.submitted))]
    Path("jobs.txt").write_text("\n".join(lines) + "\n")
    done = crossperf("slurm", "report", "--sacct-file", "jobs.txt", "--json", "facts.json")
    assert done.stdout.startswith("1 finished job noted in shadow mode, 1 would have gone elsewhere: big 1\nrunning: ")
    assert "note: times elsewhere are predicted, not measured." in done.stderr
    facts = json.loads(Path("facts.json").read_text())
    assert (facts["noted"], facts["moved"], facts["would_run_s"]) == (1, {"big": 1}, 50.0)


@pytest.fixture(scope="module")
def shadowed() -> Iterator[Cluster]:
    need(*PROGRAMS, *ACCOUNTING)

    def plugin(folder: Path) -> None:
        setup.write(folder, setup.files(folder, SITE, shadow=True))
        TABLE.write(folder / setup.TABLE)

    with Cluster(plugin, accounting=True) as started:
        yield started


@pytest.mark.slow
def test_a_real_slurm_in_shadow_mode_tells_what_it_would_have_saved(
    shadowed: Cluster, crossperf: Crossperf, monkeypatch: pytest.MonkeyPatch
) -> None:
    speak_to(shadowed, monkeypatch)
    jobs = [shadowed.submit("-Jlmp", wrap="sleep 2") for _ in range(2)] + [shadowed.submit("-Jnobody", wrap="sleep 1")]
    shadowed.finish(*jobs)

    def done() -> bool:
        return sum(job.state == "COMPLETED" for job in history.from_sacct().jobs if job.number in jobs) == len(jobs)

    until(done, "sacct to have all jobs")
    result = crossperf("slurm", "report", "--sacct", "--since", "now-1hours")
    assert "2 finished jobs noted in shadow mode, 2 would have gone elsewhere: big 2" in result.stdout
