from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from crossperf.cli import commands


def test_include_prints_the_folder_of_the_header() -> None:
    done = CliRunner().invoke(commands, ["include"])
    assert done.exit_code == 0
    assert "crossperf_begin" in Path(done.stdout.strip(), "crossperf.h").read_text()
