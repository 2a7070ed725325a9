"""`crossperf report` and `crossperf plot` as a shell runs them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from crossperf import dataset, model
from crossperf.cli.evaluations import known_platforms
from crossperf.datasets import toy
from crossperf.evaluation import Evaluation
from crossperf.evaluation import run as evaluate
from crossperf.platforms import MachineFacts, Platform, add
from crossperf.report.figures import FIGURES, FORMATS
from crossperf.runs.table import RunsTable
from tests.cli.test_cli import Crossperf, assert_one_sentence, contents, crossperf

pytestmark = pytest.mark.slow

__all__ = ["crossperf"]


@pytest.fixture(scope="module")
def table() -> RunsTable:
    return toy.make_table(apps=5, inputs=3, platforms=3, repeats=2, seed=4)


@pytest.fixture(scope="module")
def evaluation(table: RunsTable) -> Evaluation:
    return evaluate.evaluate(dataset.build(table), ["ridge", "median"], n_folds=3)


@pytest.fixture
def evaluation_file(evaluation: Evaluation, tmp_path: Path) -> Path:
    evaluation.write(tmp_path / "evaluation.json")
    return tmp_path / "evaluation.json"


@pytest.fixture
def model_folder(table: RunsTable, tmp_path: Path) -> Path:
    model.train(table, "ridge").save(tmp_path / "model")
    return tmp_path / "model"


def stand_in(folder: Path) -> None:
    """Make a folder that is told for a report, without the seconds that drawing one takes."""
    (folder / "figures").mkdir(parents=True)
    (folder / "figures" / "order.svg").write_text("<svg/>")
    (folder / "index.html").write_text('<!DOCTYPE html><meta name="generator" content="crossperf report 0.0.1">')


def test_a_report_is_a_page_and_its_figures_in_two_formats(crossperf: Crossperf, evaluation_file: Path) -> None:
    done = crossperf("report", evaluation_file, "-o", "out/report")
    assert done.status == 0
    assert "picks the fastest platform" in done.stdout
    assert done.stderr.splitlines()[-1] == f"wrote {Path('out/report/index.html')}"
    files = contents(Path("out/report"))
    assert files["index.html"].startswith(b"<!DOCTYPE html>")
    assert files["figures/order.svg"].startswith(b"<?xml")
    assert files["figures/order.png"].startswith(b"\x89PNG")
    names = {Path(name).stem for name in files if name.startswith("figures/")}
    assert {"distribution", "vector", "order", "errors", "scatter"} <= names <= set(FIGURES)
    assert [path.name for path in Path("out").iterdir()] == ["report"]


def test_several_evaluations_stand_on_one_page_with_their_figures_apart(
    crossperf: Crossperf, evaluation: Evaluation, evaluation_file: Path
) -> None:
    replace(evaluation, split="app").write("app.json")
    done = crossperf("report", evaluation_file, "app.json", "--rpv", "slowest", "-o", "report")
    assert done.status == 0, done.stderr
    assert "inputs it has never seen" in done.stdout and "applications it has never seen" in done.stdout
    page = Path("report/index.html").read_text()
    assert 'data-choose="workload"' in page and 'data-choose="app"' in page
    assert "time relative to the slowest platform" in page
    assert f"crossperf report {evaluation_file} app.json --rpv slowest -o report" in page
    names = {path.stem for path in Path("report/figures").iterdir()}
    assert {"workload-order", "app-order", "workload-errors", "app-errors", "distribution"} <= names
    assert "app-distribution" not in names  # the table is the same, and so is its figure


def test_models_and_tables_among_several_evaluations_are_refused_in_a_sentence(
    crossperf: Crossperf, evaluation_file: Path, model_folder: Path, table: RunsTable
) -> None:
    table.write("same.csv")
    done = crossperf("report", evaluation_file, model_folder, "-o", "report")
    assert_one_sentence(done, "found a model's folder among 2 arguments", "Make a report of its own")
    done = crossperf("report", evaluation_file, "same.csv", evaluation_file, "-o", "report")
    assert_one_sentence(done, "same.csv: found more than evaluations (.json) and a last TABLE")
    assert not Path("report").exists()


def test_facts_of_platforms_come_from_the_users_file_and_of_the_testbed_from_its_own(
    evaluation: Evaluation, tmp_path: Path
) -> None:
    (name, *_) = evaluation.table.platforms
    add(tmp_path / "mine.json", Platform(name, "cpu", MachineFacts(cpu_model="Some CPU", cores=4)))
    (known,) = known_platforms([evaluation], tmp_path / "mine.json")
    assert (known.name, known.facts.cores) == (name, 4)
    shipped = replace(evaluation, table=replace(evaluation.table, platforms=("h200", "xeon-4t")))
    assert {own.name for own in known_platforms([shipped], tmp_path / "none.json")} == {"h200", "xeon-4t"}
    # One stranger among them, and an h200 may be anybody's.
    strange = replace(evaluation, table=replace(evaluation.table, platforms=("h200", "mine")))
    assert known_platforms([strange], tmp_path / "none.json") == []


def test_a_report_is_replaced_only_when_told_to(crossperf: Crossperf, evaluation_file: Path) -> None:
    stand_in(Path("report"))
    before = contents(Path("report"))
    assert_one_sentence(crossperf("report", evaluation_file, "-o", "report"), "found a report there already")
    assert contents(Path("report")) == before
    assert crossperf("report", evaluation_file, "-o", "report", "--overwrite").status == 0
    assert contents(Path("report")) != before
    assert_one_sentence(crossperf("report", evaluation_file, "-o", "report"), "found a report there already")


@pytest.mark.parametrize("flags", [(), ("--overwrite",)])
@pytest.mark.parametrize("found", ["a website", "a report with something else in it", "a file", "another's figures"])
def test_what_is_not_a_report_is_never_replaced(
    crossperf: Crossperf, evaluation_file: Path, found: str, flags: tuple[str, ...]
) -> None:
    target = Path("there")
    if found == "a file":
        target.write_text("years of work")
    elif found == "a website":
        target.mkdir()
        (target / "index.html").write_text("<!DOCTYPE html><title>my own</title>")
    else:
        stand_in(target)
        (target / ("figures/mine.ai" if "figures" in found else "notes.txt")).write_text("years of work")
    before = contents(target) if target.is_dir() else target.read_bytes()
    done = crossperf("report", evaluation_file, "-o", target, *flags)
    assert_one_sentence(done, "there: found something that is not a crossperf report", "choose another place")
    assert (contents(target) if target.is_dir() else target.read_bytes()) == before


def test_an_empty_folder_is_taken(crossperf: Crossperf, evaluation_file: Path) -> None:
    Path("empty").mkdir()
    assert crossperf("report", evaluation_file, "-o", "empty").status == 0


def test_a_report_that_fails_half_way_leaves_the_old_one_and_nothing_else(
    crossperf: Crossperf, evaluation_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(Path("report"))
    before = contents(Path())

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("crossperf.report.figures.Drawn.as_bytes", interrupted)
    assert crossperf("report", evaluation_file, "-o", "report", "--overwrite").status == 130
    assert contents(Path()) == before


def test_a_place_below_a_file_is_one_sentence(crossperf: Crossperf, evaluation_file: Path) -> None:
    Path("file").write_text("")
    assert_one_sentence(crossperf("report", evaluation_file, "-o", "file/report"), "file/report: cannot be written")


def test_a_folder_that_cannot_be_written_to_is_one_sentence(
    crossperf: Crossperf, evaluation_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("locked").mkdir(mode=0o555)
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "locked")  # root may write anywhere
    done = crossperf("report", evaluation_file, "-o", "locked/report")
    assert_one_sentence(done, "locked/report: cannot be written (Permission denied)")


@pytest.mark.parametrize("command", [("report",), ("plot", "order")])
def test_bad_evaluations_are_one_sentence_each(
    crossperf: Crossperf, evaluation_file: Path, command: tuple[str, ...]
) -> None:
    facts = json.loads(evaluation_file.read_text())
    Path("newer.json").write_text(json.dumps({**facts, "format": 99}))
    Path("cut.json").write_text(evaluation_file.read_text()[:500])
    Path("other.json").write_text('{"weather": "fine"}')
    Path("folder").mkdir()
    cases = {
        "newer.json": ("format 99", "of format 2 or 3. Upgrade crossperf"),
        "cut.json": ("is not JSON",),
        "other.json": ("found no format, expected what",),
        "gone.json": ("gone.json: no such file or folder, expected an evaluation or a model",),
        "folder": ("a folder without model.json",),
    }
    for name, words in cases.items():
        assert_one_sentence(crossperf(*command, name, "-o", "out.png"), *words)
    assert not Path("out.png").exists()


def test_a_table_beside_an_evaluation_is_checked_to_be_its_own(
    crossperf: Crossperf, evaluation_file: Path, table: RunsTable
) -> None:
    table.write("same.parquet")
    toy.make_table(apps=2, inputs=2, platforms=3, seed=9).write("other.csv")
    assert crossperf("report", evaluation_file, "same.parquet", "-o", "report").status == 0
    done = crossperf("report", evaluation_file, "other.csv", "-o", "second")
    assert_one_sentence(done, "other.csv: its runs have the fingerprint", table.fingerprint, "Evaluate this table")
    assert_one_sentence(crossperf("report", evaluation_file, "gone.csv", "-o", "second"), "gone.csv")
    assert not Path("second").exists()


def test_a_model_on_new_runs_is_scored_and_the_page_tells_the_command(crossperf: Crossperf, model_folder: Path) -> None:
    toy.make_table(apps=7, inputs=3, platforms=3, repeats=2, seed=8).write("new.csv")
    done = crossperf("report", model_folder, "new.csv", "-o", "report")
    assert done.status == 0
    assert "ridge picks the fastest platform" in done.stdout
    page = Path("report/index.html").read_text()
    assert f"crossperf report {model_folder} new.csv -o report" in page


def test_a_model_alone_shows_what_it_was_trained_on_and_how_to_get_scores(
    crossperf: Crossperf, model_folder: Path
) -> None:
    done = crossperf("report", model_folder, "-o", "report")
    assert done.status == 0
    assert "There are no scores here. <code>crossperf evaluate" in Path("report/index.html").read_text()


def test_a_missing_model_or_table_is_one_sentence(crossperf: Crossperf, model_folder: Path) -> None:
    assert_one_sentence(crossperf("report", "gone", "-o", "report"), "gone: no such file or folder")
    assert_one_sentence(crossperf("report", model_folder, "gone.csv", "-o", "report"), "gone.csv")


@pytest.mark.parametrize("kind", FORMATS)
def test_a_figure_alone_is_saved_by_its_suffix(crossperf: Crossperf, evaluation_file: Path, kind: str) -> None:
    done = crossperf("plot", "order", evaluation_file, "-o", f"order.{kind}")
    assert done.status == 0
    assert done.stderr == f"wrote order.{kind}\n"
    assert Path(f"order.{kind}").read_bytes()[:5] in (b"<?xml", b"\x89PNG\r", b"%PDF-")


def test_a_figure_of_one_application_and_of_one_model_can_be_chosen(
    crossperf: Crossperf, evaluation_file: Path
) -> None:
    for name in ("app1", "app2"):
        assert crossperf("plot", "vector", evaluation_file, "--app", name, "-o", f"{name}.svg").status == 0
    assert Path("app1.svg").read_bytes() != Path("app2.svg").read_bytes()
    assert crossperf("plot", "errors", evaluation_file, "--model", "median", "-o", "errors.png").status == 0


def test_what_is_not_known_is_answered_with_what_is(crossperf: Crossperf, evaluation_file: Path) -> None:
    def plot(*arguments: str, output: str = "a.svg") -> None:
        return crossperf("plot", arguments[0], evaluation_file, *arguments[1:], "-o", output)

    assert_one_sentence(plot("oder"), "figure 'oder' is not known (did you mean 'order'?)", "distribution")
    assert_one_sentence(plot("vector", "--app", "ap1"), "'ap1'", "did you mean 'app1'?")
    assert_one_sentence(plot("errors", "--model", "rigde"), "'rigde'", "did you mean 'ridge'?")
    assert_one_sentence(plot("order", "--app", "app1"), "The figure 'order' takes no 'app'")
    assert_one_sentence(plot("order", output="a.jpg"), "a.jpg: found the suffix '.jpg'", ".svg, .png, .pdf")
    assert_one_sentence(plot("order", output="gone/a.svg"), "gone/a.svg: the folder gone does not exist")
    assert_one_sentence(plot("reliability"), "No model here gives intervals")
    assert not Path("a.svg").exists()


@pytest.mark.parametrize(
    ("package", "sentence"), [("jinja2", "The report needs Jinja2"), ("matplotlib", "Figures need")]
)
def test_a_missing_package_is_named_with_its_pip_command(evaluation_file: Path, package: str, sentence: str) -> None:
    hidden = f"import sys; sys.modules[{package!r}] = None; from crossperf.cli import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", hidden, "report", str(evaluation_file), "-o", str(evaluation_file.parent / "r")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: {sentence}")
    assert done.stderr.rstrip().endswith("pip install 'crossperf[report]'")
