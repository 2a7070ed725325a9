"""A real browser, for whatever shows pages."""

from __future__ import annotations

from collections.abc import Iterator

from tests.collect.real import need, unavailable

try:
    from playwright.sync_api import Browser, sync_playwright
except ImportError:
    sync_playwright = None  # type: ignore[assignment]

_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def launched() -> Iterator[Browser]:
    """Yield Chromium, and close it when a module is done: its event loop is in the way of others."""
    if sync_playwright is None:
        unavailable("playwright is not installed; pip install 'crossperf[dev]' brings it")
    need("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=_FLAGS)
        yield browser
        browser.close()
