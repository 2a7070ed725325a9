"""Scores side by side: a row for each model in every form, and short enough for a notebook."""

import builtins
from typing import Any

import pytest

from crossperf.dataset import Dataset
from crossperf.evaluation import ModelScores, Scoreboard, Scores, evaluate


@pytest.fixture
def board() -> Scoreboard:
    models = {"good": Scores(typical_factor=1.2, top1=0.9), "<bad>": Scores(typical_factor=1.5, top1=0.5)}
    return Scoreboard({name: ModelScores.of([own]) for name, own in models.items()}, Scores(typical_factor=1.1))


def test_a_frame_has_a_row_for_each_model_and_the_noise_ceiling(board: Scoreboard) -> None:
    frame = board.to_frame()
    assert type(frame).__module__.startswith("pandas")
    assert list(frame["model"]) == ["good", "<bad>", "noise ceiling"]
    assert list(frame["typical_factor"]) == [1.2, 1.5, 1.1]


def test_without_pandas_the_frame_is_one_of_polars(board: Scoreboard, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without_pandas(name: str, *rest: Any) -> Any:
        if name == "pandas":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr("importlib.import_module", lambda name: without_pandas(name, None, None, ["x"]))
    frame = board.to_frame()
    assert type(frame).__module__.startswith("polars")
    assert frame["model"].to_list() == ["good", "<bad>", "noise ceiling"]


def test_the_text_marks_the_best_and_has_at_most_ten_lines(board: Scoreboard) -> None:
    lines = repr(board).splitlines()
    assert lines[1].split()[:2] == ["good", "1.200*"]
    assert "*" not in lines[2] + lines[3]
    many = Scoreboard({f"model{i}": board.models["good"] for i in range(40)})
    assert len(repr(many).splitlines()) <= 10
    assert "... 35 more" in repr(many)


def test_an_evaluation_prints_in_ten_lines_and_as_html(toy_data: Dataset) -> None:
    result = evaluate(toy_data, ["median", "ridge"], n_folds=2)
    assert len(repr(result).splitlines()) <= 10
    html = result._repr_html_()
    assert html.count("<tr>") == 1 + 2 + 1
    assert "Few applications" in html


def test_names_are_escaped_in_html(board: Scoreboard) -> None:
    assert "&lt;bad&gt;" in board._repr_html_()
    assert "<bad>" not in board._repr_html_()
