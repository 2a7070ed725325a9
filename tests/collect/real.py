"""Real tools for the tests: skipped with a reason where absent, a failure where CI promises them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent / "programs"


def unavailable(reason: str) -> None:
    """Skip a test for want of a real part; with CI=true that is a failure."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"CI promises this part: {reason}")
    pytest.skip(reason)


def need(*programs: str) -> None:
    """Go on only where all these programs are on PATH."""
    missing = [name for name in programs if shutil.which(name) is None]
    if missing:
        unavailable(f"{', '.join(missing)} not installed; 'make test' as root installs what the tests need")


def need_papi_that_counts() -> None:
    """Go on only where PAPI knows the processor: where it does not, it counts no software events either.

    That is no part that could be installed, so it is a skip in CI as well.
    """
    need("papi_component_avail")
    shown = subprocess.run(["papi_component_avail"], capture_output=True, text=True, check=True).stdout
    name, reason = re.search(r"Name: +(perf_event) .*\n(.*)", shown).groups()  # type: ignore[union-attr]
    if "Disabled" in reason:
        pytest.skip(f"PAPI's {name} does not count on this processor:{reason.partition('Disabled:')[2]}")


def compiled(source: str, folder: Path, *options: str) -> Path:
    """Return a program of `tests/collect/programs`, compiled by the C compiler here."""
    need("gcc")
    program = folder / Path(source).stem
    subprocess.run(["gcc", "-O1", *options, "-o", str(program), str(PROGRAMS / source), "-lm"], check=True)
    return program


def compiled_mpi(source: str, folder: Path) -> Path:
    """Return an MPI program of `tests/collect/programs`."""
    need("mpicc", "mpirun")
    program = folder / Path(source).stem
    subprocess.run(["mpicc", "-O1", "-o", str(program), str(PROGRAMS / source)], check=True)
    return program


def between(first: dict[str, float], second: dict[str, float]) -> dict[str, float]:
    """Return what the second execution has beyond the first: start-up and libraries drop out."""
    return {name: second[name] - first[name] for name in second}
