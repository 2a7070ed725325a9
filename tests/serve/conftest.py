"""One server for the tests of a module that leave it as it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from crossperf.model import store
from crossperf.model.trained import TrainedModel
from crossperf.serve.service import Service
from tests.serve.server import Running, running


@pytest.fixture(scope="session")
def shipped() -> TrainedModel:
    """The model that ships, loaded here."""
    return store.load()


@pytest.fixture(scope="session")
def service() -> Iterator[Service]:
    """A service of the model that ships, in this process."""
    own = Service.open()
    yield own
    own.close()


@pytest.fixture(scope="session")
def run(service: Service) -> dict[str, Any]:
    """A run that the model knows, as JSON, under another name."""
    known = service.workloads("sort", limit=1) or service.workloads(limit=1)
    return service.run_of(known[0].app, known[0].input).to_json() | {"app": "mine", "input": "7"}


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A real server, with a token for writing; reading needs none."""
    with running(tmp_path_factory.mktemp("server")) as own:
        yield own
