from __future__ import annotations

import re
from importlib.resources import files
from itertools import chain, combinations, pairwise

import numpy as np
import pytest

from crossperf.report.figures.colours import (
    FAINT,
    GROUP_COLOURS,
    INK,
    ON_DEEP,
    ON_PALE,
    PALE_TO_DEEP,
    PLATFORM_COLOURS,
    SHADES,
    lines_of,
    looks_of,
)
from crossperf.report.figures.heat import _DEEP

# What an eye that lacks one kind of cone makes of linear RGB: Machado, Oliveira and Fernandes, "A physiologically-based
# model for simulation of color vision deficiency", IEEE TVCG 15(6), 2009, severity 1.0.
EYES = {
    "ordinary": np.eye(3),
    "protanope": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranope": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanope": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
# IEC 61966-2-1: linear sRGB to CIE XYZ under D65.
XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
#: The grounds that the report's page has itself, and the white of a file.
GROUNDS = sorted(
    {"#ffffff", *re.findall(r"--paper: (#[0-9a-f]{6});", (files("crossperf.report") / "style.css").read_text())}
)
WHITE = "#ffffff"


def linear(colour: str) -> np.ndarray:
    value = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def lab(linear_rgb: np.ndarray) -> np.ndarray:
    share = XYZ @ np.clip(linear_rgb, 0, 1) / XYZ.sum(axis=1)
    f = np.where(share > (6 / 29) ** 3, np.cbrt(share), share / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def contrast(first: str, second: str) -> float:
    """WCAG's contrast ratio."""
    darker, lighter = sorted(float(XYZ[1] @ linear(colour)) + 0.05 for colour in (first, second))
    return lighter / darker


def nearest(colours: tuple[str, ...], eye: str) -> float:
    seen = [lab(EYES[eye] @ linear(colour)) for colour in colours]
    return min(float(np.linalg.norm(a - b)) for a, b in combinations(seen, 2))


def test_the_simulated_eyes_see_what_is_known_of_them() -> None:
    red, green, grey = (linear(colour) for colour in ("#c00000", "#6b6b00", "#808080"))
    apart = {eye: np.linalg.norm(lab(matrix @ red) - lab(matrix @ green)) for eye, matrix in EYES.items()}
    assert apart["deuteranope"] < apart["ordinary"] / 2 < apart["tritanope"]
    for matrix in EYES.values():
        np.testing.assert_allclose(matrix @ grey, grey, atol=1e-5)
    assert contrast("#ffffff", "#000000") == pytest.approx(21.0)
    np.testing.assert_allclose(lab(linear("#ff0000")), [53.24, 80.09, 67.20], atol=0.02)


@pytest.mark.parametrize("eye", EYES)
@pytest.mark.parametrize("colours", [PLATFORM_COLOURS, GROUP_COLOURS])
def test_no_eye_takes_one_colour_for_another(colours: tuple[str, ...], eye: str) -> None:
    assert nearest(colours, eye) > 23


def test_the_page_has_a_light_and_a_dark_ground() -> None:
    assert len(GROUNDS) == 3


@pytest.mark.parametrize("ground", GROUNDS)
@pytest.mark.parametrize("colour", [*PLATFORM_COLOURS, *chain.from_iterable(SHADES), *GROUP_COLOURS, FAINT])
def test_colours_read_on_light_and_dark_ground(colour: str, ground: str) -> None:
    assert contrast(colour, ground) >= (3.9 if colour == FAINT else 3.0)


def test_shades_of_a_machine_rise_in_lightness_and_no_eye_takes_those_of_three_machines_for_one_another() -> None:
    for shades in SHADES:
        assert (np.diff([lab(linear(colour))[0] for colour in shades]) > 6).all()
        assert nearest(shades, "ordinary") > 8.5
    for eye in EYES.values():
        seen = [[lab(eye @ linear(colour)) for colour in shades] for shades in SHADES[:3]]
        pairs = ((a, b) for first, second in combinations(seen, 2) for a in first for b in second)
        assert min(float(np.linalg.norm(a - b)) for a, b in pairs) > 21


def test_platforms_of_one_machine_share_a_hue_and_fewer_threads_are_darker() -> None:
    looks = looks_of(["epyc-1t", "epyc-2t", "xeon-1t", "xeon-4t", "xeon-16t", "h200"])
    assert [looks[f"xeon-{threads}t"].colour for threads in (1, 4, 16)] == list(SHADES[1])
    assert [looks[f"epyc-{threads}t"].colour for threads in (1, 2)] == [SHADES[0][0], SHADES[0][2]]
    assert looks["h200"].colour == PLATFORM_COLOURS[2]
    assert len({look.shape for name, look in looks.items() if name.startswith("xeon")}) == 3


def test_words_read_as_print_does_on_the_white_of_a_file() -> None:
    assert contrast(INK, WHITE) >= 12.0


def test_no_application_looks_like_a_platform() -> None:
    pairs = [(group, platform) for group in GROUP_COLOURS for platform in PLATFORM_COLOURS]
    assert min(np.linalg.norm(lab(linear(a)) - lab(linear(b))) for a, b in pairs) > 20


def test_a_heat_map_darkens_all_the_way_and_its_numbers_read() -> None:
    lightness = [float(lab(linear(colour))[0]) for colour in PALE_TO_DEEP]
    assert (np.diff(lightness) < -7).all()
    for i, colour in enumerate(PALE_TO_DEEP):
        assert contrast(colour, ON_DEEP if i >= _DEEP else ON_PALE) >= 4.5
    assert contrast(PALE_TO_DEEP[-1], GROUNDS[0]) > 1.7


def test_24_platforms_have_looks_of_their_own_and_neighbours_differ_in_colour() -> None:
    looks = list(looks_of([f"p{i}" for i in range(24)]).values())
    assert len(set(looks)) == 24
    assert all(look.colour != next_.colour for look, next_ in pairwise(looks))


def test_models_differ_by_dash_and_by_shape() -> None:
    lines = list(lines_of([f"m{i}" for i in range(9)]).values())
    assert len({line.dashes for line in lines}) == len({line.shape for line in lines}) == 9
    assert lines[0].dashes == () and lines[0].width > max(line.width for line in lines[1:])
