"""Every figure of every shape of evaluation: words apart, tooltips in place, or one sentence that tells why not."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from matplotlib.collections import Collection
from matplotlib.text import Text

from crossperf.evaluation.result import Evaluation
from crossperf.evaluation.scores import Scoreboard
from crossperf.report.figures import FIGURES, Drawn, NothingToDraw
from tests.report.figures.evaluations import NASTY, by_chance, by_hand

pytestmark = pytest.mark.slow

NAN = float("nan")
SHAPES = {
    "ordinary": by_chance(
        [f"app{i}" for i in range(8)], [f"cpu-{i}" for i in range(6)], models=["crossperf", "forest", "m"]
    ),
    "eighteen": by_chance([f"app{i}" for i in range(45)], [f"c{i}.2xlarge" for i in range(18)], inputs=1),
    "least": by_chance(["app0"], ["cpu-a", "cpu-b"]),
    "names": by_chance(NASTY, NASTY, models=NASTY[:4], gaps=0.2),
    "similar names": by_chance(["a"], [f"a-family-of-cloud-instances.{i}xlarge-on-demand" for i in range(20)]),
    "gaps": by_hand([[1.0, NAN, 3.0], [NAN, 2.0, 4.0], [2.0, NAN, NAN]], {"m": [[1.0, 2.0, 1.0]] * 3}),
    "one cell": by_hand([[1.0, 2.0]], {"m": [[1.0, 3.0]]}),
    "equal": by_hand([[1.0, 1.0, 1.0]] * 3, {"m": [[1.0, 1.0, 1.0]] * 3}),
    "far apart": by_hand([[1e-9, 1e9], [1.0, 1e12], [3.0, 2.0]], {"m": [[1.0, 2.0]] * 3}),
    "unsure": by_chance(["a", "b"], ["p", "q", "r"], sure=False),
}


#: What cannot be drawn: no intervals and no latent space, or no other order than the most common one.
UNSURE = {"reliability", "familiarity", "space", "drivers"}
NOTHING = {
    "gaps": UNSURE | {"roc"},
    "one cell": UNSURE | {"roc"},
    "equal": UNSURE | {"roc"},
    "far apart": UNSURE,
    "unsure": UNSURE,
    "least": {"roc"},
}
#: Shapes that are drawn for a telephone as well.
NARROW = ("ordinary", "eighteen", "names")
PAIRS = [
    (shape, name, width)
    for shape in SHAPES
    for name in FIGURES
    for width in (("wide", "narrow") if shape in NARROW else ("wide",))
    if name not in NOTHING.get(shape, ())
]


@pytest.fixture(scope="module", params=PAIRS, ids="-".join)
def drawn(request: pytest.FixtureRequest) -> Drawn:
    shape, name, width = request.param
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return FIGURES[name](SHAPES[shape], narrow=width == "narrow", bare=width == "narrow")


@pytest.mark.parametrize(("shape", "name"), [(shape, name) for shape in NOTHING for name in sorted(NOTHING[shape])])
def test_what_cannot_be_drawn_is_a_sentence(shape: str, name: str) -> None:
    with pytest.raises(NothingToDraw, match=r"^[A-Za-z'].*\.$"):
        FIGURES[name](SHAPES[shape])


def written(drawn: Drawn) -> Iterator[Text]:
    """The words that one sees: matplotlib keeps a label for every mark of an axis, also beyond the axis's end."""
    unseen = set()
    for axes in drawn.figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            beyond = [tick for tick in axis.get_major_ticks() if not low <= tick.get_loc() <= high]
            unseen.update(label for tick in beyond for label in (tick.label1, tick.label2))
    for text in drawn.figure.findobj(Text):
        if isinstance(text, Text) and text not in unseen and text.get_visible() and text.get_text().strip():
            yield text


def test_words_are_large_enough_lie_on_the_sheet_and_none_lies_on_another(drawn: Drawn) -> None:
    sheet = drawn.figure.bbox
    boxes = {}
    for text in written(drawn):
        assert text.get_fontsize() >= 9, text.get_text()
        box = text.get_window_extent()
        assert box.x0 > sheet.x0 - 2 and box.x1 < sheet.x1 + 2, f"{text.get_text()!r} runs over the edge"
        assert box.y0 > sheet.y0 - 2 and box.y1 < sheet.y1 + 2, f"{text.get_text()!r} runs over the edge"
        boxes[text] = box.padded(-1.5)
    for first, second in combinations(boxes, 2):
        assert not boxes[first].overlaps(boxes[second]), f"{first.get_text()!r} lies on {second.get_text()!r}"


def test_names_in_a_list_are_distinct(drawn: Drawn) -> None:
    for axes in drawn.figure.axes:
        labels = [text.get_text() for text in axes.get_yticklabels()]
        legend = axes.get_legend()
        keys = [text.get_text() for text in legend.get_texts()] if legend else []
        assert len(labels) == len(set(labels))
        assert len(keys) == len(set(keys))


def test_tooltips_lie_on_the_sheet_and_tell_something(drawn: Drawn) -> None:
    assert drawn.tooltips
    for mark in drawn.tooltips:
        assert mark.x - mark.width / 2 >= -0.01 and mark.x + mark.width / 2 <= 1.01
        assert mark.y - mark.height / 2 >= -0.01 and mark.y + mark.height / 2 <= 1.01
        assert mark.text.strip() and "\n" not in mark.text and "nan" not in mark.text


def test_captions_hold_counts_and_end(drawn: Drawn) -> None:
    assert any(letter.isdigit() for letter in drawn.caption)
    assert drawn.caption.endswith(".") and "nan" not in drawn.caption and "  " not in drawn.caption
    assert drawn.title.endswith("?")


def test_no_axes_are_empty(drawn: Drawn) -> None:
    for axes in drawn.figure.axes:
        shapes = [part for part in axes.collections if isinstance(part, Collection) and len(part.get_offsets())]
        assert axes.lines or axes.patches or shapes


def test_drawn_twice_it_is_the_same_file() -> None:
    for name in FIGURES:
        first, second = (FIGURES[name](SHAPES["ordinary"]).as_bytes("svg") for _ in range(2))
        assert first == second, name


@pytest.mark.parametrize("name", FIGURES)
def test_an_evaluation_that_lacks_everything_is_a_sentence(name: str) -> None:
    table = replace(SHAPES["least"].table, info=None)
    bare = replace(SHAPES["least"], table=table, scores=Scoreboard(), held_out=None, latent=None)
    with pytest.raises(NothingToDraw, match=r"\.$"):
        FIGURES[name](bare)


@pytest.mark.parametrize("name", ["picks", "order", "roc", "errors", "scatter", "reliability", "familiarity"])
def test_cells_without_models_are_a_sentence(name: str) -> None:
    held = SHAPES["least"].held_out
    assert held is not None
    with pytest.raises(NothingToDraw):
        FIGURES[name](replace(SHAPES["least"], scores=Scoreboard(), held_out=replace(held, predictions={})))


@pytest.mark.parametrize("name", ["distribution", "vector"])
def test_cells_without_models_still_show_what_was_measured(name: str) -> None:
    held = SHAPES["least"].held_out
    assert held is not None
    assert FIGURES[name](replace(SHAPES["least"], scores=Scoreboard(), held_out=replace(held, predictions={}))).tooltips


def test_captions_of_a_model_trained_before_name_new_cells_and_no_folds() -> None:
    trained = replace(SHAPES["ordinary"], split="new", folds=1, scored_folds=None)
    for name in ("order", "vector", "errors", "scatter", "reliability", "familiarity"):
        caption = FIGURES[name](trained).caption
        assert "that the model was not trained on" in caption and "held-out" not in caption and "fold" not in caption
    held = trained.held_out
    assert held is not None
    unscored = replace(trained, scores=Scoreboard(), held_out=replace(held, predictions={}))
    assert FIGURES["distribution"](unscored).caption.startswith("32 workloads of the whole table.")
    assert "predicted" not in FIGURES["vector"](unscored).caption


def test_an_evaluation_read_from_a_file_draws_the_same() -> None:
    again = Evaluation.from_json(SHAPES["ordinary"].to_json())
    for name in ("order", "errors", "reliability"):
        first, second = FIGURES[name](SHAPES["ordinary"]), FIGURES[name](again)
        assert first.caption == second.caption
        places = [[(tooltip.x, tooltip.y) for tooltip in drawn.tooltips] for drawn in (first, second)]
        np.testing.assert_allclose(*places, atol=1e-3)
