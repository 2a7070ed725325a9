from __future__ import annotations

import io
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from PIL import Image

from crossperf.errors import CrossperfError
from crossperf.report.figures import FIGURES
from crossperf.report.figures.colours import FAINT, INK
from tests.report.figures.evaluations import NASTY, by_chance

EVALUATION = by_chance(["amg", "lulesh"], ["cpu-a", "cpu-b", "gpu-c"])


def words(svg: bytes) -> str:
    texts = ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")  # noqa: S314 - drawn a moment ago
    return " ".join("".join(text.itertext()) for text in texts)


@pytest.mark.parametrize(("suffix", "begins"), [(".svg", b"<?xml"), (".png", b"\x89PNG"), (".PDF", b"%PDF")])
def test_the_suffix_says_what_is_written(tmp_path: Path, suffix: str, begins: bytes) -> None:
    path = tmp_path / f"order{suffix}"
    FIGURES["order"](EVALUATION).save(path)
    assert path.read_bytes().startswith(begins)
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


def test_another_suffix_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    drawn = FIGURES["order"](EVALUATION)
    with pytest.raises(CrossperfError, match=r"order\.pgn: found the suffix '\.pgn', expected \.svg, \.png, \.pdf"):
        drawn.save(tmp_path / "order.pgn")
    with pytest.raises(CrossperfError, match="found no suffix"):
        drawn.save(tmp_path / "order")
    with pytest.raises(CrossperfError, match="cannot be written"):
        drawn.save(tmp_path / "missing" / "order.svg")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["svg", "png", "pdf"])
def test_every_format_is_the_same_bytes_each_time(kind: str) -> None:
    drawn = FIGURES["scatter"](EVALUATION)
    assert drawn.as_bytes(kind) == drawn.as_bytes(kind) == FIGURES["scatter"](EVALUATION).as_bytes(kind)


def test_the_file_holds_title_and_caption_and_the_bare_one_neither() -> None:
    whole, bare = FIGURES["order"](EVALUATION), FIGURES["order"](EVALUATION, bare=True)
    text = words(whole.as_bytes("svg"))
    assert whole.title in text and whole.caption in text.replace("  ", " ")
    assert whole.title not in words(bare.as_bytes("svg")) and bare.title == whole.title
    assert bare.size[1] < whole.size[1] and bare.size[0] == whole.size[0]
    image = Image.open(io.BytesIO(whole.as_bytes("png")))
    assert image.info["Title"] == whole.title and image.info["Description"] == whole.caption


def test_a_file_has_a_white_ground_and_a_bare_figure_lets_the_page_through() -> None:
    alone, bare = (
        np.asarray(Image.open(io.BytesIO(FIGURES["order"](EVALUATION, bare=bare).as_bytes("png"))).convert("RGBA"))
        for bare in (False, True)
    )
    assert alone[0, 0].tolist() == [255] * 4
    assert bare[0, 0, 3] == 0 and bare[..., 3].max() == 255


def test_the_inks_are_those_a_page_replaces() -> None:
    drawn = FIGURES["order"](EVALUATION, bare=True)
    svg = drawn.as_bytes("svg").decode()
    assert INK in svg and FAINT in svg and "#000000" not in svg


def test_names_are_written_as_they_are() -> None:
    drawn = FIGURES["noise"](by_chance(["a"], NASTY))
    text = words(drawn.as_bytes("svg"))
    for name in NASTY[:4]:
        assert name in text


def test_neither_the_callers_settings_nor_ours_reach_the_other() -> None:
    expected = FIGURES["order"](EVALUATION).as_bytes("svg")
    before = dict(matplotlib.rcParams)
    theirs = {
        "font.size": 30,
        "axes.grid": True,
        "svg.fonttype": "path",
        "figure.facecolor": "red",
        "axes.linewidth": 9,
    }
    with matplotlib.rc_context(theirs):
        assert FIGURES["order"](EVALUATION).as_bytes("svg") == expected
        assert matplotlib.rcParams["font.size"] == 30
    assert dict(matplotlib.rcParams) == before


def test_drawing_brings_no_pyplot() -> None:
    code = (
        "import sys; from tests.report.figures.evaluations import by_chance; "
        "from crossperf.report.figures import FIGURES; "
        "FIGURES['order'](by_chance(['a'], ['p', 'q'])).as_bytes('png'); print('matplotlib.pyplot' in sys.modules)"
    )
    root = Path(__file__).parents[3]
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root).stdout
    assert printed == "False\n"


def test_bars_are_marked_by_the_rectangle_they_fill() -> None:
    for bare in (True, False):
        drawn = FIGURES["order"](EVALUATION, bare=bare)
        width, height = drawn.figure.get_size_inches() * drawn.figure.dpi
        for bar, mark in zip(drawn.figure.axes[0].patches, drawn.tooltips, strict=True):
            box = bar.get_window_extent()
            found = [mark.x * width, (1 - mark.y) * height, mark.width * width, mark.height * height]
            np.testing.assert_allclose(found, [(box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2, box.width, box.height])


@pytest.mark.slow
def test_100000_cells_are_drawn_in_seconds_and_stay_small() -> None:
    evaluation = by_chance([f"app{i}" for i in range(100)], [f"p{i}" for i in range(10)], inputs=100)
    assert evaluation.held_out is not None and len(evaluation.held_out) == 100_000
    for name, plot in FIGURES.items():
        drawn = plot(evaluation, bare=True)
        assert len(drawn.as_bytes("svg")) < 600_000, name
        assert len(drawn.tooltips) <= 3600, name
