"""What tests/collect/programs/gpu_*.cu do, worked out by hand from their sources, and the programs built."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from crossperf.collect.ncu import why_no_gpu

N = 64
WARPS = {"multiply_add": 16 * 256 // 32, "copy": 131072 * 256 // 32, "diverge": 7 * 64 // 32}
BLOCKS = 4 * 4 + 131072 + 7
THREADS = 16 * 256 + 131072 * 256 + 7 * 64
#: A multiplication and an addition for each k of each element.
FP64 = 2 * N**3
#: Each of 14 warps comes 10 times to a branch at which its threads part.
DIVERGENT = 14 * 10
BYTES_TO_GPU = 2 * N * N * 8 + 128 * 2**20
BYTES_TO_HOST = N * N * 8 + 2**20 + 448 * 4
#: 32-byte sectors. A warp of multiply_add covers 2 rows of 16: for each k it loads 2 doubles of a, a sector each,
#: and 16 neighbours of b, 4 sectors; it stores 2 x 16 doubles. A warp of copy loads and stores 32 floats.
SECTORS_L1 = WARPS["multiply_add"] * (N * (2 + 4) + 8) + WARPS["copy"] * (4 + 4) + WARPS["diverge"] * 4


#: Distinct bytes: for each k a warp of multiply_add loads 2 doubles of a and 16 of b. Each thread stores one double;
#: copy and diverge move 4 bytes a thread.
BYTES_LOADED = WARPS["multiply_add"] * N * (2 + 16) * 8 + 128 * 2**20
BYTES_STORED = 64 * 64 * 8 + 128 * 2**20 + 448 * 4

#: gpu_traffic.cu: two launches of copy, three of spin.
COPY_LAUNCHES, COPY_BLOCKS, COPY_BYTES = 2, 2 * 2**20, 2 * 2**30
SPIN_LAUNCHES, SPIN_BLOCKS, SPIN_BLOCK_SIZE = 3, 3 * 1056, 64
#: Two blocks of two warps, where a multiprocessor holds 64 warps: on H100 and H200.
SPIN_OCCUPANCY = 4 / 64


def built(folder: Path, name: str = "gpu_known") -> Path:
    """Return a program of `tests/collect/programs`, compiled for the GPU here."""
    if reason := why_no_gpu():
        pytest.skip(reason)
    nvcc = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
    if nvcc is None:
        pytest.skip("nvcc is not installed")
    source = Path(__file__).parent / "programs" / f"{name}.cu"
    program = folder / name
    subprocess.run([nvcc, "-arch=native", "-fmad=false", "-o", str(program), str(source)], check=True)
    return program
