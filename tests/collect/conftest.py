"""The known programs, compiled once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.collect.real import compiled


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The programs with a known answer by name."""
    folder = tmp_path_factory.mktemp("programs")
    names = ["dgemm", "chase", "loop", "files", "threads", "children", "avx512", "fma", "jit", "fill"]
    return {name: compiled(f"{name}.c", folder, "-pthread") for name in names}


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """The variables of a user whose settings are empty."""
    return os.environ | {"XDG_CONFIG_HOME": str(tmp_path / "settings")}
