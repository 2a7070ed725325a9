"""Adding a platform from the command line: what it says, what it writes, and one sentence for what goes wrong."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from crossperf import dataset, model
from crossperf.datasets import toy
from crossperf.model.store import load
from crossperf.prediction.answer import predict
from crossperf.runs.table import from_frame
from tests.cli.test_cli import Crossperf, Done, assert_one_sentence, contents, crossperf

__all__ = ["crossperf"]  # the fixture that runs the command line

TABLE = toy.make_table(apps=8, inputs=3, platforms=6, repeats=2, noise=0.01, seed=3).frame
PLATFORMS = sorted(TABLE["platform"].unique())
NEW, OTHER = PLATFORMS[-1], PLATFORMS[2]
KNOWN = [name for name in PLATFORMS if name not in (NEW, OTHER)]
SHOTS = ["app0", "app2", "app5"]


def write(rows: pl.DataFrame, path: Path) -> Path:
    from_frame(rows, name=str(path)).write(path)
    return path


@pytest.fixture
def trained(tmp_path: Path) -> Path:
    """A model of the known platforms, trained on all but the last application."""
    data = dataset.build(TABLE.filter(pl.col("platform").is_in(KNOWN) & (pl.col("app") != "app7")))
    model.train(data, "ridge").save(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def new_runs(tmp_path: Path) -> Path:
    return write(TABLE.filter((pl.col("platform") == NEW) & pl.col("app").is_in(SHOTS)), tmp_path / "new.csv")


def test_a_platform_is_added_and_predicted_beside_the_others_that_stay_as_they_were(
    crossperf: Crossperf, trained: Path, new_runs: Path, tmp_path: Path
) -> None:
    done = crossperf("adapt", trained, new_runs, "-o", "grown", "--json", "adapted.json")
    assert done.status == 0, done.stderr
    kind = TABLE.filter(pl.col("platform") == NEW)["platform_class"][0]
    assert f"added {NEW} ({kind}) to 4 platforms from 9 workloads" in done.stdout
    assert "wrote grown" in done.stderr
    facts = json.loads(Path("adapted.json").read_text())
    assert facts["platform"] == NEW
    assert len(facts["workloads"]) == 9
    assert facts["left_out_factor"] >= 1.0
    runs = TABLE.filter((pl.col("app") == "app7") & pl.col("platform").is_in(KNOWN))
    before, after = predict(load(trained), runs), predict(load(tmp_path / "grown"), runs)
    for old, new in zip(before.predictions, after.predictions, strict=True):
        assert list(new.relative_time) == [*KNOWN, NEW]
        assert {name: new.relative_time[name] for name in KNOWN} == old.relative_time


def test_the_new_platform_is_predicted_nearer_than_by_the_mean_of_the_others(
    crossperf: Crossperf, trained: Path, new_runs: Path, tmp_path: Path
) -> None:
    crossperf("adapt", trained, new_runs, "-o", "grown")
    runs = TABLE.filter((pl.col("app") == "app7") & pl.col("platform").is_in(KNOWN))
    truth = dataset.build(TABLE.filter(pl.col("app") == "app7"))
    time_of = {work[1]: np.exp(row) for work, row in zip(truth.workloads, truth.log_time_wp, strict=True)}
    errors, naive = [], []
    for one in predict(load(tmp_path / "grown"), runs).predictions:
        true_log = np.log(time_of[one.input][truth.platforms.index(NEW)])
        errors.append(abs(np.log(one.seconds[NEW]) - true_log))
        naive.append(abs(np.mean([np.log(one.seconds[name]) for name in KNOWN]) - true_log))
    assert np.mean(errors) < np.mean(naive) / 1.5


def test_two_platforms_are_added_in_turn(crossperf: Crossperf, trained: Path, new_runs: Path, tmp_path: Path) -> None:
    other = write(TABLE.filter((pl.col("platform") == OTHER) & pl.col("app").is_in(SHOTS)), tmp_path / "other.csv")
    crossperf("adapt", trained, new_runs, "-o", "one")
    done = crossperf("adapt", "one", other, "-o", "two")
    assert done.status == 0, done.stderr
    first, two = load(tmp_path / "one"), load(tmp_path / "two")
    assert two.platforms == (*KNOWN, NEW, OTHER)
    assert two.sources == tuple(KNOWN)
    np.testing.assert_array_equal(two.fitted.predict(two.features)[:, :-1], first.fitted.predict(two.features))
    assert len(two.cells.platform_classes) == 6
    assert np.isnan(two.cells.log_time_wp[:, -1]).sum() == len(two.workloads) - 9


def test_a_run_measured_on_an_added_platform_is_not_predicted_from(
    crossperf: Crossperf, trained: Path, new_runs: Path
) -> None:
    crossperf("adapt", trained, new_runs, "-o", "grown")
    assert_one_sentence(crossperf("predict", "grown", new_runs), NEW, "Train a model with its runs")


def test_workloads_that_the_model_does_not_know_count_where_the_table_has_them_on_known_platforms(
    crossperf: Crossperf, trained: Path, tmp_path: Path
) -> None:
    both = TABLE.filter((pl.col("app") == "app7") & pl.col("platform").is_in([*KNOWN, NEW]))
    done = crossperf("adapt", trained, write(both, tmp_path / "both.csv"), "-o", "grown")
    assert done.status == 0, done.stderr
    assert "from 3 workloads" in done.stdout
    assert "3 workloads that the model did not know were used" in done.stderr
    grown = load(tmp_path / "grown")
    assert len(grown.workloads) == 24
    row = grown.workloads.index(("app7", "n0"))
    whole = dataset.build(TABLE, platforms=[*KNOWN, NEW])
    expected_p = whole.log_time_wp[whole.workloads.index(("app7", "n0"))]
    np.testing.assert_allclose(grown.cells.log_time_wp[row], expected_p)


def test_what_was_not_used_is_named(crossperf: Crossperf, trained: Path, tmp_path: Path) -> None:
    rows = TABLE.filter((pl.col("platform") == NEW) & pl.col("app").is_in([*SHOTS, "app7"]))
    known = TABLE.filter((pl.col("platform") == KNOWN[0]) & (pl.col("app") == "app0"))
    done = crossperf("adapt", trained, write(pl.concat([rows, known]), tmp_path / "new.csv"), "-o", "grown")
    assert "3 workloads on " in done.stderr
    assert "app7 n0" in done.stderr
    assert "3 cells on known platforms were not used" in done.stderr


def test_suggestions_come_in_order_and_leave_out_what_is_measured(
    crossperf: Crossperf, trained: Path, new_runs: Path
) -> None:
    done = crossperf("adapt", trained, "--suggest", "4", "--json", "next.json")
    assert done.status == 0, done.stderr
    found = json.loads(Path("next.json").read_text())["suggestions"]
    assert len({(one["app"], one["input"]) for one in found}) == 4
    assert found[0]["why"] == "ordinary, so it sets the general level"
    assert all(one["app"] in done.stdout for one in found)
    crossperf("adapt", trained, new_runs, "--suggest", "30", "--json", "rest.json")
    rest = json.loads(Path("rest.json").read_text())["suggestions"]
    assert len(rest) == 21 - 9
    assert not {one["app"] for one in rest} & set(SHOTS)


def refused(crossperf: Crossperf, folder: Path, *arguments: str | Path) -> Done:
    """Run a command that must leave everything as it was."""
    before = contents(folder)
    done = crossperf(*arguments)
    assert contents(folder) == before
    return done


def test_errors_are_one_sentence_and_leave_nothing_behind(
    crossperf: Crossperf, trained: Path, new_runs: Path, tmp_path: Path
) -> None:
    unknown_apps = write(TABLE.filter((pl.col("platform") == NEW) & (pl.col("app") == "app7")), tmp_path / "u.csv")
    two_new = write(TABLE.filter(pl.col("platform").is_in([NEW, OTHER])), tmp_path / "two.csv")
    known = write(TABLE.filter(pl.col("platform") == KNOWN[0]), tmp_path / "known.csv")

    def one_sentence(arguments: list[str | Path], *words: str) -> None:
        assert_one_sentence(refused(crossperf, tmp_path, "adapt", *arguments), *words)

    one_sentence([trained], "NEW_RUNS is missing", "--suggest")
    one_sentence([trained, new_runs], "-o is missing")
    one_sentence([trained, new_runs, "-o", "x", "--suggest", "3"], "one of them")
    one_sentence([trained, "--suggest", "0"], "--suggest", "1 or more")
    one_sentence([trained, unknown_apps, "-o", "x"], "0 usable workloads", "--suggest")
    one_sentence([trained, two_new, "-o", "x"], "--platform", NEW, OTHER)
    one_sentence([trained, known, "-o", "x"], "exactly one", KNOWN[0])
    one_sentence([trained, new_runs, "-o", "x", "--platform", KNOWN[0]], "knows already")
    one_sentence([trained, new_runs, "-o", "x", "--platform", "nowhere"], "--platform: found 'nowhere', without")
    one_sentence([trained, new_runs, "-o", trained], "--overwrite")
    one_sentence([tmp_path / "none", new_runs, "-o", "x"], "no such folder")
    one_sentence([trained, tmp_path / "none.csv", "-o", "x"], "none.csv")
    whole = load(trained)
    replace(whole, features=whole.features[[]]).save(trained, overwrite=True)
    one_sentence([trained, new_runs, "-o", "x"], "Train it again")
    one_sentence([trained, "--suggest", "3"], "Train it again")


def test_a_platform_is_chosen_by_name_and_a_model_replaced_when_told_to(
    crossperf: Crossperf, trained: Path, tmp_path: Path
) -> None:
    two_new = write(TABLE.filter(pl.col("platform").is_in([NEW, OTHER])), tmp_path / "two.csv")
    done = crossperf("adapt", trained, two_new, "-o", trained, "--platform", OTHER, "--overwrite")
    assert done.status == 0, done.stderr
    assert load(trained).platforms[-1] == OTHER
    assert f"runs on {NEW} were not used" in done.stderr


def test_evaluate_leaves_platforms_out_in_turn(crossperf: Crossperf, tmp_path: Path) -> None:
    table = write(TABLE.filter(pl.col("platform").is_in(KNOWN)), tmp_path / "runs.csv")
    asked = ("--split", "platform", "--models", "ridge", "--scored-folds", "1")
    done = crossperf("evaluate", table, *asked, "--shots", "3,25%", "--json", "t.json")
    assert done.status == 0, done.stderr
    assert "typical factor on a new platform" in done.stdout
    facts = json.loads(Path("t.json").read_text())
    assert facts["split"] == "platform"
    assert {score["shots"] for score in facts["scores"]} == {"3", "25%"}
    assert facts["left_out"] == KNOWN
    assert_one_sentence(crossperf("evaluate", table, "--shots", "3"), "--split platform")
    assert_one_sentence(crossperf("evaluate", table, *asked, "--shots", "few"), "'few'")
    assert_one_sentence(crossperf("evaluate", table, *asked, "--shots", "0,3"), "2 or more")
