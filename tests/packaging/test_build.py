"""What is published holds what a user needs, and nothing else."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from tests.packaging.conftest import ROOT, Built, build

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def names_in(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def sources() -> set[str]:
    src = ROOT / "src"
    files = (path for path in src.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(src).as_posix() for path in files if ".egg-info" not in str(path)}


@pytest.mark.slow
def test_the_wheel_holds_every_file_of_the_package_and_nothing_else(built: Built) -> None:
    packaged = {name for name in names_in(built.wheel) if ".dist-info/" not in name}
    assert packaged == sources()
    for name in (
        "py.typed",
        "report/template.html",
        "schedule/slurm/job_submit.lua",
        "datasets/data/testbed.parquet",
        "model/data/arrays.npz",
        "model/data/model.json",
        "collect/cupti_inject.c",
        "collect/region.c",
        "include/crossperf.h",
    ):
        assert f"crossperf/{name}" in packaged


@pytest.mark.slow
def test_the_wheel_carries_the_licence_and_names_no_address(built: Built) -> None:
    (info,) = (name for name in names_in(built.wheel) if name.endswith(".dist-info/METADATA"))
    assert info.replace("METADATA", "licenses/LICENSE") in names_in(built.wheel)
    with zipfile.ZipFile(built.wheel) as archive:
        metadata = Parser().parsestr(archive.read(info).decode())
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Version"] == PROJECT["version"]
    assert metadata.get_all("Project-URL") is None


@pytest.mark.slow
def test_built_twice_sdist_and_wheel_are_the_same_bytes(built: Built, tmp_path: Path) -> None:
    again = build(tmp_path)
    assert again.sdist.read_bytes() == built.sdist.read_bytes()
    assert again.wheel.read_bytes() == built.wheel.read_bytes()


@pytest.mark.slow
def test_the_sdist_holds_what_is_needed_to_work_on_it(built: Built) -> None:
    with tarfile.open(built.sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {
        "LICENSE",
        "README.md",
        "CHANGELOG.md",
        "Makefile",
        "constraints.txt",
        "requirements.lock",
        "mkdocs.yml",
        "tests/conftest.py",
    }
    assert wanted <= names
    assert not any("__pycache__" in name for name in names)


@pytest.mark.slow
def test_the_bill_of_materials_names_what_is_needed_to_run_and_the_files_with_their_digests(built: Built) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "sbom.py"), str(built.wheel.parent)], check=True, capture_output=True
    )
    assert b"wrote" in done.stdout
    (path,) = built.wheel.parent.glob("*.cdx.json")
    components = {part["name"]: part for part in json.loads(path.read_text())["components"]}
    assert {"numpy", "polars", "scikit-learn", "scipy", "click", "rich", "htmx.org"} <= components.keys()
    assert components[built.wheel.name]["hashes"][0]["content"] == hashlib.sha256(built.wheel.read_bytes()).hexdigest()
    assert "pytest" not in components


def test_the_version_is_the_same_everywhere() -> None:
    import crossperf

    assert crossperf.__version__ == PROJECT["version"]
    assert f"\nversion: {PROJECT['version']}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
