"""The studies under benchmarks/ can be started: each has imports that exist and says how it is used."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
#: Those that a person starts; the others are parts of them.
STUDIES = sorted(path for path in (ROOT / "benchmarks").glob("*.py") if "ArgumentParser(" in path.read_text("utf-8"))


def test_most_files_are_studies() -> None:
    assert len(STUDIES) > 15


@pytest.mark.slow
@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_a_study_says_how_it_is_used(path: Path) -> None:
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, path, "--help"], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("usage: ")
