"""Commands killed, interrupted, or without room or rights, at their changes of files: the old state or the new, whole.

By default some changes of each command are tried; with ``CROSSPERF_FAULTS=all`` each of them.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest

from crossperf import dataset, model, platforms
from crossperf.campaign import log
from crossperf.datasets import toy
from crossperf.evaluation.result import Evaluation
from crossperf.evaluation.run import evaluate
from crossperf.model import store
from crossperf.records import Run
from crossperf.report import write as write_report
from crossperf.runs import append, read_jsonl, read_runs
from crossperf.runs.table import from_frame
from tests.campaign import stand_in
from tests.hostile.harness import ACTIONS, Outcome, Server, serving

pytestmark = pytest.mark.slow
ALL = os.environ.get("CROSSPERF_FAULTS") == "all"
OLD = [Run("old", "1", "p", 2.0, repeat=0), Run("old", "1", "p", 2.1, repeat=1)]
PERF = Path(__file__).parents[1] / "data" / "perf" / "software.csv"
ERRORS = [name for name, number in ACTIONS.items() if number < 0]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("server")) as running:
        yield running


def small_table() -> pl.DataFrame:
    return toy.make_table(apps=4, inputs=2, platforms=4, repeats=2, noise=0.01, seed=3).frame


def prepare_lines(folder: Path) -> None:
    append(folder / "runs.jsonl", OLD)


def prepare_model(folder: Path) -> None:
    frame = small_table()
    new = sorted(frame["platform"].unique())[-1]
    known = frame.filter(pl.col("platform") != new)
    from_frame(known).write(folder / "runs.jsonl")
    from_frame(frame.filter(pl.col("platform") == new)).write(folder / "new.jsonl")
    trained = model.train(dataset.build(known), "median")
    trained.save(folder / "model")
    trained.save(folder / "base")


def prepare_evaluation(folder: Path) -> Evaluation:
    from_frame(small_table()).write(folder / "runs.jsonl")
    evaluation = evaluate(dataset.build(small_table()), ["median"], n_folds=2)
    evaluation.write(folder / "evaluation.json")
    return evaluation


def prepare_report(folder: Path) -> None:
    evaluation = prepare_evaluation(folder)
    write_report(evaluation, folder / "report", command="the old one")


def prepare_registry(folder: Path) -> None:
    platforms.add(folder / "platforms.json", platforms.Platform("old"))


def prepare_program(folder: Path) -> None:
    """A program that notes when it has ended, in a file beside the folder, and lines that were there before."""
    prepare_lines(folder)
    program = folder / "program"
    program.write_text(f"#!/bin/sh\necho x >> {folder.parent / 'ended'}\n")
    program.chmod(0o755)


def prepare_campaign(folder: Path) -> None:
    stand_in.prepare(folder, "[quick]\nn = [1, 2]\n")


def check_lines(folder: Path, outcome: Outcome) -> None:
    runs = read_jsonl(folder / "runs.jsonl")
    assert [(run.app, run.runtime_s) for run in runs[:2]] == [("old", 2.0), ("old", 2.1)]
    assert len(runs) in (2, 3)
    if outcome.status == 0:
        assert len(runs) == 3


def check_model(folder: Path, outcome: Outcome) -> None:
    names = {store.load(folder / "model").name, store.load(folder / "base").name}
    assert names in ({"median"}, {"median", "ridge"})
    if outcome.status == 0:
        assert store.load(folder / "model").name == "ridge"


def check_new_model(folder: Path, outcome: Outcome) -> None:
    assert store.load(folder / "base").name == "median"
    if (folder / "fresh").exists():
        assert len(store.load(folder / "fresh").platforms) == 4
    else:
        assert outcome.status != 0


def check_report(folder: Path, outcome: Outcome) -> None:
    page = (folder / "report" / "index.html").read_text()
    assert page.rstrip().endswith("</html>")
    assert {path.suffix for path in (folder / "report" / "figures").iterdir()} == {".svg", ".png"}
    assert all(path.stat().st_size for path in (folder / "report" / "figures").iterdir())
    if outcome.status == 0:
        assert "the old one" not in page


def check_evaluation(folder: Path, outcome: Outcome) -> None:
    facts = json.loads((folder / "evaluation.json").read_text())
    assert set(facts["table"]) >= {"path", "fingerprint"}
    if outcome.status == 0:
        assert facts["table"]["path"] == "runs.jsonl"


def check_registry(folder: Path, outcome: Outcome) -> None:
    names = [entry.name for entry in platforms.read(folder / "platforms.json")]
    assert names in (["old"], ["old", "new"])
    if outcome.status == 0:
        assert names == ["old", "new"]


def check_profile(folder: Path, outcome: Outcome) -> None:
    """Every execution that ended is kept, but for one that was being written at that very moment."""
    ended = folder.parent / "ended"
    executions = len(ended.read_text().splitlines()) if ended.exists() else 0
    until = time.monotonic() + 20 * (outcome.status < 0)
    while list(folder.glob("*.unfinished-*")) and time.monotonic() < until:
        time.sleep(0.02)  # the guard adds them, once it has seen that its parent is gone
    kept = read_jsonl(folder / "runs.jsonl")[2:]
    left = [run for path in folder.glob("*.unfinished-*") for run in read_jsonl(path)]
    if rescue := re.search(r"the runs are kept in (\S+\.jsonl)", outcome.stderr):
        left += read_jsonl(rescue[1])
        Path(rescue[1]).unlink()
    assert len({run.run_id for run in (*kept, *left)}) >= executions - 1
    assert len({run.run_id for run in kept}) == len(kept)
    assert [run.repeat for run in kept] == list(range(len(kept)))
    if outcome.status == 0:
        assert len(kept) == executions == 2


def check_campaign(folder: Path, outcome: Outcome) -> None:
    """What was visited stays visited: it can be gone on with, and each input is in each round once."""
    out = folder / "out"
    if (out / "runs.jsonl").exists():
        read_jsonl(out / "runs.jsonl")
    rounds = [(visit.round, visit.platform, visit.work) for visit in log.timed(out)] if out.exists() else []
    assert len(set(rounds)) == len(rounds)


def check_table(folder: Path, outcome: Outcome) -> None:
    if (folder / "toy.parquet").exists():
        assert len(read_runs(folder / "toy.parquet")) == 12 * 8 * 4 * 3
    else:
        assert outcome.status != 0


@dataclass(frozen=True)
class Scenario:
    """A command, what it starts from, and what must hold afterwards, however it ended."""

    arguments: tuple[str, ...]
    prepare: Callable[[Path], object]
    check: Callable[[Path, Outcome], None]
    points: int = 5
    actions: tuple[str, ...] = tuple(ACTIONS)


NAMES = ("--app", "ls", "--input", "root", "--platform", "vm")
SCENARIOS = {
    "import": Scenario(("import", "perf", str(PERF), *NAMES), prepare_lines, check_lines),
    "train over a model": Scenario(
        ("train", "runs.jsonl", "-o", "model", "--model", "ridge", "--overwrite"), prepare_model, check_model, 8
    ),
    "adapt": Scenario(("adapt", "base", "new.jsonl", "-o", "fresh"), prepare_model, check_new_model, 4),
    "evaluate": Scenario(
        ("evaluate", "runs.jsonl", "--models", "median", "--folds", "2", "--json", "evaluation.json"),
        prepare_evaluation,
        check_evaluation,
        3,
    ),
    "report": Scenario(
        ("report", "evaluation.json", "-o", "report", "--overwrite"),
        prepare_report,
        check_report,
        1,
        ("SIGKILL", "ENOSPC"),
    ),
    "toy": Scenario(("toy", "-o", "toy.parquet"), lambda folder: None, check_table, 4),
    "platforms add": Scenario(
        ("platforms", "--file", "platforms.json", "add", "new"), prepare_registry, check_registry
    ),
    "profile": Scenario(
        ("profile", "--backend", "os", "--repeats", "2", "--file", "registry.json", "--", "./program"),
        prepare_program,
        check_profile,
        10,
    ),
    "campaign": Scenario(
        ("campaign", "spec.toml", "-o", "out", "--platform", "one"), prepare_campaign, check_campaign, 3
    ),
}


def chosen(changes: int, points: int) -> list[int]:
    """Return which changes to try: all, or the first ones and the last, where things are put in place."""
    if ALL or changes <= points:
        return list(range(1, changes + 1))
    last = range(changes - points + 1 + points // 3, changes + 1)
    return sorted({1, *range(2, changes, max(1, changes // max(1, points // 3))), *last})[-points - 1 :]


def leftovers(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.suffix in (".part", ".old")]


@pytest.fixture(scope="module", params=SCENARIOS)
def begun(
    request: pytest.FixtureRequest, server: Server, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Scenario, Path, int]:
    """A scenario, the folder that it starts from, and how many changes its command makes."""
    scenario = SCENARIOS[request.param]
    start = tmp_path_factory.mktemp("start") / "start"
    start.mkdir()
    scenario.prepare(start)
    outcome, folder = attempt(server, scenario, start, 0, "SIGKILL")
    assert outcome.status == 0, outcome.stderr
    scenario.check(folder, outcome)
    assert outcome.changes
    return scenario, start, outcome.changes


def attempt(server: Server, scenario: Scenario, start: Path, at: int, action: str) -> tuple[Outcome, Path]:
    folder = start.parent / "at work"
    shutil.rmtree(folder, ignore_errors=True)
    (start.parent / "ended").unlink(missing_ok=True)
    shutil.copytree(start, folder)
    return server.run(scenario.arguments, folder, at, action), folder


@pytest.mark.parametrize("action", ACTIONS)
def test_whatever_happens_at_a_change_the_old_state_or_the_new_is_there_whole(
    server: Server, begun: tuple[Scenario, Path, int], action: str
) -> None:
    scenario, start, changes = begun
    if not ALL and action not in scenario.actions:
        pytest.skip("tried with CROSSPERF_FAULTS=all")
    for at in chosen(changes, scenario.points):
        outcome, folder = attempt(server, scenario, start, at, action)
        place = f"{action} at change {at} of {changes}: {outcome}"
        assert "Traceback" not in outcome.stderr, place
        try:
            scenario.check(folder, outcome)
        except Exception as error:
            raise AssertionError(place) from error
        if action == "SIGKILL":
            assert outcome.status in (-9, 0), place
        elif action in ERRORS:
            assert outcome.status in (0, 1), place
            assert outcome.status == 0 or outcome.stderr.splitlines()[-1].startswith("error: "), place
        else:
            assert outcome.status in (0, 128 + ACTIONS[action], 130), place
        if action in ("SIGTERM", "SIGINT", "ENOSPC"):
            assert leftovers(folder) == [], place


def test_a_full_disk_loses_no_run_and_the_sentence_names_where_they_are(server: Server, tmp_path: Path) -> None:
    start = tmp_path / "start"
    start.mkdir()
    prepare_program(start)
    scenario = SCENARIOS["profile"]
    changes = attempt(server, scenario, start, 0, "ENOSPC")[0].changes or 0
    rescued = 0
    for at in range(changes // 2, changes + 1):
        outcome, folder = attempt(server, scenario, start, at, "ENOSPC")
        if match := re.search(r"the runs are kept in (\S+\.jsonl)\. .* cat (\S+) >> runs\.jsonl", outcome.stderr):
            assert "error: runs.jsonl: cannot be written (No space left on device)" in outcome.stderr
            assert match[1] == match[2]
            assert len(read_jsonl(match[1])) == 2
            assert len(read_jsonl(folder / "runs.jsonl")) == len(OLD)
            Path(match[1]).unlink()
            rescued += 1
    assert rescued


def test_a_campaign_that_was_killed_at_any_change_goes_on_and_ends_complete(server: Server, tmp_path: Path) -> None:
    start = tmp_path / "start"
    start.mkdir()
    prepare_campaign(start)
    scenario = SCENARIOS["campaign"]
    changes = attempt(server, scenario, start, 0, "SIGKILL")[0].changes or 0
    for at in chosen(changes, 6):
        _, folder = attempt(server, scenario, start, at, "SIGKILL")
        resumed = server.run((*scenario.arguments, "--resume"), folder)
        assert resumed.status == 0, resumed.stderr
        runs = read_jsonl(folder / "out" / "runs.jsonl")
        assert sorted((run.app, run.input, run.repeat) for run in runs) == [
            ("quick", f"n={n}", repeat) for n in (1, 2) for repeat in range(3)
        ]
