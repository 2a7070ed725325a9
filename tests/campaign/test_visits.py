"""Each input is visited several times: in rounds of random order, in another process each time."""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from crossperf import campaign
from crossperf.campaign import log, rounds
from tests.campaign.stand_in import asked, prepare, timed, visit

TWELVE = f"[quick]\nn = {list(range(1, 13))}\n"


def spec_of(folder: Path, inputs: str, visits: int = 1, calibration: tuple[campaign.Work, ...] = ()) -> campaign.Spec:
    spec = campaign.read(prepare(folder, inputs))
    return replace(spec, visits=visits, repeats=2, calibration=calibration)


def test_every_input_is_visited_as_often_as_asked_and_by_another_process_each_time(tmp_path: Path) -> None:
    visit(spec_of(tmp_path, "[quick]\nn = [1, 2]\n[late]\nn = [5]\n", visits=4), tmp_path)
    processes = defaultdict(list)
    for text, threads, pid in asked(tmp_path):
        processes[text, threads].append(pid)
    assert len(processes) == 3 * 2
    assert all(len(pids) == len(set(pids)) == 4 for pids in processes.values())


def test_the_order_differs_between_rounds_and_platforms_and_follows_from_the_seed(tmp_path: Path) -> None:
    def orders(name: str, seed: int) -> dict[int, list[list[str]]]:
        """Return the inputs of each of two rounds, by threads of the platform."""
        (folder := tmp_path / name).mkdir()
        visit(replace(spec_of(folder, TWELVE, visits=2), seed=seed), folder)
        texts = {threads: [text for text, known, _ in asked(folder) if known == threads] for threads in (1, 2)}
        return {threads: [of_all[:12], of_all[12:]] for threads, of_all in texts.items()}

    first = orders("first", 0)
    four = [*first[1], *first[2]]
    assert all(sorted(order) == sorted(four[0]) for order in four)
    assert len(set(map(tuple, four))) == 4
    assert orders("again", 0) == first
    assert orders("other", 1) != first


def test_platforms_take_turns_batch_by_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "BATCH", 3)
    visit(spec_of(tmp_path, TWELVE), tmp_path)
    turns = list(dict.fromkeys((pid, threads) for _, threads, pid in asked(tmp_path)))
    assert len(turns) == 2 * 12 / 3
    assert all({threads for _, threads in pair} == {1, 2} for pair in zip(turns[::2], turns[1::2], strict=True))


def test_a_round_that_was_cut_off_is_completed_before_new_ones_begin(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, "[quick]\nn = [1, 2, 3, 4]\n", visits=2)
    visit(spec, tmp_path, "one")
    path = tmp_path / log.TIMES
    first, second = (known.name for known in log.rounds(tmp_path))
    lost = {(first, "n=3"), (second, "n=1"), (second, "n=2")}
    kept = [line for line in log.lines(path) if (line.get("round"), line.get("input")) not in lost]
    path.write_text("".join(json.dumps(line) + "\n" for line in kept))
    (tmp_path / "asked").unlink()
    visit(replace(spec, visits=3), tmp_path, "one")
    again = [text for text, _, _ in asked(tmp_path)]
    assert again[0] == "quick n=3"
    assert sorted(again[1:3]) == ["quick n=1", "quick n=2"]
    assert sorted(again[3:]) == [f"quick n={n}" for n in (1, 2, 3, 4)]
    by_round = defaultdict(list)
    for line in timed(tmp_path, "quick"):
        by_round[line["round"]].append(line["input"])
    assert len(by_round) == 3
    assert all(sorted(map(str, inputs)) == ["n=1", "n=2", "n=3", "n=4"] for inputs in by_round.values())


def test_a_platform_that_had_fewer_rounds_catches_up(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, "[quick]\nn = [1]\n", visits=2)
    visit(spec, tmp_path, "one")
    visit(replace(spec, visits=3), tmp_path)
    assert [known.platforms for known in log.rounds(tmp_path)] == [
        ("one",), ("one",), ("one", "two"), ("two",), ("two",),
    ]  # fmt: skip
    visit(replace(spec, visits=3), tmp_path)
    assert len(asked(tmp_path)) == 3 + 3


def test_inputs_that_a_spec_gained_are_visited_in_every_round(tmp_path: Path) -> None:
    visit(spec_of(tmp_path, "[quick]\nn = [1, 2]\n", visits=3), tmp_path, "one")
    visit(spec_of(tmp_path, "[quick]\nn = [1, 2, 3]\n", visits=3), tmp_path, "one")
    assert len(log.rounds(tmp_path)) == 3
    assert [text for text, _, _ in asked(tmp_path)[6:]] == ["quick n=3"] * 3


def test_runs_are_numbered_over_all_visits_and_name_the_round_they_were_measured_in(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, "[quick]\nn = [1]\n", visits=3)
    visit(spec, tmp_path, "two")
    names = [known.name for known in log.rounds(tmp_path)]
    assert names == sorted(set(names))
    runs = campaign.assemble(spec, tmp_path)
    assert [run.repeat for run in runs] == [0, 1, 2, 3, 4, 5]
    assert [run.measured_in for run in runs] == [name for name in names for _ in range(2)]
    assert [run.runtime_s for run in runs] == [0.005, 0.00505] * 3


def test_moments_of_visits_follow_one_another(tmp_path: Path) -> None:
    visit(spec_of(tmp_path, TWELVE, visits=2), tmp_path, "one")
    moments = [str(line["started"]) for line in timed(tmp_path, "quick")]
    assert all(before <= after for before, after in pairwise(moments))
    assert moments[0][:10] == str(timed(tmp_path, "quick")[0]["round"])[:10]


def test_calibrations_are_timed_at_both_ends_of_a_round_and_kept_with_it(tmp_path: Path) -> None:
    calibration = (campaign.Work("quick", "n=1"), campaign.Work("late", "n=2"))
    heard: list[str] = []
    visit(spec_of(tmp_path, "[last]\nn = [1]\n", 2, calibration), tmp_path, say=heard.append)
    kept = [line for line in log.lines(tmp_path / log.TIMES) if "calibration" in line]
    per_round = defaultdict(list)
    for line in kept:
        per_round[line["round"]].append((line["when"], line["platform"], line["calibration"]))
    assert list(per_round) == [known.name for known in log.rounds(tmp_path)]
    both = [(platform, text) for platform in ("one", "two") for text in ("quick n=1", "late n=2")]
    assert set(map(tuple, per_round.values())) == {
        tuple((when, *each) for when in ("before", "after") for each in both)
    }
    assert kept[0]["seconds"] == [0.01, 0.0101]
    closing = [text for text in heard if text.startswith("round ")]
    moved = "calibrations took 1.00 to 1.00 times as long at its end, quick n=1 on one changed most"
    assert [text.partition(": ")[2] for text in closing] == [f"2 visits on 2 platforms; {moved}"] * 2
    assert {run.app for run in campaign.assemble(spec_of(tmp_path, "[last]\nn = [1]\n"), tmp_path)} == {"last"}


def test_an_input_that_always_fails_is_tried_once_a_start_and_each_failed_visit_is_a_failed_run(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, "[crash]\nn = [1]\n[refuse]\nn = [1]\n[quick]\nn = [1]\n", visits=3)
    visit(spec, tmp_path, "one")
    tried = [text for text, _, _ in asked(tmp_path)]
    assert sorted(tried) == ["crash n=1", "quick n=1", "quick n=1", "quick n=1", "refuse n=1"]
    visit(spec, tmp_path, "one")
    assert sorted(text for text, _, _ in asked(tmp_path)[5:]) == ["crash n=1", "refuse n=1"]
    status = defaultdict(list)
    for run in campaign.assemble(spec, tmp_path):
        status[run.app].append(run.status)
    assert status == {
        "crash": ["the program ended or hung at this input"] * 2, "refuse": ["no such size"] * 2, "quick": ["ok"] * 6,
    }  # fmt: skip


def test_an_input_that_ended_before_is_tried_again_after_a_failure(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, "[quick]\nn = [1]\n")
    visit(spec, tmp_path, "one")
    program = tmp_path / "program"
    works = program.read_text()
    program.write_text(works.replace('name == "refuse"', "True"))
    visit(replace(spec, visits=3), tmp_path, "one")
    program.write_text(works)
    visit(replace(spec, visits=4), tmp_path, "one")
    runs = campaign.assemble(spec, tmp_path)
    assert [run.status for run in runs] == ["ok", "ok", "no such size", "no such size", "ok", "ok"]
    assert [run.repeat for run in runs] == list(range(6))


def test_an_answer_to_another_input_is_not_believed(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, "[other]\nn = [1]\n[quick]\nn = [1, 2]\n")
    visit(spec, tmp_path, "one")
    status = {(run.app, run.input): run.status for run in campaign.assemble(spec, tmp_path)}
    assert status["other", "n=1"] == "the program ended or hung at this input"
    assert status["quick", "n=1"] == status["quick", "n=2"] == "ok"


def test_a_program_that_hangs_is_ended_with_what_it_started(tmp_path: Path) -> None:
    spec = replace(spec_of(tmp_path, "[quick]\nn = [1]\n"), limit_s=0.3)
    (tmp_path / "program").write_text(f"#!/bin/sh\nsleep 60 & echo $! > {tmp_path}/child; wait\n")
    visit(spec, tmp_path, "one")
    assert [run.status for run in campaign.assemble(spec, tmp_path)] == ["the program ended or hung at this input"]
    assert not Path("/proc", (tmp_path / "child").read_text().strip(), "exe").exists()


def test_logs_of_two_machines_that_share_their_first_rounds_can_be_joined(tmp_path: Path) -> None:
    here, away = tmp_path / "here", tmp_path / "away"
    here.mkdir()
    spec = spec_of(here, "[quick]\nn = [1, 2]\n")
    visit(spec, here, "one")
    shutil.copytree(here, away)
    visit(spec, away, "two")
    with (here / log.TIMES).open("a") as joined:
        joined.write((away / log.TIMES).read_text())
    assert [known.platforms for known in log.rounds(here)] == [("one",), ("two",)]
    runs = campaign.assemble(spec, here)
    assert [(run.platform, run.input, run.repeat) for run in runs] == [
        (platform, text, repeat) for platform in ("one", "two") for text in ("n=1", "n=2") for repeat in (0, 1)
    ]


def old_line(attempt: int, number: int, seconds: list[float]) -> dict[str, object]:
    """Return a line as version 0.1 wrote it."""
    facts = {"platform": "one", "attempt": attempt, "host": "h", "started": f"2026-11-0{attempt}T00:00:00+00:00"}
    return {**facts, "workload": "quick", "input": f"n={number}", "seconds": seconds, "passes": 2, "checksum": 1.5}


def test_each_attempt_of_an_older_folder_is_a_visit_of_its_own(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, "[quick]\nn = [1, 2]\n")
    lines = [old_line(1, 1, [0.1, 0.3]), old_line(1, 2, [0.5, 0.5]), old_line(2, 1, [0.2, 0.2])]
    log.add(tmp_path / log.TIMES, {"platform": "one", "calibration": "before", "seconds": [0.1], "host": "h"})
    for line in lines:
        log.add(tmp_path / log.TIMES, line)
    runs = campaign.assemble(spec, tmp_path)
    assert [(run.input, run.repeat, run.runtime_s) for run in runs] == [
        ("n=1", 0, 0.1), ("n=1", 1, 0.3), ("n=1", 2, 0.2), ("n=1", 3, 0.2), ("n=2", 0, 0.5), ("n=2", 1, 0.5),
    ]  # fmt: skip
    assert [run.measured_in for run in runs[:4]] == ["0-attempt-1", "0-attempt-1", "0-attempt-2", "0-attempt-2"]
    visit(spec, tmp_path, "one")
    assert not (tmp_path / "asked").exists()
    visit(replace(spec, visits=2), tmp_path, "one")
    assert sorted(text for text, _, _ in asked(tmp_path)) == ["quick n=1", "quick n=2"]
    named = [run.measured_in for run in campaign.assemble(spec, tmp_path) if run.input == "n=1"]
    assert named == sorted(map(str, named))
    assert len(named) == 6
