"""The wheel does the main job with the oldest releases that it says it works with."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.collect.real import unavailable
from tests.packaging.conftest import Built
from tests.packaging.test_build import PROJECT

#: The main job, a line a command, without any extra.
COMMANDS = """
--help
--version
toy --apps 6 --inputs 4 --seed 1 -o runs.csv
toy --apps 6 --inputs 4 --seed 1 -o runs.parquet
toy --apps 6 --inputs 4 --seed 1 -o runs.csv.gz
toy --apps 1 --inputs 1 --platforms 4 --seed 2 -o new.jsonl
runs check runs.csv
runs info runs.parquet
evaluate runs.csv --models median,ridge,random-forest --split app --jobs 2 --json evaluation.json
train runs.parquet --model random-forest -o model
predict model new.jsonl --json predictions.json
platforms --file platforms.json
"""


def lowest(requirement: str) -> str:
    """Return the requirement with its lower bound as the only release it allows.

    >>> lowest("click>=8.2")
    'click==8.2'
    """
    name, bound = re.fullmatch(r"([\w-]+)>=([\d.]+)", requirement.strip()).groups()  # type: ignore[union-attr]
    return f"{name}=={bound}"


def crossperf(folder: Path, line: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run one command of the installed package: whatever PYTHONPATH says, not of the checkout."""
    return subprocess.run(
        [str(folder / "crossperf"), *line.split()],
        cwd=cwd,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture(scope="module")
def oldest(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment that holds the wheel and the lower bound of each dependency; its folder of programs."""
    folder = tmp_path_factory.mktemp("oldest")
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, timeout=120)
    pins = [lowest(requirement) for requirement in PROJECT["dependencies"]]
    done = subprocess.run(
        [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", str(built.wheel), *pins],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if "Failed to establish a new connection" in done.stderr or "Temporary failure in name resolution" in done.stderr:
        unavailable("no package index answers, to install the oldest releases from")
    assert done.returncode == 0, done.stderr
    return folder / "bin"


@pytest.mark.slow
def test_the_main_job_runs_on_the_oldest_releases_allowed(oldest: Path, tmp_path: Path) -> None:
    for line in COMMANDS.strip().splitlines():
        done = crossperf(oldest, line, tmp_path)
        assert done.returncode == 0, f"crossperf {line}: {done.stdout}{done.stderr}"
        assert "Traceback" not in done.stderr
    assert (tmp_path / "predictions.json").stat().st_size


@pytest.mark.slow
def test_a_missing_extra_is_named_in_one_sentence(oldest: Path, tmp_path: Path) -> None:
    crossperf(oldest, "toy --apps 6 --inputs 4 -o runs.csv", tmp_path)
    crossperf(oldest, "evaluate runs.csv --models median --json evaluation.json", tmp_path)
    for line in ("train runs.csv --model vae-dnn -o model", "report evaluation.json -o report"):
        done = crossperf(oldest, line, tmp_path)
        assert done.returncode == 1, f"crossperf {line}: {done.stdout}{done.stderr}"
        assert "pip install 'crossperf[" in done.stderr
        assert "Traceback" not in done.stderr
