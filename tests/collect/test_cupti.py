from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from crossperf.catalog import FORMULAS, derive
from crossperf.collect import cupti, ncu
from crossperf.collect.process import Runner
from crossperf.errors import CollectError
from crossperf.importers.measurement import counted
from tests.collect.gpu_known import BLOCKS, BYTES_TO_GPU, BYTES_TO_HOST, SPIN_BLOCKS, THREADS, built

# What our library wrote for tests/collect/programs/gpu_known.cu on an NVIDIA H200, CUDA 13.0, driver 580.159.04.
RECORDED = {
    "memcpy_htod_count": 3,
    "memcpy_htod_bytes": 134283264,
    "memcpy_htod_ns": 21551182,
    "memcpy_dtoh_count": 3,
    "memcpy_dtoh_bytes": 1083136,
    "memcpy_dtoh_ns": 26465,
    "kernel_launches": 3,
    "thread_blocks": 131095,
    "kernel_threads": 33558976,
    "kernel_ns": 115232,
    "streams": 3,
    "dropped_records": 0,
    "cupti": 130001,
    "error": 0,
    "ended": 1,
}


def test_copies_blocks_and_streams_of_the_known_program_are_what_its_source_says() -> None:
    events, notes = cupti.total([RECORDED])
    values = {name: found.value for name, found in derive(events, FORMULAS).items()}
    assert values["bytes_host_to_gpu"] == BYTES_TO_GPU
    assert values["bytes_gpu_to_host"] == BYTES_TO_HOST
    assert values["warp_blocks"] == BLOCKS
    assert values["threads"] == 3
    assert values["kernel_launches"] == 3
    assert values["block_size"] == THREADS / BLOCKS
    assert values["bandwidth_host_to_gpu"] == pytest.approx(BYTES_TO_GPU / 0.021551182)
    assert notes == []


def test_processes_are_added_up() -> None:
    events, _ = cupti.total([RECORDED, RECORDED])
    assert events["memcpy_htod_bytes"] == 2 * BYTES_TO_GPU
    assert events["streams"] == 6


def test_a_program_that_uses_no_gpu_has_counts_that_are_missing_rather_than_zero() -> None:
    events, notes = cupti.total([])
    assert events
    assert set(events.values()) == {None}
    assert notes == ["used no GPU through CUDA"]


def test_a_driver_that_refuses_cupti_is_told() -> None:
    events, notes = cupti.total([RECORDED | {"error": 35}])
    assert set(events.values()) == {None}
    assert "error 35" in notes[0]


def test_a_killed_process_and_dropped_records_are_told() -> None:
    _, notes = cupti.total([RECORDED, RECORDED | {"ended": 0, "dropped_records": 12}])
    assert any("1 of 2 processes" in note for note in notes)
    assert any("12 records" in note for note in notes)


def test_where_nothing_is_copied_bytes_and_bandwidth_are_zero() -> None:
    events, _ = cupti.total([RECORDED | {"memcpy_dtoh_bytes": 0, "memcpy_dtoh_ns": 0}])
    found = derive(events, FORMULAS)
    assert found["bytes_gpu_to_host"].value == 0
    assert found["bandwidth_gpu_to_host"].value == 0


def test_what_is_missing_here_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cupti, "why_no_gpu", lambda: None)
    assert "libcupti" in (cupti.CuptiBackend(cuda=tmp_path).why_not() or "")
    for name in ("include/cupti.h", "include/cuda.h", "lib64/libcupti.so"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    monkeypatch.setenv("PATH", "")
    assert "C compiler" in (cupti.CuptiBackend(cuda=tmp_path).why_not() or "")


def test_a_cuda_that_does_not_compile_is_one_sentence(tmp_path: Path) -> None:
    for name in ("include/cupti.h", "include/cuda.h", "lib64/libcupti.so"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("#error not CUPTI\n")
    backend = cupti.CuptiBackend(cuda=tmp_path)
    with pytest.raises(CollectError, match="does not compile"):
        backend.count(["true"], Runner())


def test_our_library_compiles_where_cupti_is_installed(tmp_path: Path) -> None:
    backend = cupti.CuptiBackend()
    if backend._places is None or backend._compiler is None:
        pytest.skip("cupti.h, libcupti.so or a C compiler is absent")
    library = backend._compile(tmp_path)
    symbols = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    assert "InitializeInjection" in symbols


@pytest.mark.gpu
def test_a_real_gpu_gives_the_known_bytes_blocks_and_streams(tmp_path: Path) -> None:
    program = built(tmp_path)
    backend = cupti.CuptiBackend()
    if reason := backend.why_not():
        pytest.skip(reason)
    values = counted([backend.count([str(program)], Runner())]).values
    assert values["bytes_host_to_gpu"] == BYTES_TO_GPU
    assert values["bytes_gpu_to_host"] == BYTES_TO_HOST
    assert values["warp_blocks"] == BLOCKS
    assert values["threads"] == 3


@pytest.mark.gpu
def test_a_real_gpu_gives_the_known_launches_and_block_size(tmp_path: Path) -> None:
    program = built(tmp_path, "gpu_traffic")
    backend = cupti.CuptiBackend()
    if reason := backend.why_not():
        pytest.skip(reason)
    values = counted([backend.count([str(program), "spin"], Runner())]).values
    assert values["kernel_launches"] == 3
    assert values["warp_blocks"] == SPIN_BLOCKS
    assert values["block_size"] == 64


@pytest.mark.gpu
def test_a_real_gpu_adds_up_two_processes(tmp_path: Path) -> None:
    program = built(tmp_path)
    backend = cupti.CuptiBackend()
    if reason := backend.why_not():
        pytest.skip(reason)
    events = backend.count(["sh", "-c", f"{program} & {program}; wait"], Runner()).events
    assert events["memcpy_htod_bytes"] == 2 * BYTES_TO_GPU


def test_the_gpu_is_looked_for_first() -> None:
    if ncu.why_no_gpu() is None:
        pytest.skip("an NVIDIA GPU is here")
    assert "no NVIDIA GPU" in (cupti.CuptiBackend().why_not() or "")
