"""The page as text: what it shows, what it lets in, and that names from data stay names."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from crossperf import report
from crossperf.evaluation.result import Evaluation
from crossperf.evaluation.scores import Scoreboard
from crossperf.report import sentences
from crossperf.report.figures import FIGURES, vector
from crossperf.report.figures.vector import chooser
from crossperf.report.page import _json
from tests.report.conftest import HOSTILE

pytestmark = pytest.mark.slow


class Reader(HTMLParser):
    """Gathers the tags of a page, the text within each id, and what any attribute points to."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.events: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attributes:
            if name in ("src", "href", "xlink:href", "action", "srcset", "data"):
                self.links.append(value or "")
            if name.startswith("on"):
                self.events.append(name)


@pytest.fixture(scope="module")
def page(pages: dict[str, Path]) -> str:
    return pages["ordinary"].read_text(encoding="utf-8")


def without_drawings(page: str) -> str:
    return re.sub(r"<svg.*?</svg>|<script.*?</script>", "", page, flags=re.DOTALL)


def test_of_some_platforms_the_page_still_tells_what_the_whole_table_holds(ordinary: Evaluation) -> None:
    info, some = ordinary.table.info, ordinary.table.platforms[:2]
    assert info is not None
    text = report.render(replace(ordinary, held_out=None, latent=None, table=replace(ordinary.table, platforms=some)))
    assert f"on {len(info.platforms)} platforms, with" in text
    assert "not among the platforms chosen" in text


def test_a_figure_without_a_model_says_so_and_not_that_a_model_lacks_something(ordinary: Evaluation) -> None:
    assert ordinary.held_out is not None
    text = report.render(replace(ordinary, scores=Scoreboard(), held_out=replace(ordinary.held_out, predictions={})))
    assert text.count("No model was scored in this evaluation.") == 7
    assert "No model here gives intervals" not in text


def test_the_answer_comes_first_and_the_rest_in_its_order(page: str, ordinary: Evaluation) -> None:
    text = without_drawings(page)
    wanted = [sentences.headline(ordinary), 'id="scores"', "What it means", 'id="figures"', 'id="wrong"', 'id="latent"']
    places = [text.index(part) for part in [*wanted, 'id="data"', 'id="again"']]
    assert places == sorted(places)
    sections = [text.index(f'<section class="plot" id="{name}">') for name in FIGURES]
    assert sections == sorted(sections)
    for caveat in ordinary.caveats:
        assert caveat.replace("'", "&#39;").replace("<", "&lt;") in text


def test_nothing_is_fetched_from_anywhere(page: str) -> None:
    reader = Reader(page)
    assert all(link.startswith(("#", "data:")) for link in reader.links)
    assert reader.events == []
    assert not {"iframe", "object", "embed", "base", "form"} & set(reader.tags)
    assert not re.findall(r"@import|url\(\s*['\"]?(?!#)", re.sub(r"<svg.*?</svg>", "", page, flags=re.DOTALL))


def test_the_policy_lets_in_the_pages_own_script_and_nothing_else(page: str) -> None:
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)
    assert policy is not None
    rules = dict(part.split(" ", 1) for part in policy[1].replace("&#39;", "'").split("; "))
    assert rules["default-src"] == "'none'"
    scripts = re.findall(r"<script>(.*?)</script>", page, flags=re.DOTALL)
    assert len(scripts) == 1
    digest = base64.b64encode(hashlib.sha256(scripts[0].encode()).digest()).decode()
    assert rules["script-src"] == f"'sha256-{digest}'"


def test_no_name_can_close_the_script_that_holds_it(page: str) -> None:
    data = re.search(r'id="page-data">(.*?)</script>', page, flags=re.DOTALL)
    assert data is not None
    assert HOSTILE in [app["name"] for app in json.loads(data[1])["views"][0]["chooser"]["apps"]]
    assert "<" not in data[1]
    tricky = {"a": "</script><script>alert(1)</script>", "b": "<!--", "c": "\u2028&"}
    assert json.loads(str(_json(tricky))) == tricky
    assert not set("<>&\u2028") & set(str(_json(tricky)))


def test_the_same_evaluation_makes_the_same_page(page: str, ordinary: Evaluation) -> None:
    assert report.render(ordinary) == page


def test_the_page_tells_how_to_make_it_again(page: str, ordinary: Evaluation) -> None:
    text = without_drawings(page).replace("&#39;", "'").replace("&amp;", "&")
    assert sentences.command(ordinary) in text
    assert "crossperf report evaluation.json -o report" in text
    for fact in (ordinary.table.fingerprint, ordinary.table.path, ordinary.versions["crossperf"]):
        assert fact in text


def test_without_scores_the_page_names_the_command_that_makes_them(unscored: Evaluation) -> None:
    text = without_drawings(report.render(unscored, "crossperf report model -o report"))
    assert "There are no scores here. <code>crossperf evaluate " in text
    assert 'id="scores"' not in text
    assert 'id="applications"' not in text
    assert "crossperf report model -o report" in text
    assert "crossperf evaluate --json" not in text.split('id="again"')[1]
    assert text.count('class="nothing"') >= 5


def test_an_evaluation_without_its_cells_or_its_tables_facts_still_makes_a_page(ordinary: Evaluation) -> None:
    table = replace(ordinary.table, info=None)
    bare = replace(ordinary, table=table, held_out=None, latent=None, versions={}, caveats=())
    text = without_drawings(report.render(bare))
    assert 'id="scores"' in text
    assert 'id="app"' not in text
    assert "not known" in text
    assert "<h2>Caveats</h2>" not in text


def test_more_applications_than_can_be_chosen_are_counted(
    ordinary: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert chooser(ordinary).left_out == ""
    assert ordinary.held_out is not None
    apps = len(ordinary.held_out.apps)
    monkeypatch.setattr(vector, "MOST_APPS", 3)
    few = chooser(ordinary)
    assert len(few.facts["apps"]) == 3
    assert few.left_out == f"the 3 with the most cells; {apps - 3} more are left out"


def test_places_of_marks_rise_with_their_ratios(ordinary: Evaluation) -> None:
    made = chooser(ordinary)
    width = made.drawn.size[0] * 72
    for app in made.facts["apps"]:
        for first, middle, third, words in (mark for row in app["marks"] for mark in row):
            assert 0 < first <= middle <= third < width
            assert words.startswith("median ")
