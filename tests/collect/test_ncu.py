"""The back end, with recorded output in the place of a GPU."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from crossperf.collect import ncu
from crossperf.collect.process import Runner
from crossperf.errors import CollectError
from crossperf.importers.measurement import counted
from crossperf.importers.ncu import read
from tests.collect.gpu_known import (
    BLOCKS,
    BYTES_LOADED,
    BYTES_STORED,
    COPY_BLOCKS,
    COPY_BYTES,
    COPY_LAUNCHES,
    DIVERGENT,
    FP64,
    SPIN_BLOCK_SIZE,
    SPIN_LAUNCHES,
    SPIN_OCCUPANCY,
    built,
)

DATA = Path(__file__).parents[1] / "data" / "ncu"
RAW = DATA / "gpu_known.csv"


def _recorded_ncu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: Path, lacking: str = "nothing") -> None:
    """Put a program named ncu on PATH that runs the command and hands out a recorded log."""
    names = [name.removesuffix(".sum") for name in ncu.wanted_metrics() if name != lacking]
    (tmp_path / "names").write_text("".join(f"{name}   Counter   inst   # of things\n" for name in names))
    program = tmp_path / "ncu"
    program.write_text(
        "#!/bin/sh\n"
        'case "$1" in\n'
        '--version) echo "Version 2025.3.1.0 (build 1)"; exit;;\n'
        f'--query-metrics) cat "{tmp_path}/names"; exit;;\n'
        "esac\n"
        'while [ "$1" != --log-file ]; do shift; done\n'
        f'cp "{log}" "$2"; shift 2; exec "$@"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")


def test_the_back_end_returns_the_sums_with_version_command_and_runtime(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _recorded_ncu(tmp_path, monkeypatch, RAW)
    measurement = ncu.NcuBackend().count(["true"], Runner())
    assert measurement.events["launch__grid_size"] == BLOCKS
    assert measurement.version == "2025.3.1.0"
    assert measurement.command[-1] == "true"
    assert "--clock-control" in measurement.command
    assert measurement.runtime_s is not None
    assert measurement.notes == ()


def test_a_metric_that_the_gpu_does_not_know_is_missing_with_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lacking = "smsp__sass_branch_targets.sum"
    _recorded_ncu(tmp_path, monkeypatch, RAW, lacking)
    measurement = ncu.NcuBackend().count(["true"], Runner())
    assert measurement.events[lacking] is None
    assert any(lacking in note for note in measurement.notes)
    assert lacking not in " ".join(measurement.command)


def test_floats_count_on_a_gpu_that_is_older_than_the_eight_bit_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lacking = "smsp__sass_thread_inst_executed_op_fp8_pred_on.sum"
    log = tmp_path / "log"
    log.write_text(RAW.read_text().replace(lacking, "device__attribute_other"))
    _recorded_ncu(tmp_path, monkeypatch, log, lacking)
    measurement = ncu.NcuBackend().count(["true"], Runner())
    assert lacking not in measurement.events
    assert measurement.notes == ()
    assert counted([measurement]).values["float_ratio"] == counted(read(RAW)).values["float_ratio"]


def test_a_program_without_kernels_has_events_that_are_missing_and_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _recorded_ncu(tmp_path, monkeypatch, DATA / "no_kernel.csv")
    measurement = ncu.NcuBackend().count(["true"], Runner())
    assert measurement.events
    assert set(measurement.events.values()) == {None}
    assert measurement.notes == ("launched no kernel",)


def test_a_limit_of_launches_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _recorded_ncu(tmp_path, monkeypatch, RAW)
    measurement = ncu.NcuBackend(launch_limit=3).count(["true"], Runner())
    assert any("first 3 launches" in note for note in measurement.notes)
    assert measurement.command[measurement.command.index("--launch-count") + 1] == "3"


def test_a_lack_of_permission_comes_with_the_cure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "log"
    log.write_text("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access the counters\n")
    _recorded_ncu(tmp_path, monkeypatch, log)
    with pytest.raises(CollectError, match="NVreg_RestrictProfilingToAdminUsers=0"):
        ncu.NcuBackend().count(["true"], Runner())


def test_a_command_that_fails_under_ncu_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _recorded_ncu(tmp_path, monkeypatch, RAW)
    with pytest.raises(CollectError, match="exit status 3"):
        ncu.NcuBackend().count(["sh", "-c", "exit 3"], Runner())


def test_why_not_names_what_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ncu, "_find", lambda: None)
    if ncu.why_no_gpu() is not None:
        assert "no NVIDIA GPU" in (ncu.NcuBackend().why_not() or "")
    monkeypatch.setattr(ncu, "why_no_gpu", lambda: None)
    assert "ncu is not on PATH" in (ncu.NcuBackend().why_not() or "")


@pytest.mark.gpu
def test_a_real_gpu_gives_the_known_answers(tmp_path: Path) -> None:
    program = built(tmp_path)
    backend = ncu.NcuBackend()
    if reason := backend.why_not():
        pytest.skip(reason)
    measurement = backend.count([str(program)], Runner())
    assert measurement.events["smsp__sass_thread_inst_executed_op_fp64_pred_on.sum"] == FP64
    assert measurement.events["launch__grid_size"] == BLOCKS
    assert measurement.events["smsp__sass_branch_targets_threads_divergent.sum"] == DIVERGENT
    assert measurement.events["streams_with_kernels"] == 3


@pytest.mark.gpu
def test_a_real_gpu_sees_no_kernel_in_a_program_without(tmp_path: Path) -> None:
    backend = ncu.NcuBackend()
    if reason := backend.why_not():
        pytest.skip(reason)
    measurement = backend.count([shutil.which("true") or "true"], Runner())
    assert measurement.notes == ("launched no kernel",)


def _counters(program: Path, *arguments: str) -> dict[str, float]:
    """Return the counters that ncu gives of a program on the GPU here."""
    backend = ncu.NcuBackend()
    if reason := backend.why_not():
        pytest.skip(reason)
    return dict(counted([backend.count([str(program), *arguments], Runner())]).values)


@pytest.mark.gpu
def test_a_real_gpu_counts_the_bytes_that_instructions_name(tmp_path: Path) -> None:
    values = _counters(built(tmp_path))
    assert values["bytes_loaded"] == BYTES_LOADED
    assert values["bytes_stored"] == BYTES_STORED
    assert values["kernel_launches"] == 3


@pytest.mark.gpu
def test_a_real_gpu_moves_the_known_bytes_of_a_copy(tmp_path: Path) -> None:
    values = _counters(built(tmp_path, "gpu_traffic"), "copy")
    assert values["kernel_launches"] == COPY_LAUNCHES
    assert values["warp_blocks"] == COPY_BLOCKS
    assert values["block_size"] == 256
    assert values["bytes_loaded"] == values["bytes_stored"] == COPY_BYTES
    assert values["bytes_beyond_l1"] == pytest.approx(2 * COPY_BYTES, rel=0.01)
    # The L2 of an H200 may keep up to 60 MB of each launch's 1 GiB to write them later.
    assert 0.96 * 2 * COPY_BYTES < values["bytes_beyond_llc"] < 1.02 * 2 * COPY_BYTES


@pytest.mark.gpu
def test_a_real_gpu_is_occupied_as_far_as_shared_memory_lets_it(tmp_path: Path) -> None:
    values = _counters(built(tmp_path, "gpu_traffic"), "spin")
    assert values["kernel_launches"] == SPIN_LAUNCHES
    assert values["block_size"] == SPIN_BLOCK_SIZE
    assert 0.9 * SPIN_OCCUPANCY < values["occupancy"] <= 1.001 * SPIN_OCCUPANCY
