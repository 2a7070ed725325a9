"""One server and one browser for all tests of pages."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.collect.real import need, unavailable
from tests.report.test_browser import FLAGS
from tests.serve.web.world import World

try:
    from playwright.sync_api import Browser, sync_playwright
except ImportError:
    sync_playwright = None  # type: ignore[assignment]


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World.make(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="session")
def address(world: World) -> Iterator[str]:
    """The address of the real server, as 'crossperf serve' prints it."""
    server, address = world.start()
    try:
        yield address
        server.terminate()
        assert server.wait(60) in (0, -15, 143)
    finally:
        server.kill()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if sync_playwright is None:
        unavailable("playwright is not installed; pip install 'crossperf[dev]' brings it")
    need("chromium")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
        yield launched
        launched.close()


os.environ.setdefault("XDG_CACHE_HOME", "")  # maps of the tests' models are not kept in the user's cache
