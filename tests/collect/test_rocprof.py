"""The back end, with hand-written output in the place of a GPU."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from crossperf.collect import rocprof
from crossperf.collect.process import Runner
from crossperf.errors import CollectError

# Written by hand after AMD's description of the formats; see the note beside them.
DATA = Path(__file__).parents[1] / "data" / "rocprof"


def _recorded_rocprofv3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: str) -> None:
    program = tmp_path / "rocprofv3"
    program.write_text(
        "#!/bin/sh\n"
        'case "$1" in\n'
        '--version) echo "version: 1.0.0"; exit;;\n'
        f'--list-avail) echo "{known}"; exit;;\n'
        "esac\n"
        f'cp "$2" "{tmp_path}/asked"\n'
        'while [ "$1" != -d ]; do shift; done\n'
        f'cp -r "{DATA}/rocprofv3" "$2"; shift 3; exec "$@"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")


def test_the_back_end_asks_in_groups_and_returns_the_sums(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _recorded_rocprofv3(tmp_path, monkeypatch, " ".join(rocprof.wanted_counters()))
    measurement = rocprof.RocprofBackend().count(["true"], Runner())
    assert measurement.events["SQ_WAVES"] == 16416
    assert measurement.events["SQ_INSTS_BRANCH"] is None
    assert measurement.version == "1.0.0"
    lines = (tmp_path / "asked").read_text().splitlines()
    assert all(line.startswith("pmc: ") for line in lines)
    assert all(line.count(" SQ_") <= 8 for line in lines)
    assert sorted(word for line in lines for word in line.split()[1:]) == sorted(rocprof.wanted_counters())


def test_counters_that_the_gpu_does_not_list_are_missing_with_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _recorded_rocprofv3(tmp_path, monkeypatch, "SQ_WAVES SQ_INSTS_VALU SQ_INSTS_SALU TCC_HIT_sum TCC_MISS_sum")
    measurement = rocprof.RocprofBackend().count(["true"], Runner())
    assert measurement.events["SQ_INSTS_VALU_INT32"] is None
    assert "SQ_INSTS_GDS" not in measurement.events
    assert any("this GPU has no" in note for note in measurement.notes)


def test_a_command_that_fails_under_rocprof_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _recorded_rocprofv3(tmp_path, monkeypatch, "SQ_WAVES")
    with pytest.raises(CollectError, match="exit status 3"):
        rocprof.RocprofBackend().count(["sh", "-c", "exit 3"], Runner())


def test_why_not_names_the_absent_gpu() -> None:
    if Path("/dev/kfd").exists():
        pytest.skip("an AMD GPU is here")
    assert "no AMD GPU" in (rocprof.RocprofBackend().why_not() or "")
