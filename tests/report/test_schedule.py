"""The figure of simulations: what is drawn is what became of the jobs."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.collections import PatchCollection

from crossperf.errors import CrossperfError, MissingDependencyError
from crossperf.report import schedule
from crossperf.report.figures import Drawn, jobs
from crossperf.report.figures.colours import FAINT, GROUP_COLOURS, looks_of
from crossperf.schedule.jobs import Jobs
from crossperf.schedule.outcome import Outcome
from crossperf.schedule.simulate import simulate
from tests.schedule.worlds import TWO, random_jobs, times

TRUTH = times(["slow", "fast"], [1.0, 0.5], [1.0, 2.0], apps=["lu", "fft"])
APPS = ["lu", "fft"]


def drawn_apart(count: int) -> Jobs:
    """Return jobs that each draw a workload of their own: nothing is known of their users and programs."""
    unknown = np.full(count, -1)
    return replace(random_jobs(6, count, 4, load=1.5), user=unknown, executable=unknown)


def outcome(count: int, policy: str = "turnaround") -> Outcome:
    return simulate(drawn_apart(count), TWO, TRUTH, TRUTH, policy)


def bars(drawn: Drawn, panel: int = 0) -> list[PatchCollection]:
    return [part for part in drawn.figure.axes[panel].collections if isinstance(part, PatchCollection)]


def extents(collection: PatchCollection) -> np.ndarray:
    """Return left, right, top and bottom of each bar."""
    corners = np.array([path.get_extents().get_points() for path in collection.get_paths()])
    return np.concatenate([corners[:, :, 0], corners[:, :, 1]], axis=1)


def test_a_few_jobs_are_drawn_one_by_one_on_their_nodes() -> None:
    few = outcome(60)
    drawn = schedule.draw([few], APPS)
    assert drawn.title == "Where did every job run?"
    for c, collection in enumerate(sorted(bars(drawn), key=lambda part: extents(part)[:, 2].min(), reverse=True)):
        left, right, top, bottom = extents(collection).T
        # A band stands for all nodes of its cluster.
        node_s = ((right - left) * (bottom - top)).sum() * 3600 / jobs._BAND * few.machines.nodes[c]
        here = few.cluster == c
        assert node_s == pytest.approx((few.jobs.nodes * few.run_s)[here].sum())


def test_there_is_one_panel_for_each_policy_and_all_share_the_hours() -> None:
    two = [outcome(60, "random"), outcome(60, "turnaround")]
    drawn = schedule.draw(two)
    titles = [axes.get_title(loc="left") for axes in drawn.figure.axes]
    assert [title.split(" with ")[0] for title in titles] == ["random", "turnaround"]
    assert all("turnaround " in title for title in titles)
    first, second = (axes.get_xlim() for axes in drawn.figure.axes)
    assert first == second
    assert first[1] == pytest.approx(max(own.makespan_s for own in two) / 3600)


def test_colours_tell_the_application_or_the_cluster_and_a_legend_names_them() -> None:
    few = outcome(60)
    for apps, named, colours in ((APPS, sorted(APPS), GROUP_COLOURS), (None, ["fast", "slow"], None)):
        drawn = schedule.draw([few], apps)
        legend = drawn.figure.axes[0].get_legend()
        assert [text.get_text() for text in legend.get_texts()] == named
        wanted = set(colours[:2]) if colours else {look.colour for look in looks_of(["fast", "slow"]).values()}
        used = {
            "#" + "".join(f"{round(255 * part):02x}" for part in colour[:3])
            for collection in bars(drawn)
            for colour in collection.get_facecolors()
        }
        assert used == wanted


def test_applications_beyond_the_colours_stand_back_together() -> None:
    apps = [f"app{n}" for n in range(12)]
    truth = times(["slow", "fast"], *[[1.0, 0.5]] * 12, apps=apps)
    many = simulate(drawn_apart(200), TWO, truth, truth, "turnaround")
    legend = schedule.draw([many], apps).figure.axes[0].get_legend()
    labels = [text.get_text() for text in legend.get_texts()]
    assert labels[-1] == "5 others"
    assert legend.legend_handles[-1].get_facecolor()[:3] == pytest.approx(
        [int(FAINT[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    )


def test_many_jobs_are_drawn_as_use_and_queues() -> None:
    many = outcome(jobs.FEW + 1)
    drawn = schedule.draw([many], APPS)
    (axes,) = drawn.figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["fast (4)", "slow (8)"]
    top = float(axes.get_legend().get_texts()[-1].get_text().split("top: ")[1].rstrip(")").replace(",", ""))
    waited = 0.0
    for band, line in enumerate(axes.lines):
        waiting = (band + jobs._BAND / 2 - np.asarray(line.get_ydata())) / jobs._BAND * top
        waited += np.trapezoid(waiting, line.get_xdata()) * 3600
    assert waited == pytest.approx(many.wait_s.sum(), rel=0.05)


def test_tooltips_tell_a_jobs_wait_and_nodes() -> None:
    few = outcome(20)
    texts = [tooltip.text for tooltip in schedule.draw([few], APPS).tooltips]
    assert len(texts) == 20
    assert any(text.startswith("job 1, ") and "after a wait of" in text for text in texts)


@pytest.mark.parametrize(("name", "magic"), [("f.png", b"\x89PNG"), ("f.svg", b"<?xml"), ("f.pdf", b"%PDF")])
def test_a_figure_is_written_by_the_ending_of_its_name(name: str, magic: bytes, tmp_path: Path) -> None:
    schedule.draw([outcome(20)]).save(tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(magic)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_another_ending_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CrossperfError, match=r"expected \.svg, \.png, \.pdf"):
        schedule.draw([outcome(5)]).save(tmp_path / "f.gif")
    assert not list(tmp_path.iterdir())


def test_without_matplotlib_the_pip_command_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "crossperf.report.figures.jobs", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'crossperf\[report\]'"):
        schedule.draw([outcome(5)])
