"""The page in a real browser, for every reader: colours, paper, no script, a telephone, a keyboard."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from crossperf.report.figures import FIGURES
from tests.report.opened import PAGES, Opened, luminance

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.slow

#: What WCAG asks of ordinary text, and of marks and large text.
READABLE, VISIBLE = 4.5, 3.0


def test_luminance_is_that_of_the_standard() -> None:
    assert luminance((255, 255, 255)) == pytest.approx(1.0)
    assert luminance((119, 119, 119)) == pytest.approx(0.1845, abs=1e-4)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_is_readable_on_a_light_and_on_a_dark_ground(
    browser: Browser, pages: dict[str, Path], scheme: Any
) -> None:
    opened = Opened(browser, pages["ordinary"], color_scheme=scheme)
    ground = luminance(opened.colour("html", "backgroundColor"))
    assert ground > 0.9 if scheme == "light" else ground < 0.02
    quiet = (".card .against", ".numbers .against", ".facts-line", ".tools button")
    for selector in (
        ".lead",
        ".about",
        "figcaption",
        "td.best",
        "thead th",
        "tfoot td",
        "nav a",
        ".caveats li",
        *quiet,
    ):
        if not opened.page.locator(selector).count():
            continue
        assert opened.contrast(selector) >= READABLE, selector
    for name in FIGURES:
        assert opened.contrast(f"#{name} svg text", "fill") >= READABLE, name
    swatches = opened.page.locator(".swatch i").count()
    assert swatches == 6
    for number in range(1, swatches + 1):
        assert opened.contrast(f".machines li:nth-child({number}) .swatch i", "backgroundColor") >= VISIBLE
    # The best is no alarm: its colour is not red.
    red, green, _ = opened.colour("td.best")
    assert green > red
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
    assert not page.locator("#scores").is_visible()
    page.locator("summary").first.click()
    assert page.locator("#scores").is_visible()
    assert page.locator("#vector-drawing svg").is_visible()
    assert page.locator("#applications tbody tr").count() > 5
    assert not page.locator("#app").is_visible()
    assert not page.locator("#theme").is_visible()
    assert page.locator("dl").first.is_visible()
    assert not page.locator(".tools").first.is_visible()
    opened.context.close()


def test_without_its_script_all_evaluations_are_there_each_with_its_name(
    browser: Browser, pages: dict[str, Path]
) -> None:
    opened = Opened(browser, pages["several"], java_script_enabled=False)
    assert all(lead.is_visible() for lead in opened.page.locator(".lead").all())
    names = opened.page.locator("#answer .which").all_text_contents()
    assert names == ["Held out: new inputs", "Held out: new applications"]
    opened.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["ordinary", "wide", "several"])
def test_on_a_telephone_nothing_lies_beyond_the_screen_and_words_are_large_enough(
    browser: Browser, pages: dict[str, Path], name: str, scheme: Any
) -> None:
    opened = Opened(browser, pages[name], viewport={"width": 390, "height": 844}, color_scheme=scheme)
    page = opened.page
    page.eval_on_selector_all("details", "all => all.forEach(element => { element.open = true })")
    beyond = page.eval_on_selector_all(
        ".drawing svg text, td, tbody th, .large, .card, .swatch, select, button, figcaption",
        """all => all.filter((element) => element.getClientRects().length)
            .map((element) => [element.getBoundingClientRect(), element.textContent])
            .filter(([box]) => box.right > 391 || box.left < -1).map(([box, text]) => text)""",
    )
    assert beyond == []
    least = page.eval_on_selector_all(
        ".drawing svg text",
        """all => Math.min(...all.filter((element) => element.getClientRects().length).map((element) => {
            const svg = element.ownerSVGElement;
            const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
            return parseFloat(getComputedStyle(element).fontSize) * scale;
        }))""",
    )
    assert least >= 9.5
    opened.context.close()


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", [390, 800, 1920])
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
        "a, button, select, summary, .scroll, .drawing",
        "all => all.filter(element => element.getClientRects().length && element.tabIndex < 0).length",
    )
    assert out_of_reach == 0
