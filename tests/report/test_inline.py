"""Drawings inside a page, checked on SVG that matplotlib writes and on SVG written by hand."""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ET

import pytest
from matplotlib.figure import Figure

from crossperf.report.inline import inline

SVG = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="9" viewBox="0 0 9 9">'


@pytest.fixture(scope="module")
def drawn() -> str:
    figure = Figure(figsize=(4, 3))
    axes = figure.add_subplot()
    axes.plot([0, 1, 2], [1, 3, 2], "o-", color="#123456")
    axes.set_title("a < b & \"c\" 'd'", color="#262626")
    into = io.BytesIO()
    figure.savefig(into, format="svg")
    return into.getvalue().decode()


def test_a_drawing_loses_its_size_date_and_rules_but_not_its_view(drawn: str) -> None:
    assert "<metadata" in drawn
    assert "<style" in drawn
    root = ET.fromstring(inline(drawn, "f-", {}))  # noqa: S314 - our own
    assert root.get("viewBox") == "0 0 288 216"
    assert "width" not in root.attrib
    assert not [element for element in root.iter() if element.tag.endswith(("metadata", "style"))]


def test_every_reference_leads_to_a_part_of_the_same_drawing(drawn: str) -> None:
    text = inline(drawn, "one-", {})
    ids = re.findall(r'\bid="([^"]+)"', text)
    referred = re.findall(r'href="#([^"]+)"', text) + re.findall(r"url\(#([^)]+)\)", text)
    assert referred
    assert set(referred) <= set(ids)
    assert len(ids) == len(set(ids))
    assert all(name.startswith("one-") for name in ids)
    assert not set(ids) & set(re.findall(r'\bid="([^"]+)"', inline(drawn, "two-", {})))


def test_only_the_neutral_inks_follow_the_page(drawn: str) -> None:
    text = inline(drawn, "f-", {"#262626": "var(--ink)"})
    assert "var(--ink)" in text
    assert "#262626" not in text
    assert "#123456" in text


def test_text_from_data_stays_text() -> None:
    text = inline(f"{SVG}<text>&lt;b&gt;&amp;</text></svg>", "f-", {})
    assert "&lt;b&gt;&amp;" in text
    assert ET.fromstring(text)[0].text == "<b>&"  # noqa: S314 - our own


def test_a_group_that_the_script_looks_for_keeps_its_name() -> None:
    drawing = f'{SVG}<g id="kept"/><g id="other"/></svg>'
    assert re.findall(r'id="([^"]+)"', inline(drawing, "f-", {}, keep=("kept",))) == ["f-kept"]


def test_an_image_inside_a_drawing_stays_as_it_is() -> None:
    drawing = f'{SVG}<image xlink:href="data:image/png;base64,AAAA"/></svg>'
    assert 'xlink:href="data:image/png;base64,AAAA"' in inline(drawing, "f-", {})
