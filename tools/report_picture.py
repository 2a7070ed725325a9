"""Take docs/report.png, the first screen of the demo's report as a browser shows it.

crossperf demo -o demo
python tools/report_picture.py demo/report/index.html
"""

from __future__ import annotations

import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

PICTURE = Path(__file__).parents[1] / "docs" / "report.png"
_CHROMIUM = "/usr/bin/chromium"
_FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"]
_SCREEN = {"width": 1280, "height": 900}


def main() -> None:
    """Open the page that the command names, light, and keep its first screen."""
    page_path = Path(sys.argv[1]).resolve()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_CHROMIUM, args=_FLAGS)
        page = browser.new_page(viewport=_SCREEN, color_scheme="light")  # type: ignore[arg-type]
        page.goto(page_path.as_uri())
        page.screenshot(path=PICTURE)
        browser.close()
    print(f"wrote {PICTURE}")


if __name__ == "__main__":
    main()
