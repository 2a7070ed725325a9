"""The site builds without a doubt about a link, and asks no other host for anything."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from crossperf.cli import commands
from tests.documents import ROOT

#: What a browser fetches by itself when it shows a page, as opposed to links that a reader may follow.
LOADED = re.compile(
    r"""<(?:script|img|iframe|source|video|audio)\b[^>]*\bsrc=["']?(?:https?:)?//[^"'>\s]+"""
    r"""|<link\b[^>]*rel=["']?(?:stylesheet|icon|preload|preconnect|dns-prefetch|modulepreload)[^>]*href=["']?(?:https?:)?//[^>]+"""
    r"""|@import\s+(?:url\()?["']?https?:[^;]+|url\(["']?https?:[^)]+""",
    re.IGNORECASE,
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as `make docs` builds it; a link or a name that leads nowhere stops it."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.mark.slow
def test_no_page_loads_anything_from_another_host(site: Path) -> None:
    loaded = {
        f"{path.relative_to(site)}: {match[0]}"
        for path in site.rglob("*")
        if path.suffix in (".html", ".css")
        for match in LOADED.finditer(path.read_text(encoding="utf-8"))
    }
    assert not loaded
    assert not any("mermaid" in path.read_text(encoding="utf-8") for path in site.rglob("*.html"))


@pytest.mark.slow
def test_every_command_is_in_the_reference(site: Path) -> None:
    page = (site / "reference" / "cli.html").read_text(encoding="utf-8")
    for name in commands.list_commands(click.Context(commands)):
        assert f"crossperf {name}</code>" in page


@pytest.mark.slow
def test_the_tutorial_stands_on_the_site_with_its_outputs(site: Path) -> None:
    page = (site / "tutorial.html").read_text(encoding="utf-8")
    assert "import" in page
    assert "<h1" in page
