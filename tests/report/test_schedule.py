from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from crossperf.errors import CrossperfError, MissingDependencyError
from crossperf.report import schedule
from crossperf.schedule.outcome import Outcome
from crossperf.schedule.simulate import simulate
from tests.schedule.worlds import TWO, random_jobs, times

TRUTH = times(["slow", "fast"], [1.0, 0.5])


def outcome(count: int) -> Outcome:
    return simulate(random_jobs(6, count, 4, load=1.5), TWO, TRUTH, TRUTH, "turnaround")


def test_a_few_jobs_are_drawn_one_by_one_on_their_nodes() -> None:
    few = outcome(60)
    picture = schedule.draw(few).figure
    drawn = sum(bar.get_width() * bar.get_height() * 3600 for ax in picture.axes for bar in ax.patches)
    assert drawn == pytest.approx((few.jobs.nodes * few.run_s).sum())
    assert "Where did every job run?" in picture.get_suptitle()


def test_many_jobs_are_drawn_as_use_and_queues() -> None:
    many = outcome(schedule.FEW + 1)
    picture = schedule.draw(many).figure
    left = [ax for ax in picture.axes if ax.get_title(loc="left")]
    assert [ax.get_title(loc="left").split(",")[0] for ax in left] == ["slow", "fast"]
    lines = [line for ax in picture.axes for line in ax.lines]
    assert len(lines) == 2
    waiting = sum(np.trapezoid(line.get_ydata(), line.get_xdata()) * 3600 for line in lines)
    assert waiting == pytest.approx(many.wait_s.sum(), rel=0.05)


@pytest.mark.parametrize(("name", "magic"), [("f.png", b"\x89PNG"), ("f.svg", b"<?xml"), ("f.pdf", b"%PDF")])
def test_a_figure_is_written_by_the_ending_of_its_name(name: str, magic: bytes, tmp_path: Path) -> None:
    schedule.draw(outcome(20)).save(tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(magic)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_another_ending_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CrossperfError, match=r"expected \.svg, \.png, \.pdf"):
        schedule.draw(outcome(5)).save(tmp_path / "f.gif")
    assert not list(tmp_path.iterdir())


def test_without_matplotlib_the_pip_command_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'crossperf\[report\]'"):
        schedule.draw(outcome(5))
