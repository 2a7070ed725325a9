"""The sdist and the wheel made from it, built once for all tests here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent.parent


class Built(NamedTuple):
    sdist: Path
    wheel: Path


def build(out: Path) -> Built:
    """Let `python -m build` make the sdist from the checkout, and the wheel from what the sdist holds."""
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(ROOT)],
        check=True,
        capture_output=True,
        timeout=300,
    )
    (sdist,), (wheel,) = out.glob("*.tar.gz"), out.glob("*.whl")
    return Built(sdist, wheel)


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The sdist and the wheel."""
    return build(tmp_path_factory.mktemp("dist"))
