"""The page in a real browser: what a person sees, points at, chooses, downloads and sorts."""

from __future__ import annotations

import math
import re
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crossperf.evaluation.result import Evaluation
from crossperf.report.figures import FIGURES
from tests.report.conftest import HOSTILE
from tests.report.opened import Opened

pytestmark = pytest.mark.slow

try:
    from playwright.sync_api import Browser, Download, Locator, Page, expect
    from playwright.sync_api import TimeoutError as PlaywrightTimeoutError
except ImportError:
    pass  # the fixture says so


def test_the_page_opens_without_a_word_in_the_console_and_asks_for_nothing(each: Opened) -> None:
    assert each.messages == []
    assert [url for url in each.asked if not url.startswith("data:")] == [each.url]


def test_every_figure_is_drawn_or_says_why_not(each: Opened) -> None:
    marks = each.data["tooltips"]
    for name in FIGURES:
        section = each.page.locator(f"section#{name}")
        assert section.count() == 1, name
        if name not in marks:
            assert len(section.locator(".nothing").first.inner_text()) > 20, name
            continue
        box = section.locator(".pan.wide svg").first.bounding_box()
        assert box is not None, name
        assert box["width"] > 300, name
        assert box["height"] > 60, name
        assert box["width"] <= 1280, name
        assert section.locator(".pan.wide").first.locator("svg path, svg use, svg image").count() > 3, name
        assert marks[name], name
        assert all(-0.01 <= mark[0] <= 1.01 and -0.01 <= mark[1] <= 1.01 for mark in marks[name]), name
        assert len(section.locator("figcaption").first.inner_text()) > 20, name


def test_which_figures_can_be_drawn_is_known_for_each_page(
    browser: Browser, pages: dict[str, Path], ordinary: Evaluation
) -> None:
    assert ordinary.latent is not None
    opened = Opened(browser, pages["ordinary"])
    drawn = {re.sub(r"(-\d+)?(-narrow)?$", "", name) for name in opened.data["tooltips"]}
    assert drawn == set(FIGURES)
    opened.context.close()


@pytest.mark.parametrize("name", ["errors", "order", "scatter", "space", "missing"])
def test_pointing_at_a_mark_tells_what_it_is(ordinary_page: Opened, name: str) -> None:
    marks = ordinary_page.data["tooltips"][name]
    by_place: dict[tuple[float, float], set[str]] = {}
    for x, y, text, *_ in marks:
        by_place.setdefault((x, y), set()).add(text)
    for x, y, *_ in marks[:: max(len(marks) // 5, 1)]:
        ordinary_page.point_at(name, x, y)
        tip = ordinary_page.page.locator("#tooltip")
        assert tip.is_visible()
        assert tip.text_content() in by_place[x, y]
    ordinary_page.page.mouse.move(2, 2)
    assert not ordinary_page.page.locator("#tooltip").is_visible()


def test_marks_can_be_walked_with_the_keyboard(ordinary_page: Opened) -> None:
    marks = ordinary_page.data["tooltips"]["order"]
    page = ordinary_page.page
    page.locator("#order-drawing").focus()
    for step, key in enumerate(("Home", "ArrowRight")):
        page.keyboard.press(key)
        assert page.locator("#tooltip").text_content() == marks[step][2]
    page.keyboard.press("End")
    assert page.locator("#tooltip").text_content() == marks[-1][2]
    page.keyboard.press("Escape")
    assert not page.locator("#tooltip").is_visible()


def test_a_tip_is_seen_whole_wherever_its_mark_lies(browser: Browser, pages: dict[str, Path]) -> None:
    opened = Opened(browser, pages["ordinary"], viewport={"width": 700, "height": 300})
    tip = opened.page.locator("#tooltip")
    for name in ("errors", "scatter", "missing"):
        opened.page.locator(f"#{name}-drawing").focus()
        for key in ("Home", "End", "PageUp"):
            opened.page.keyboard.press(key)
            opened.page.wait_for_timeout(100)
            box = tip.bounding_box()
            assert box is not None
            assert 0 <= box["x"] <= 700 - box["width"]
            assert 0 <= box["y"] <= 300 - box["height"]
    opened.context.close()


def test_a_long_tip_after_a_short_one_at_the_edge_keeps_its_width(ordinary_page: Opened) -> None:
    width = """([left, text]) => { tooltip.hidden = false; tooltip.style.left = left; tooltip.textContent = text;
               const width = tooltip.offsetWidth; tooltip.hidden = true; return width; }"""
    long = "a sentence that is rather long " * 3
    wide, at_edge = (ordinary_page.page.evaluate(width, [left, long]) for left in ("0px", "calc(100vw - 60px)"))
    assert at_edge == wide


def test_a_tip_stays_by_its_mark_when_the_page_is_moved(browser: Browser, pages: dict[str, Path]) -> None:
    opened = Opened(browser, pages["ordinary"], has_touch=True, is_mobile=True, viewport={"width": 390, "height": 844})
    x, y, *_ = opened.data["tooltips"]["order-narrow"][0]
    box = opened.scroll_to("order-narrow", y)
    opened.page.touchscreen.tap(box["x"] + x * box["width"], box["y"] + y * box["height"])
    opened.page.locator("#tooltip").wait_for(state="visible", timeout=2000)
    gap = "document.querySelector('.ring').getBoundingClientRect().top - tooltip.getBoundingClientRect().bottom"
    before = opened.page.evaluate(gap)
    opened.page.evaluate("scrollBy(0, 30)")
    # It follows with the next frame, which may take a while on a busy machine.
    # (The page allows no script that is made of text, and so no `wait_for_function`.)
    until = time.monotonic() + 30
    while abs(opened.page.evaluate(gap) - before) > 1 and time.monotonic() < until:
        opened.page.wait_for_timeout(100)
    assert opened.page.evaluate(gap) == pytest.approx(before, abs=1)
    opened.context.close()


def test_a_touch_tells_what_a_mark_is(browser: Browser, pages: dict[str, Path]) -> None:
    opened = Opened(browser, pages["ordinary"], has_touch=True, is_mobile=True, viewport={"width": 390, "height": 844})
    x, y, text, *_ = opened.data["tooltips"]["order-narrow"][0]
    box = opened.scroll_to("order-narrow", y)
    opened.page.touchscreen.tap(box["x"] + x * box["width"], box["y"] + y * box["height"])
    opened.page.locator("#tooltip").wait_for(state="visible", timeout=2000)
    assert opened.page.locator("#tooltip").text_content() == text
    opened.context.close()


def at(facts: dict[str, Any], app: int, ratio: float, drawing: int = 0) -> float:
    """Return where a ratio lies on the axis of an application, worked out from where the axis begins and ends."""
    left, right = facts["spans"][drawing]
    low, high = facts["apps"][app]["axis"][:2]
    return float(left + (right - left) * math.log(ratio / low) / math.log(high / low))


def dots(page: Page, drawing: str = "vector") -> list[float]:
    selector = f"#{drawing}-drawing [id^='{drawing}-dot'] use"
    return list(page.eval_on_selector_all(selector, "all => all.map(element => +element.getAttribute('x'))"))


def test_choosing_an_application_moves_the_marks_of_figure_3(ordinary_page: Opened) -> None:
    page, facts = ordinary_page.page, ordinary_page.chooser
    names = [app["name"] for app in facts["apps"]]
    first = facts["chosen"]
    other = (first + 1) % len(names)

    def shown() -> tuple[Any, ...]:
        words = [page.locator(f"#vector-{part}").inner_text() for part in ("question", "caption")]
        return dots(page), dots(page, "vector-narrow"), words

    drawn = shown()
    page.locator("#app").select_option(label=names[other])
    moved = shown()
    for place in (0, 1):
        wanted = [at(facts, other, mark[1], place) for row in facts["apps"][other]["marks"] for mark in row]
        assert moved[place] == pytest.approx(wanted, abs=0.1)
    assert moved[0] != drawn[0]
    assert names[other] in moved[2][0]
    assert moved[2][1].startswith(names[other])
    low, _, high, words = facts["apps"][other]["marks"][0][0]
    view = page.eval_on_selector("#vector-drawing svg", "element => element.viewBox.baseVal.width")
    box = ordinary_page.scroll_to("vector", 0.05)
    dot = page.locator("#vector-dot-0-0").bounding_box()
    assert dot is not None
    middle = (at(facts, other, low) + at(facts, other, high)) / 2
    page.mouse.move(box["x"] + middle / view * box["width"], dot["y"] + dot["height"] / 2)
    assert page.locator("#tooltip").text_content() == f"{facts['platforms'][0]}, measured: {words}"
    page.locator("#app").select_option(label=names[first])
    # Back at the first choice the script shows what matplotlib drew; ratios come with four digits.
    for place in (0, 1):
        assert shown()[place] == pytest.approx(drawn[place], abs=0.1)
    assert shown()[2] == drawn[2]


def test_the_axis_of_figure_3_fits_what_is_chosen(ordinary_page: Opened) -> None:
    page, facts = ordinary_page.page, ordinary_page.chooser
    spans = []
    for number, app in enumerate(facts["apps"]):
        page.locator("#app").select_option(label=app["name"])
        left, right = facts["spans"][0]
        places = dots(page)
        assert min(places) >= left - 0.1 and max(places) <= right + 0.1
        # The furthest quartile comes near the end of the axis, whichever application it is.
        furthest = max(at(facts, number, mark[2]) for row in app["marks"] for mark in row)
        spans.append((furthest - left) / (right - left))
        ticks = page.locator("#vector-drawing [id^='vector-tick-']")
        seen = [tick for tick in ticks.all() if tick.is_visible()]
        assert [tick.locator("text").text_content() for tick in seen] == [words for _, words in app["axis"][2]]
        drawing = page.locator("#vector-drawing").bounding_box()
        view = page.eval_on_selector("#vector-drawing svg", "element => element.viewBox.baseVal.width")
        assert drawing is not None
        for tick, (ratio, _) in zip(seen, app["axis"][2], strict=True):
            label = tick.locator("text").bounding_box()
            assert label is not None
            middle = (label["x"] + label["width"] / 2 - drawing["x"]) / drawing["width"] * view
            assert middle == pytest.approx(at(facts, number, ratio), abs=1.5)
    assert min(spans) > 0.9
    page.locator("#app").select_option(label=facts["apps"][facts["chosen"]]["name"])


def test_predicted_marks_stay_hollow_as_the_legend_has_them(ordinary_page: Opened) -> None:
    page, facts = ordinary_page.page, ordinary_page.chooser
    for app in (facts["apps"][1]["name"], facts["apps"][facts["chosen"]]["name"]):
        page.locator("#app").select_option(label=app)
        fills = page.eval_on_selector_all(
            "#vector-drawing [id^='vector-dot-0-'] use",
            "all => all.map(element => [element.closest('g[id]').id, getComputedStyle(element).fill,"
            " getComputedStyle(element).fillOpacity])",
        )
        for identity, fill, opacity in fills:
            hollow = fill == "none" or float(opacity) == 0.0
            assert hollow == (not identity.endswith("-0")), (identity, fill, opacity)


def test_the_script_has_the_tooltips_of_the_first_choice_as_the_figure_has(ordinary_page: Opened) -> None:
    page, tooltips = ordinary_page.page, ordinary_page.data["tooltips"]["vector"]
    chosen = ordinary_page.chooser
    page.locator("#app").select_option(label=chosen["apps"][chosen["chosen"]]["name"])
    page.locator("#app").dispatch_event("change")
    page.locator("#vector-drawing").focus()
    walked = []
    for key in ("Home", *["ArrowRight"] * (len(tooltips) - 1)):
        page.keyboard.press(key)
        walked.append(page.locator("#tooltip").text_content())
    assert walked == [tooltip[2] for tooltip in tooltips]


@pytest.fixture
def several_page(browser: Browser, pages: dict[str, Path]) -> Iterator[Opened]:
    opened = Opened(browser, pages["several"])
    yield opened
    opened.context.close()


def test_a_card_or_the_list_switches_to_another_evaluation(several_page: Opened) -> None:
    page = several_page.page
    assert several_page.messages == []
    first, second = page.locator(".lead").all()
    assert first.is_visible() and not second.is_visible()
    assert [card.get_attribute("aria-pressed") for card in page.locator(".card").all()] == ["true", "false"]
    page.locator(".card").nth(1).press("Enter")
    assert second.is_visible() and not first.is_visible()
    assert page.locator("#view").input_value() == "app"
    assert page.locator("#app-errors-drawing").is_visible()
    assert not page.locator("#errors-drawing").is_visible()
    # What is of the table alone stays, whichever split is shown.
    assert page.locator("#distribution-drawing").is_visible()
    page.locator("#view").select_option("workload")
    assert first.is_visible() and page.locator("#errors-drawing").is_visible()


def test_an_address_opens_the_evaluation_that_it_names(browser: Browser, pages: dict[str, Path]) -> None:
    opened = Opened(browser, pages["several"])
    opened.page.goto(f"{opened.url}#app")
    opened.page.reload()
    assert opened.page.locator("#app-picks").is_visible()
    assert not opened.page.locator("#picks").is_visible()
    opened.context.close()


def test_a_model_that_is_chosen_is_shown_by_every_figure_and_table_that_has_it(several_page: Opened) -> None:
    page = several_page.page
    for model, shown in (("ridge", "ridge"), ("median", "median"), ("crossperf", "crossperf")):
        page.locator("#model").select_option(model)
        for section in ("errors", "scatter"):
            titles = [title.inner_text() for title in page.locator(f"#{section} h3").all() if title.is_visible()]
            assert len(titles) == 1 and shown in titles[0]
        captions = [own.inner_text() for own in page.locator("#worst caption").all() if own.is_visible()]
        assert captions == [f"The worst 10 predictions of {shown}, one for each workload"]
        assert shown in page.locator("#answer .numbers:visible").get_attribute("aria-label")
    # The second evaluation lacks ridge, and falls back on its first model.
    page.locator("#model").select_option("ridge")
    page.locator(".card").nth(1).click()
    (title,) = [own.inner_text() for own in page.locator("#app-errors h3").all() if own.is_visible()]
    assert "crossperf" in title


def test_a_negative_r2_and_a_constant_that_wins_are_said(several_page: Opened) -> None:
    page = several_page.page
    page.locator(".card").nth(1).click()
    words = page.locator("#answer [data-view=app]").inner_text()
    assert "worse than answering each platform's mean every time" in words
    assert "The constant pick wins here: always taking" in words
    assert "is the better choice" in page.locator("#answer [data-view=app] .lead").inner_text()


def test_paper_shows_all_evaluations(several_page: Opened) -> None:
    page = several_page.page
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert all(lead.is_visible() for lead in page.locator(".lead").all())
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert [lead.is_visible() for lead in page.locator(".lead").all()] == [True, False]


def _downloaded(page: Page, button: Locator) -> Download:
    """Return what a button saves; of many downloads in a row the browser may drop one, so it is pressed again then."""
    for _ in range(3):
        try:
            with page.expect_download(timeout=10_000) as saving:
                button.click()
        except PlaywrightTimeoutError:
            continue
        return saving.value
    raise AssertionError("nothing was downloaded")


@pytest.mark.parametrize(("kind", "begins"), [("svg", b"<svg"), ("png", b"\x89PNG")])
def test_every_figure_can_be_downloaded(ordinary_page: Opened, kind: str, begins: bytes) -> None:
    page = ordinary_page.page
    bars = [bar for bar in page.locator(".tools").all() if bar.is_visible()]
    assert len(bars) == len(FIGURES)
    for bar in bars[:: 1 if kind == "svg" else 5]:
        saved = _downloaded(page, bar.locator(f"button[data-tool={kind}]"))
        name = bar.get_attribute("data-name")
        assert saved.suggested_filename == f"{name}.{kind}"
        content = Path(saved.path()).read_bytes()
        assert content.startswith(begins), name
        assert len(content) > 2000
        if kind == "svg":
            assert b"var(--" not in content
            assert ET.fromstring(content).find("{http://www.w3.org/2000/svg}title").text.endswith("?")  # noqa: S314


def test_a_figure_can_be_copied_as_an_image(browser: Browser, pages: dict[str, Path]) -> None:
    opened = Opened(browser, pages["least"], permissions=["clipboard-read", "clipboard-write"])
    page = opened.page
    button = page.locator("#order .tools button[data-tool=copy]")
    button.click()
    expect(button).to_have_text("copied")
    kinds = page.evaluate("navigator.clipboard.read().then((items) => items.flatMap((item) => item.types))")
    assert kinds == ["image/png"]
    opened.context.close()


def test_a_hostile_name_is_shown_as_it_is_written(ordinary_page: Opened) -> None:
    assert HOSTILE in ordinary_page.column("applications-table", 0)
    assert ordinary_page.page.locator("b.x").count() == 0
    assert any(HOSTILE in mark[2] for mark in ordinary_page.data["tooltips"]["errors"])
    options = ordinary_page.page.locator("#app option").all_text_contents()
    assert HOSTILE in options


def test_tables_sort_both_ways_by_number_and_by_word(ordinary_page: Opened) -> None:
    page, table = ordinary_page.page, "applications-table"
    heads = page.locator(f"div[aria-labelledby='{table}'] thead th")
    before = ordinary_page.column(table, 1)
    assert before == sorted(before, key=float, reverse=True)
    heads.nth(1).locator("button").click()
    assert heads.nth(1).get_attribute("aria-sort") == "ascending"
    assert ordinary_page.column(table, 1) == sorted(before, key=float)
    heads.nth(1).locator("button").press("Enter")
    assert heads.nth(1).get_attribute("aria-sort") == "descending"
    assert ordinary_page.column(table, 1) == sorted(before, key=float, reverse=True)
    heads.nth(0).locator("button").click()
    assert heads.nth(1).get_attribute("aria-sort") is None
    names = [name for name in ordinary_page.column(table, 0) if name != HOSTILE]
    assert names == sorted(names)


def test_gaps_stay_last_whichever_way_a_column_is_sorted(ordinary_page: Opened) -> None:
    page = ordinary_page.page
    page.locator("details.all-scores summary").click()
    # The gap is put into the open page: no toy table leaves a figure undefined for some models only.
    page.eval_on_selector(
        "div[aria-labelledby='scores'] tbody tr td",
        "element => { element.removeAttribute('data-value'); element.textContent = '–' }",
    )
    button = page.locator("div[aria-labelledby='scores'] thead th button").nth(1)
    for _ in range(2):
        button.click()
        assert ordinary_page.column("scores", 1)[-1] == "–"
