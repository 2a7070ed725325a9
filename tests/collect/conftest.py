"""The known programs, compiled once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.collect.real import compiled


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The programs with a known answer by name."""
    folder = tmp_path_factory.mktemp("programs")
    names = ["dgemm", "chase", "loop", "files", "threads", "children", "avx512", "fma", "jit", "fill"]
    return {name: compiled(f"{name}.c", folder, "-pthread") for name in names}
