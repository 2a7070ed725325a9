"""The GPUs of a machine, from the programs of their makers or from the driver's own files."""

from __future__ import annotations

import csv
import json
import subprocess
from collections.abc import Sequence
from typing import Any

from crossperf.platforms.facts import Gpu
from crossperf.platforms.tree import Tree

_PATIENCE_S = 20.0
_NVIDIA_FIELDS = ("name", "memory.total", "compute_cap", "clocks.max.sm", "driver_version")


def gpus_of(tree: Tree, ask_programs: bool) -> tuple[Gpu, ...]:
    """Return the GPUs of a machine, none without any.

    With `ask_programs`, ``nvidia-smi`` and ``rocm-smi`` are run where they are; the files of the drivers hold less.
    """
    nvidia = _ask_nvidia() if ask_programs else []
    amd = _output(["rocm-smi", "--showproductname", "--showmeminfo", "vram", "--json"]) if ask_programs else None
    return (*(nvidia or _nvidia_driver(tree)), *(amd_gpus(amd or "") or _amd_driver(tree)))


def _output(command: Sequence[str]) -> str | None:
    """Return what a program prints, or ``None`` where it is absent, fails or takes too long."""
    try:
        done = subprocess.run(list(command), capture_output=True, text=True, timeout=_PATIENCE_S, check=False)
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return None
    return done.stdout if done.returncode == 0 else None


def _ask_nvidia() -> list[Gpu]:
    """Return NVIDIA's GPUs; drivers before 510 do not know all fields, and refuse the question as a whole."""
    for fields in (_NVIDIA_FIELDS, ("name", "memory.total")):
        text = _output(["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"])
        if text is not None:
            return nvidia_gpus(text, fields)
    return []


def nvidia_gpus(text: str, fields: Sequence[str] = _NVIDIA_FIELDS) -> list[Gpu]:
    """Return the GPUs of a table by ``nvidia-smi --query-gpu=... --format=csv,noheader,nounits``.

    >>> nvidia_gpus("NVIDIA H200, 143771, 9.0, 1980, 580.1")[0].compute_capability
    '9.0'
    """
    gpus = []
    for row in csv.reader(text.splitlines(), skipinitialspace=True):
        cells = {field: value.strip() for field, value in zip(fields, row, strict=False)}
        if not cells.get("name"):
            continue
        mebibytes, megahertz = _number(cells.get("memory.total")), _number(cells.get("clocks.max.sm"))
        gpu = Gpu(
            "NVIDIA",
            cells["name"],
            memory_bytes=None if mebibytes is None else int(mebibytes * 2**20),
            compute_capability=cells.get("compute_cap") if _number(cells.get("compute_cap")) else None,
            max_ghz=None if megahertz is None else megahertz / 1e3,
            driver=cells.get("driver_version") or None,
        )
        gpus.append(gpu)
    return gpus


def _nvidia_driver(tree: Tree) -> list[Gpu]:
    files = sorted(tree.root.glob("proc/driver/nvidia/gpus/*/information"))
    models = [tree.match(r"^Model:\s*(.+)$", str(file)) for file in files]
    return [Gpu("NVIDIA", model.strip()) for model in models if model]


def amd_gpus(text: str) -> list[Gpu]:
    """Return the GPUs of ``rocm-smi --showproductname --showmeminfo vram --json``."""
    try:
        cards = json.loads(text[text.index("{") :])
        entries = [facts for name, facts in sorted(cards.items()) if name.lower().startswith("card")]
        lowered = [{key.lower(): value for key, value in facts.items()} for facts in entries]
    except (ValueError, AttributeError):  # its warnings can stand around the JSON
        return []
    gpus = []
    for facts in lowered:
        model = facts.get("card series") or facts.get("card model")
        memory = _number(facts.get("vram total memory (b)"))
        memory_bytes = None if memory is None else int(memory)
        if model:
            gpus.append(Gpu("AMD", str(model).strip(), memory_bytes, architecture=facts.get("gfx version")))
    return gpus


def _amd_driver(tree: Tree) -> list[Gpu]:
    gpus = []
    for folder in sorted(tree.root.glob("sys/class/drm/card*/device")):
        memory = tree.number(f"{folder}/mem_info_vram_total")
        if tree.text(f"{folder}/vendor") == "0x1002" and memory:
            model = tree.text(f"{folder}/product_name") or f"device {tree.text(f'{folder}/device')}"
            gpus.append(Gpu("AMD", model, memory))
    return gpus


def _number(text: Any) -> float | None:
    try:
        return float(text)
    except (TypeError, ValueError):  # nvidia-smi says "[N/A]"
        return None
