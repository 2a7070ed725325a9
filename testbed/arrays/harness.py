"""The frame of an array program: arguments, seeded data, the device, timed parts, one line of JSON.

A program gives two functions. ``set_up(draw, *, ...)`` makes its data with numpy on the CPU, from a seeded generator,
so that they are the same everywhere. ``work(*arrays, ...)`` computes with them on the device. Their keyword-only
arguments are the parameters of an input, whole numbers given as ``key=value``.

Import this module before numpy and torch: their thread pools are made when they are loaded, from the environment.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor

SEED = 15
#: A runner may set it to the time of the start, in seconds since 1970; the kernel's own is in steps of 0.01 s.
SPAWNED_AT = "ARRAYS_SPAWNED_AT"
POOLS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def parser(name: str) -> argparse.ArgumentParser:
    """Return the parser of the options that every program has."""
    options = argparse.ArgumentParser(prog=name)
    options.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    options.add_argument("--threads", type=int, default=1, help="threads on the CPU")
    options.add_argument("input", nargs="*", metavar="key=value", help="a parameter of the input")
    return options


def limit_threads(arguments: list[str]) -> None:
    """Set how many threads the pools of numpy and torch have, as ``--threads`` asks, and how these wait."""
    early = argparse.ArgumentParser(add_help=False)
    early.add_argument("--threads", default="1")
    options, _ = early.parse_known_args(arguments)
    for pool in POOLS:
        os.environ[pool] = options.threads
    # Threads that wait for work sleep: spinning ones take the processors of others on a shared machine.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def seconds_since_start() -> float:
    """Return the seconds since this process was started."""
    if SPAWNED_AT in os.environ:
        return time.time() - float(os.environ[SPAWNED_AT])
    after_name = Path("/proc/self/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    started_s = int(after_name[19]) / os.sysconf("SC_CLK_TCK")
    return time.clock_gettime(time.CLOCK_BOOTTIME) - started_s


def keywords(function: Callable[..., object]) -> list[str]:
    """Return the names of a function's keyword-only arguments."""
    return [name for name, its in inspect.signature(function).parameters.items() if its.kind is its.KEYWORD_ONLY]


def parameters(words: Iterable[str], names: list[str]) -> dict[str, int]:
    """Return the input's parameters by name, or raise ValueError with the sentence for the user."""
    expected = " ".join(f"{name}=NUMBER" for name in names)
    values = {}
    for word in words:
        name, _, value = word.partition("=")
        if name not in names or not value.isdecimal() or int(value) == 0:
            raise ValueError(f"the input has {word!r}, expected whole numbers above 0: {expected}")
        values[name] = int(value)
    if missing := [name for name in names if name not in values]:
        raise ValueError(f"the input has no {', '.join(missing)}, expected: {expected}")
    return {name: values[name] for name in names}


def why_no_cuda() -> str | None:
    """Return the sentence why there is no CUDA device, or None where there is."""
    import torch

    if torch.cuda.is_available():
        return None
    return (
        f"--device cuda was asked for, but PyTorch {torch.__version__} sees no CUDA device here; "
        "use --device cpu, or a machine with an NVIDIA GPU and a PyTorch built for CUDA"
    )


def wake(device: str, threads: int) -> None:
    """Set the threads and the arithmetic, and start CUDA where it is asked for."""
    import torch

    # Sparse CSR tensors announce that they are young, and that their indices are not checked.
    warnings.filterwarnings("ignore", message=".*[Ss]parse.*")
    torch.set_num_threads(threads)
    # Convolutions in float32 as on the CPU; matrix products are so by default.
    torch.backends.cudnn.allow_tf32 = False
    torch.ones(1, device=device).sum().item()


def checksum(result: Tensor) -> float:
    """Return a weighted mean of the magnitudes, which depends on order and sign and does not cancel."""
    import torch

    flat = result.detach().reshape(-1).double()
    weight = torch.arange(flat.numel(), device=flat.device).remainder(7).double() + 1
    return float((((flat.abs() + flat / 2) * weight).sum() / weight.sum()).item())


@dataclass(frozen=True)
class Program:
    """An array program: what makes its data, and what computes with them."""

    name: str
    set_up: Callable[..., tuple[np.ndarray, ...]]
    work: Callable[..., Tensor]

    @property
    def parameters(self) -> list[str]:
        """The names of an input's parameters."""
        return list(dict.fromkeys(keywords(self.set_up) + keywords(self.work)))

    def arrays(self, values: dict[str, int]) -> tuple[np.ndarray, ...]:
        """Return the data of an input, the same on every machine."""
        import numpy as np

        return self.set_up(np.random.default_rng(SEED), **{key: values[key] for key in keywords(self.set_up)})

    def measure(self, values: dict[str, int], device: str, threads: int) -> dict[str, str | int | float]:
        """Run one input and return the seconds of its parts, and its checksum."""
        import torch

        wake(device, threads)
        start_up_s, woken = seconds_since_start(), time.perf_counter()
        tensors = [torch.from_numpy(array).to(device) for array in self.arrays(values)]
        if device == "cuda":
            torch.cuda.synchronize()
        ready = time.perf_counter()
        total = checksum(self.work(*tensors, **{key: values[key] for key in keywords(self.work)}))
        return {
            "workload": self.name,
            "input": " ".join(f"{key}={value}" for key, value in values.items()),
            "device": device,
            "threads": threads,
            "torch": torch.__version__,
            "start_up_s": round(start_up_s, 6),
            "set_up_s": round(ready - woken, 6),
            "work_s": round(time.perf_counter() - ready, 6),
            "checksum": total,
        }


def run(set_up: Callable[..., tuple[np.ndarray, ...]], work: Callable[..., Tensor]) -> None:
    """Run the program that was started, and print its line of JSON."""
    program = Program(Path(sys.argv[0]).stem, set_up, work)
    options = parser(program.name)
    given = options.parse_args()
    try:
        values = parameters(given.input, program.parameters)
    except ValueError as error:
        options.error(str(error))
    if given.threads < 1:
        options.error(f"--threads is {given.threads}, expected a whole number above 0")
    if given.device == "cuda" and (reason := why_no_cuda()):
        options.error(reason)
    print(json.dumps(program.measure(values, given.device, given.threads)))


if Path(sys.argv[0]).resolve().parent == Path(__file__).resolve().parent:
    limit_threads(sys.argv[1:])
