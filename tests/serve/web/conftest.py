"""One server and one browser for all tests of pages."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.browser import launched
from tests.serve.web.world import World

if TYPE_CHECKING:
    from playwright.sync_api import Browser


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


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    yield from launched()


os.environ.setdefault("XDG_CACHE_HOME", "")  # maps of the tests' models are not kept in the user's cache
