"""The report's page opened in a browser: what it says, asks for and shows, and where."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PAGES = ("ordinary", "wide", "least", "several")


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
        """What the script is given, with the texts of tooltips in their places."""
        facts = dict(json.loads(self.page.locator("#page-data").text_content() or ""))
        for mark in (mark for marks in facts["tooltips"].values() for mark in marks):
            mark[2] = facts["texts"][mark[2]]
        return facts

    @property
    def chooser(self) -> dict[str, Any]:
        return dict(self.data["views"][0]["chooser"])

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
