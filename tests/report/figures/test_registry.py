from __future__ import annotations

import inspect
import subprocess
import sys
from importlib import import_module

import pytest
from matplotlib.figure import Figure

from crossperf.errors import CrossperfError, MissingDependencyError
from crossperf.report.figures import FIGURES, Plots, plot_named
from tests.report.figures.evaluations import by_chance

EVALUATION = by_chance(["amg", "lulesh"], ["cpu-a", "cpu-b", "gpu-c"])


@pytest.mark.parametrize("name", FIGURES)
def test_the_registry_says_what_a_figure_takes(name: str) -> None:
    function = getattr(import_module(f"crossperf.report.figures.{FIGURES[name].module}"), name)
    offered = [p for p in inspect.signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY]
    assert tuple(p.name for p in offered if p.name in ("app", "model", "rpv")) == FIGURES[name].takes
    assert all(p.default is None for p in offered)


def test_every_title_asks_a_question_and_four_figures_are_the_papers() -> None:
    assert all(plot.question.endswith("?") for plot in FIGURES.values())
    assert {plot.paper: plot.name for plot in FIGURES.values() if plot.paper} == {
        2: "distribution",
        3: "vector",
        4: "order",
        5: "roc",
    }


def test_the_names_are_known_without_matplotlib() -> None:
    code = "import sys; from crossperf.report.figures import FIGURES; print(len(FIGURES), 'matplotlib' in sys.modules)"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed == f"{len(FIGURES)} False\n"


def test_drawing_without_matplotlib_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "crossperf.report.figures.sheet", None)
    with pytest.raises(MissingDependencyError, match=r"crossperf\[report\]"):
        FIGURES["order"](EVALUATION)


def test_an_accessor_offers_every_figure_as_a_method() -> None:
    plots = Plots(EVALUATION)
    assert set(FIGURES) < set(dir(plots))
    figure = plots.vector(app="amg")
    assert isinstance(figure, Figure)
    assert plots.drawn("vector", app="amg").title == "How fast is amg on each platform?"
    assert plots.order.__doc__ == FIGURES["order"].question


def test_a_notebook_shows_the_figure_that_a_method_returns() -> None:
    shown = Plots(EVALUATION).order()._repr_svg_()  # type: ignore[attr-defined]
    assert "<svg" in shown and FIGURES["order"].question in shown


def test_a_wrong_name_or_choice_is_named_with_what_was_meant() -> None:
    with pytest.raises(CrossperfError, match="did you mean 'scatter'"):
        plot_named("scater")
    with pytest.raises(AttributeError, match="did you mean 'scatter'"):
        Plots(EVALUATION).scater()
    with pytest.raises(CrossperfError, match="takes no 'model'"):
        FIGURES["order"](EVALUATION, model="median")
    with pytest.raises(CrossperfError, match="did you mean 'crossperf'"):
        FIGURES["scatter"](EVALUATION, model="crosperf")
    with pytest.raises(CrossperfError, match="did you mean 'lulesh'"):
        FIGURES["vector"](EVALUATION, app="lulsh")
