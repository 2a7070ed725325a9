"""CUPTI: copies between host and GPU, kernel launches and streams of a command, at close to its own speed.

A small library of ours (``cupti_inject.c``) is compiled against the CUPTI that comes with CUDA, and the driver
loads it into every process of the command that uses CUDA. Not seen are pages of managed memory that move on
demand, and a process that is killed loses its last half second.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from crossperf.catalog import FORMULAS
from crossperf.collect.ncu import why_no_gpu
from crossperf.collect.process import Runner
from crossperf.errors import CollectError
from crossperf.importers.measurement import Measurement

_COMPILERS = ("cc", "gcc", "clang")
#: Where the parts of CUPTI lie below a folder of CUDA; Debian's packages spread theirs over /usr.
_HEADERS = ("include", "extras/CUPTI/include", "targets/*/include")
_LIBRARIES = ("lib64", "lib", "extras/CUPTI/lib64", "targets/*/lib", "lib/*-linux-gnu")
#: What a process's file says of itself, besides counts.
_ABOUT = ("cupti", "error", "ended", "dropped_records")


class CuptiBackend:
    """Bytes and time of copies by direction, kernel launches, thread blocks and streams, over all processes.

    `cuda` is the folder of a CUDA toolkit; ``None`` looks beside nvcc and in the usual places.
    """

    name = "cupti"

    def __init__(self, cuda: Path | None = None) -> None:
        self.cuda = cuda
        self._compiler = next(filter(None, map(shutil.which, _COMPILERS)), None)
        self._places = _find(cuda)

    def why_not(self) -> str | None:
        """Return why CUPTI counts nothing here, or ``None``."""
        if no_gpu := why_no_gpu():
            return no_gpu
        if self._places is None:
            return "cupti.h and libcupti.so of CUDA are not here (Debian: libcupti-dev; NVIDIA: cuda-cupti-dev)"
        if self._compiler is None:
            return "no C compiler here, which the small library for CUPTI needs (Debian and Ubuntu: gcc)"
        return None

    def count(self, command: Sequence[str], runner: Runner) -> Measurement:
        """Execute the command with our library in it and return what its processes did on GPUs."""
        with tempfile.TemporaryDirectory(prefix="crossperf-") as folder:
            library = self._compile(Path(folder))
            counts = Path(folder, "counts")
            counts.mkdir()
            env = {"CUDA_INJECTION64_PATH": str(library), "CROSSPERF_CUPTI_OUT": str(counts)}
            execution = runner.count(command, self.name, env)
            processes = [json.loads(file.read_text()) for file in sorted(counts.glob("*.json"))]
        events, notes = total(processes)
        version = " + ".join(sorted({str(process["cupti"]) for process in processes})) or None
        line = ("env", *(f"{name}={value}" for name, value in env.items()), *command)
        return Measurement(self.name, events, version, line, execution.wall_s, notes=tuple(notes))

    def _compile(self, folder: Path) -> Path:
        if self._places is None or self._compiler is None:
            raise CollectError(self.why_not() or "CUPTI is not here")
        headers, cuda_headers, libraries = self._places
        library = folder / "crossperf_cupti.so"
        with as_file(files("crossperf.collect") / "cupti_inject.c") as source:
            flags = ["-O2", "-shared", "-fPIC", "-fvisibility=hidden", f"-I{headers}", f"-I{cuda_headers}"]
            linking = [f"-L{libraries}", "-lcupti", "-pthread", f"-Wl,-rpath,{libraries}"]
            line = [self._compiler, *flags, "-o", str(library), str(source), *linking]
            done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=120)
        if done.returncode != 0:
            problem = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip()[:200])
            advice = "Use the cupti.h and cuda.h of one CUDA."
            raise CollectError(f"the small library for CUPTI does not compile ({problem}). {advice}")
        return library


def total(processes: Sequence[Mapping[str, Any]]) -> tuple[dict[str, float | None], list[str]]:
    """Return the events of all processes added up, and what must be known about them."""
    refused = [process for process in processes if process["error"]]
    if not processes or refused:
        asked = [event for formula in FORMULAS if formula.tool == CuptiBackend.name for event in formula.events]
        why = "used no GPU through CUDA"
        if refused:
            why = f"the driver refused CUPTI (error {refused[0]['error']}); is its CUDA newer than the driver?"
        return dict.fromkeys(asked), [why]
    sums: Counter[str] = Counter()
    for process in processes:
        sums.update({name: count for name, count in process.items() if name not in _ABOUT})
    notes = []
    if dropped := sum(process["dropped_records"] for process in processes):
        notes.append(f"CUPTI dropped {dropped:,} records for want of memory; the counts are too low")
    if cut := sum(not process["ended"] for process in processes):
        notes.append(f"{cut} of {len(processes)} processes ended without a proper exit; their last moments are lacking")
    return {name: float(count) for name, count in sums.items()}, notes


def _find(cuda: Path | None) -> tuple[Path, Path, Path] | None:
    """Return the folders of ``cupti.h``, ``cuda.h`` and ``libcupti.so``, all of one CUDA."""
    for root in [cuda] if cuda else _roots():
        cupti, driver = _holding(root, _HEADERS, "cupti.h"), _holding(root, _HEADERS, "cuda.h")
        library = _holding(root, _LIBRARIES, "libcupti.so")
        if cupti and driver and library:
            return cupti, driver, library
    return None


def _roots() -> Iterator[Path]:
    if nvcc := shutil.which("nvcc"):
        yield Path(nvcc).resolve().parent.parent
    yield Path("/usr/local/cuda")
    yield from sorted(Path("/usr/local").glob("cuda-*"), reverse=True)
    yield from (Path("/opt/cuda"), Path("/usr"))


def _holding(root: Path, folders: Sequence[str], name: str) -> Path | None:
    return next((path.parent for folder in folders for path in sorted(root.glob(f"{folder}/{name}"))), None)
