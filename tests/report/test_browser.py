"""The page in a real browser: what a person sees, points at, chooses, sorts and prints."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from crossperf.evaluation.result import Evaluation
from crossperf.report.figures import FIGURES
from tests.collect.real import need, unavailable
from tests.report.conftest import HOSTILE

pytestmark = pytest.mark.slow

try:
    from playwright.sync_api import Browser, Page, sync_playwright
except ImportError:
    sync_playwright = None  # type: ignore[assignment]

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PAGES = ("ordinary", "wide", "least")
#: What WCAG asks of ordinary text, and of marks and large text.
READABLE, VISIBLE = 4.5, 3.0


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if sync_playwright is None:
        unavailable("playwright is not installed; pip install 'crossperf[dev]' brings it")
    need("chromium")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
        yield launched
        launched.close()


class Opened:
    """A page in a browser, with every word in its console and every request that it made."""

    def __init__(self, browser: Browser, path: Path, **settings: Any) -> None:
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **settings})
        self.page: Page = self.context.new_page()
        self.messages: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.messages.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.messages.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.url = path.as_uri()
        self.page.goto(self.url)

    @property
    def data(self) -> dict[str, Any]:
        return dict(json.loads(self.page.locator("#page-data").text_content() or ""))

    def point_at(self, name: str, x: float, y: float) -> None:
        """Move the pointer to a place of a drawing, given as shares of its width and height."""
        box = self.scroll_to(name, y)
        self.page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"])

    def scroll_to(self, name: str, y: float) -> dict[str, float]:
        """Bring a place of a drawing to the middle of the window; return where the drawing lies then."""
        drawing = self.page.locator(f"#{name}-drawing")
        drawing.evaluate(
            """(element, y) => new Promise((done) => {
                const box = element.getBoundingClientRect();
                scrollTo({ top: scrollY + box.top + y * box.height - innerHeight / 2, behavior: "instant" });
                requestAnimationFrame(() => requestAnimationFrame(done));
            })""",
            y,
        )
        box = drawing.bounding_box()
        assert box is not None
        return dict(box)

    def colour(self, selector: str, property_: str = "color") -> tuple[float, ...]:
        text = self.page.eval_on_selector(selector, f"element => getComputedStyle(element)['{property_}']")
        return tuple(float(number) for number in re.findall(r"[\d.]+", text)[:3])

    def contrast(self, selector: str, property_: str = "color") -> float:
        """Return WCAG's contrast of a colour against the page."""
        light = sorted(map(luminance, (self.colour(selector, property_), self.colour("html", "backgroundColor"))))
        return (light[1] + 0.05) / (light[0] + 0.05)

    def column(self, table: str, number: int) -> list[str]:
        cells = self.page.locator(f"div[aria-labelledby='{table}'] tbody tr > :nth-child({number + 1})")
        return cells.all_text_contents()


def luminance(rgb: tuple[float, ...]) -> float:
    """Return the relative luminance of a colour, as WCAG defines it."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (value / 255 for value in rgb)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_luminance_is_that_of_the_standard() -> None:
    assert luminance((255, 255, 255)) == pytest.approx(1.0)
    assert luminance((119, 119, 119)) == pytest.approx(0.1845, abs=1e-4)


@pytest.fixture(scope="module", params=PAGES)
def each(request: pytest.FixtureRequest, browser: Browser, pages: dict[str, Path]) -> Iterator[Opened]:
    opened = Opened(browser, pages[request.param])
    yield opened
    opened.context.close()


@pytest.fixture(scope="module")
def ordinary_page(browser: Browser, pages: dict[str, Path]) -> Iterator[Opened]:
    opened = Opened(browser, pages["ordinary"])
    yield opened
    opened.context.close()


def test_the_page_opens_without_a_word_in_the_console_and_asks_for_nothing(each: Opened) -> None:
    assert each.messages == []
    assert [url for url in each.asked if not url.startswith("data:")] == [each.url]


def test_every_figure_is_drawn_or_says_why_not(each: Opened) -> None:
    marks = each.data["tooltips"]
    for name in FIGURES:
        section = each.page.locator(f"section#{name}")
        assert section.count() == 1, name
        if name not in marks:
            assert len(section.locator(".nothing").inner_text()) > 20, name
            continue
        box = section.locator("svg").bounding_box()
        assert box is not None, name
        assert box["width"] > 300, name
        assert box["height"] > 60, name
        assert box["width"] <= 1280, name
        assert section.locator("svg path, svg use, svg image").count() > 3, name
        assert marks[name], name
        assert all(-0.01 <= mark[0] <= 1.01 and -0.01 <= mark[1] <= 1.01 for mark in marks[name]), name
        assert len(section.locator("figcaption").inner_text()) > 20, name


def test_which_figures_can_be_drawn_is_known_for_each_page(
    browser: Browser, pages: dict[str, Path], ordinary: Evaluation
) -> None:
    assert ordinary.latent is not None
    opened = Opened(browser, pages["ordinary"])
    assert set(opened.data["tooltips"]) == set(FIGURES)
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


def test_a_tip_stays_by_its_mark_when_a_drawing_is_moved_sideways(browser: Browser, pages: dict[str, Path]) -> None:
    opened = Opened(browser, pages["ordinary"], has_touch=True, is_mobile=True, viewport={"width": 390, "height": 844})
    x, y, *_ = opened.data["tooltips"]["order"][0]
    box = opened.scroll_to("order", y)
    opened.page.touchscreen.tap(box["x"] + x * box["width"], box["y"] + y * box["height"])
    opened.page.locator("#tooltip").wait_for(state="visible", timeout=2000)
    gap = "document.querySelector('.ring').getBoundingClientRect().top - tooltip.getBoundingClientRect().bottom"
    before = opened.page.evaluate(gap)
    opened.page.evaluate("document.querySelector('#order .pan').scrollLeft = 40; scrollBy(0, 30)")
    opened.page.wait_for_timeout(200)
    assert opened.page.evaluate(gap) == pytest.approx(before, abs=1)
    opened.context.close()


def test_a_touch_tells_what_a_mark_is(browser: Browser, pages: dict[str, Path]) -> None:
    opened = Opened(browser, pages["ordinary"], has_touch=True, is_mobile=True, viewport={"width": 390, "height": 844})
    x, y, text, *_ = opened.data["tooltips"]["order"][0]
    box = opened.scroll_to("order", y)
    opened.page.touchscreen.tap(box["x"] + x * box["width"], box["y"] + y * box["height"])
    opened.page.locator("#tooltip").wait_for(state="visible", timeout=2000)
    assert opened.page.locator("#tooltip").text_content() == text
    opened.context.close()


def test_choosing_an_application_moves_the_marks_of_figure_3(ordinary_page: Opened) -> None:
    page, before = ordinary_page.page, ordinary_page.data
    names = [app["name"] for app in before["chooser"]["apps"]]
    first = before["chooser"]["chosen"]
    other = (first + 1) % len(names)

    def shown() -> tuple[Any, ...]:
        x = page.eval_on_selector_all(
            "#vector [id^=vector-dot] use", "all => all.map(element => +element.getAttribute('x'))"
        )
        return x, page.locator("#vector-question").inner_text(), page.locator("#vector-caption").inner_text()

    drawn = shown()
    page.locator("#app").select_option(label=names[other])
    moved = shown()
    wanted = [mark[1] for row in before["chooser"]["apps"][other]["marks"] for mark in row]
    assert moved[0] == pytest.approx(wanted)
    assert moved[0] != drawn[0]
    assert names[other] in moved[1]
    assert moved[2].startswith(names[other])
    low, _, high, words = before["chooser"]["apps"][other]["marks"][0][0]
    view = page.eval_on_selector("#vector svg", "element => element.viewBox.baseVal.width")
    dot = page.locator("#vector-dot-0-0").bounding_box()
    box = ordinary_page.scroll_to("vector", 0.05)
    dot = page.locator("#vector-dot-0-0").bounding_box()
    assert dot is not None
    page.mouse.move(box["x"] + (low + high) / 2 / view * box["width"], dot["y"] + dot["height"] / 2)
    assert page.locator("#tooltip").text_content() == f"{before['chooser']['platforms'][0]}, measured: {words}"
    page.locator("#app").select_option(label=names[first])
    # Back at the first choice the script shows what matplotlib drew; it rounds to a tenth of a point.
    assert shown()[0] == pytest.approx(drawn[0], abs=0.06)
    assert shown()[1:] == drawn[1:]


def test_the_script_has_the_tooltips_of_the_first_choice_as_the_figure_has(ordinary_page: Opened) -> None:
    page, tooltips = ordinary_page.page, ordinary_page.data["tooltips"]["vector"]
    chosen = ordinary_page.data["chooser"]
    page.locator("#app").select_option(label=chosen["apps"][chosen["chosen"]]["name"])
    page.locator("#app").dispatch_event("change")
    page.locator("#vector-drawing").focus()
    walked = []
    for key in ("Home", *["ArrowRight"] * (len(tooltips) - 1)):
        page.keyboard.press(key)
        walked.append(page.locator("#tooltip").text_content())
    assert walked == [tooltip[2] for tooltip in tooltips]


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
    # The gap is put into the open page: no toy table leaves a figure undefined for some models only.
    page.eval_on_selector(
        "div[aria-labelledby='scores'] tbody tr td",
        "element => { element.removeAttribute('data-value'); element.textContent = '–' }",
    )
    button = page.locator("div[aria-labelledby='scores'] thead th button").nth(1)
    for _ in range(2):
        button.click()
        assert ordinary_page.column("scores", 1)[-1] == "–"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_is_readable_on_a_light_and_on_a_dark_ground(
    browser: Browser, pages: dict[str, Path], scheme: Any
) -> None:
    opened = Opened(browser, pages["ordinary"], color_scheme=scheme)
    ground = luminance(opened.colour("html", "backgroundColor"))
    assert ground > 0.9 if scheme == "light" else ground < 0.02
    for selector in (".lead", ".about", "figcaption", "td.best", "thead th", "tfoot td", "nav a", ".caveats li"):
        assert opened.contrast(selector) >= READABLE, selector
    for name in FIGURES:
        assert opened.contrast(f"#{name} svg text", "fill") >= READABLE, name
    opened.context.close()


def test_the_switch_turns_light_into_dark_and_back(browser: Browser, pages: dict[str, Path]) -> None:
    opened = Opened(browser, pages["least"], color_scheme="light")
    seen = []
    for label in ("dark", "light", "dark"):
        seen.append(luminance(opened.colour("html", "backgroundColor")))
        assert opened.page.locator("#theme").text_content() == label
        opened.page.locator("#theme").press("Enter")
    assert seen[0] == seen[2] > 0.9
    assert seen[1] < 0.02
    opened.context.close()


def test_paper_is_white_and_hides_nothing(browser: Browser, pages: dict[str, Path]) -> None:
    opened = Opened(browser, pages["ordinary"], color_scheme="dark")
    page = opened.page
    page.locator("#theme").click()
    page.locator("#theme").click()  # dark by choice as well
    page.emulate_media(media="print", color_scheme="dark")
    assert opened.colour("html", "backgroundColor") == (255, 255, 255)
    assert opened.contrast("figcaption") >= READABLE
    assert opened.contrast("#order svg text", "fill") >= READABLE
    assert not page.locator("nav").is_visible()
    assert not page.locator("#theme").is_visible()
    tall = page.locator(".scroll.tall").first
    assert tall.evaluate("element => element.scrollHeight <= element.clientHeight + 1")
    assert page.locator("#missing-table").is_visible()
    assert page.eval_on_selector("#order", "element => getComputedStyle(element).breakInside") == "avoid"
    # Chromium leaves buttons out of a table's head where it is repeated on the next page.
    assert page.eval_on_selector("thead button", "element => getComputedStyle(element).display") == "contents"
    assert page.pdf(format="A4")[:5] == b"%PDF-"
    opened.context.close()


def test_without_its_script_the_page_still_tells_everything(browser: Browser, pages: dict[str, Path]) -> None:
    opened = Opened(browser, pages["ordinary"], java_script_enabled=False)
    page = opened.page
    assert page.locator("#scores").is_visible()
    assert page.locator("#vector svg").is_visible()
    assert page.locator("#applications tbody tr").count() > 5
    assert not page.locator("#app").is_visible()
    assert not page.locator("#theme").is_visible()
    page.locator("summary").first.click()
    assert page.locator("dl").first.is_visible()
    opened.context.close()


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", [360, 1920])
def test_a_phone_and_a_projector_need_no_sideways_scrolling(
    browser: Browser, pages: dict[str, Path], name: str, width: int
) -> None:
    opened = Opened(browser, pages[name], viewport={"width": width, "height": 800})
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
    opened.context.close()


def test_headings_are_in_order_and_figures_are_named(each: Opened) -> None:
    levels = each.page.eval_on_selector_all("h1, h2, h3", "all => all.map(element => +element.tagName[1])")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    images = each.page.locator("svg[role=img]")
    for number in range(images.count()):
        for attribute in ("aria-labelledby", "aria-describedby"):
            named = images.nth(number).get_attribute(attribute)
            assert each.page.locator(f"[id='{named}']").count() == 1
    ids = each.page.eval_on_selector_all("[id]", "all => all.map(element => element.id)")
    assert len(ids) == len(set(ids))


def test_everything_that_acts_can_be_reached_with_tab(each: Opened) -> None:
    out_of_reach = each.page.eval_on_selector_all(
        "a, button, select, summary, .scroll, .drawing", "all => all.filter(element => element.tabIndex < 0).length"
    )
    assert out_of_reach == 0
