from __future__ import annotations

import os
import re
import resource
import signal
import socket
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crossperf import campaign
from crossperf.campaign import element, log
from crossperf.campaign.driving import CampaignDriver
from crossperf.campaign.ledger import SiteCampaign, alone, driver_of
from crossperf.campaign.merging import Merger
from crossperf.campaign.planning import SitePlan
from crossperf.campaign.rounds import Turn
from crossperf.campaign.tasks import BY_LIMIT, BY_REQUEST, ArrayTasks, ElementTask, at_hand, cut_offs, element_folder
from crossperf.campaign.visiting import Visitor
from crossperf.cluster import read as read_site
from crossperf.collect.guard import Guard
from crossperf.errors import CollectError
from tests.campaign import stand_in
from tests.campaign.site_stand_in import prepare


@contextmanager
def full_disk() -> Iterator[None]:
    """No file may grow, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def tasks(folder: Path, inputs: list[str], **more: Any) -> campaign.Spec:
    """Write the tasks of an array of one element that takes all inputs, and return its campaign."""
    spec_file, _ = prepare(folder, inputs, platforms=["small"])
    spec = campaign.read(spec_file)
    own = replace(spec, works=())
    ArrayTasks(own, "small", 3, (ElementTask(spec.works, "round", **more),)).write(folder, "array")
    return spec


def lines(folder: Path) -> list[dict[str, Any]]:
    return list(log.lines(element_folder(folder, "array", 0) / log.TIMES))


def test_tasks_are_the_same_when_they_are_read_again(tmp_path: Path) -> None:
    spec_file = stand_in.prepare(tmp_path, "[quick]\nn = [1, 2]\n")
    spec = campaign.read(spec_file)
    before = ArrayTasks(spec, "one", 2, (ElementTask(spec.works, "r", "", (1,), {"quick n=1": 2}),))
    before.write(tmp_path, "array")
    assert ArrayTasks.read(tmp_path, "array") == before
    assert before.mode.program == tmp_path / "program"


def test_an_element_measures_what_is_left_and_says_when_it_has_ended(tmp_path: Path) -> None:
    tasks(tmp_path, ["a 0 0", "b 0 0", "c 0 5"])
    element.run(str(tmp_path), "array", 0)
    first = lines(tmp_path)
    assert [line["input"] for line in first if "workload" in line] == ["a 0 0", "b 0 0", "c 0 5"]
    assert first[0]["element"] == "array-0"
    assert first[-1] == {"format": 1, "ended": "array-0"}
    element.run(str(tmp_path), "array", 0)
    assert len([line for line in lines(tmp_path) if "workload" in line]) == 3


def test_an_input_that_was_cut_off_comes_last_and_fails_when_it_was_so_too_often(tmp_path: Path) -> None:
    tasks(tmp_path, ["a 0 0", "b 0 0", "c 0 0"], cut_off={"script a 0 0": 2, "script b 0 0": 3})
    element.run(str(tmp_path), "array", 0)
    visits = [line for line in lines(tmp_path) if "workload" in line]
    assert [line["input"] for line in visits] == ["b 0 0", "c 0 0", "a 0 0"]
    assert visits[0]["error"].startswith("cut off 3 times: longer than its job's time limit")


def test_what_is_held_against_an_input_and_what_is_not() -> None:
    begun = [{"element": "e"}, {"begun": "a"}]
    assert cut_offs([*begun, {"stopped": BY_LIMIT}], dead=True) == Counter(a=1)
    assert cut_offs([*begun, {"stopped": BY_REQUEST}], dead=True) == Counter()
    assert cut_offs([*begun, {"workload": "a"}], dead=True) == Counter()
    assert cut_offs([*begun, *begun, *begun], dead=False) == Counter(a=2)
    assert cut_offs([*begun, *begun], dead=True) == Counter(a=2)
    assert at_hand(begun) == "a"
    assert at_hand([*begun, {"workload": "a"}]) is None


def test_an_interrupt_is_noted_and_the_input_on_its_way_is_not_logged_as_failed(tmp_path: Path) -> None:
    tasks(tmp_path, ["a 30 0"])

    def end(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, end)
    try:
        signal.setitimer(signal.ITIMER_REAL, 1.0)
        with pytest.raises(KeyboardInterrupt):
            element.run(str(tmp_path), "array", 0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert lines(tmp_path)[-1]["stopped"] == BY_REQUEST
    assert not [line for line in lines(tmp_path) if "workload" in line]


def test_a_log_that_cannot_be_written_comes_back_through_the_jobs_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tasks(tmp_path, ["a 0 0"])
    with full_disk():
        element.run(str(tmp_path), "array", 0)
    printed = capsys.readouterr()
    assert "cannot be written" in printed.err
    output, out = tmp_path / "job.out", tmp_path / "out"
    output.write_text("other text\n" + printed.out)
    out.mkdir()
    merger = Merger(out, tmp_path)
    assert merger.merge("array", 0, output) == 2
    assert [visit.input for visit in log.timed(out)] == ["a 0 0"]
    assert Merger(out, tmp_path).merge("array", 0, output) == 0  # a driver that starts again adds nothing twice


def test_a_full_disk_on_a_node_is_the_reason_of_each_input(tmp_path: Path) -> None:
    spec = campaign.read(stand_in.prepare(tmp_path, "[quick]\nn = [1, 2]\n"))
    kept: list[dict[str, Any]] = []
    with Guard() as guard, full_disk():
        Visitor(spec, guard, kept.append).take("round", Turn(spec.mode("one"), spec.works))
    assert [line["input"] for line in kept] == ["n=1", "n=2"]
    # Python's own words for it depend on whether it has looked for a place for such files before.
    assert all(re.search("File too large on |temporary directory found in .* on ", line["error"]) for line in kept)


def test_each_visit_is_merged_once_whoever_made_it_and_torn_lines_wait(tmp_path: Path) -> None:
    out, jobs = tmp_path / "out", tmp_path / "jobs"
    out.mkdir()
    visit = {"platform": "p", "round": "r", "workload": "w", "input": "i", "seconds": [1.0], "host": "n1"}
    for array in ("first", "second"):  # a node that was given up, and came back
        path = element_folder(jobs, array, 0) / log.TIMES
        path.parent.mkdir(parents=True)
        log.add(path, visit | {"host": array, "started": array})
    merger = Merger(out, jobs)
    assert [merger.merge(array, 0) for array in ("first", "second")] == [1, 0]
    with path.open("ab") as file:
        file.write(b'{"format": 1, "platform": "p", "round": "r", "workload": "w", "input": "j"')
    assert merger.merge("second", 0) == 0
    with path.open("ab") as file:
        file.write(b', "seconds": [2.0]}\n')
    assert merger.merge("second", 0) == 1
    assert [own.input for own in log.timed(out)] == ["i", "j"]


def test_a_failure_gives_way_to_a_later_visit_and_a_visit_never_to_a_failure(tmp_path: Path) -> None:
    merger = Merger(tmp_path, tmp_path)
    about = {"platform": "p", "round": "r", "workload": "w", "input": "i"}
    merger.fail(about | {"error": "first"})
    merger.fail(about | {"error": "second"})
    assert [own.error for own in log.timed(tmp_path)] == ["second"]
    log.add(tmp_path / log.TIMES, about | {"seconds": [1.0]})
    merger = Merger(tmp_path, tmp_path)
    merger.fail(about | {"error": "third"})
    assert [own.error for own in log.timed(tmp_path)] == [None]


def test_every_visit_is_in_one_task_in_another_order_each_round(tmp_path: Path) -> None:
    spec_file, site_file = prepare(tmp_path, [f"i{n} 0 0" for n in range(40)], batch=7, visits=2)
    spec = campaign.read(spec_file)
    plan = SitePlan(spec, list(spec.modes.values()), (), read_site(site_file), tmp_path)
    made = {name: list(plan.tasks(name, {}, {}, retry=False)) for name in spec.modes}
    for own in made.values():
        assert [len(task.works) for task in own] == 2 * [7, 7, 7, 7, 7, 5]
        assert Counter((task.round, work.input) for task in own for work in task.works).most_common(1)[0][1] == 1
        # Programs are counted in the first round alone.
        assert sum(len(task.to_count) for task in own[:6]) == 40
        assert sum(len(task.to_count) for task in own[6:]) == 0
    orders = {tuple(work.input for task in own[start : start + 6] for work in task.works)
              for own in made.values() for start in (0, 6)}  # fmt: skip
    assert len(orders) == 4
    # What somebody is at is not planned a second time.
    claimed = {("small", task.round, work.workload, work.input): False for task in made["small"] for work in task.works}
    assert not list(plan.tasks("small", claimed, {}, retry=False))


def test_a_clock_that_differs_is_named_once(tmp_path: Path) -> None:
    said: list[str] = []
    spec_file, site_file = prepare(tmp_path, ["a 0 0"], platforms=["small"])
    settings = SiteCampaign("id", tmp_path / "jobs", spec_file, site_file, ("small",))
    driver = CampaignDriver(campaign.read(spec_file), read_site(site_file), settings, tmp_path, said.append)
    driver._looked = time.time() - 5
    for host, off_s in (("right", 0), ("ahead", 3600), ("behind", -600), ("ahead", 3600)):
        driver._check_clocks([{"element": "e", "host": host, "clock": time.time() + off_s}])
    why = "this machine's; durations are right all the same, times of day in the table are the node's"
    assert said == [
        f"warning: the clock of ahead is 60 min 0 s ahead of {why}",
        f"warning: the clock of behind is 9 min 55 s behind {why}",
    ]


def test_a_folder_has_one_driver_at_a_time(tmp_path: Path) -> None:
    assert driver_of(tmp_path) is None
    with alone(tmp_path):
        assert driver_of(tmp_path) == f"process {os.getpid()} on {socket.gethostname()}"
        with pytest.raises(CollectError, match="drives this campaign already"), alone(tmp_path):
            pass
    assert driver_of(tmp_path) is None
    with alone(tmp_path):
        pass
