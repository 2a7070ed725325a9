"""Makes the input files of the applications from their names, the same bytes on every machine.

    python testbed/apps/inputs.py FOLDER [NAME ...]

A name is ``kind-size-size.ending``, such as ``text-500.txt`` (500 kB of text) or ``y4m-320-180-30.y4m``. Without names
every file that apps.toml mentions is made. What exists is left alone. Random draws are hashes of a running number in
integer arithmetic, so that neither the version of Python or numpy nor the processor matters.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable
from pathlib import Path

from draws import Draws
from media_inputs import asm, csource, log, pdf, png, ppm, records, sql, table, text, wav, y4m
from problem_inputs import (
    amplicons,
    cnf,
    composites,
    digits,
    digraph,
    genome,
    go,
    linear,
    metis,
    netlist,
    node,
    pigeons,
    points,
    proteins,
    reads,
    sam,
    solid,
    svm,
    verilog,
    whole,
)

MAKERS: dict[str, Callable[..., bytes]] = {
    maker.__name__: maker
    for maker in (
        text, log, table, records, genome, reads, amplicons, sam, proteins, ppm, png, y4m, wav, sql, digraph, metis,
        linear, whole, cnf, pigeons, csource, asm, points, node, netlist, verilog, solid, svm, pdf, go, digits,
        composites,
    )
}  # fmt: skip


def content(name: str) -> bytes:
    """Return the bytes of the input file of this name."""
    kind, *sizes = name.partition(".")[0].split("-")
    if kind not in MAKERS or not all(size.isdecimal() for size in sizes):
        raise ValueError(f"{name}: no input has this name; expected KIND-SIZE.ENDING with a kind of {sorted(MAKERS)}")
    return MAKERS[kind](Draws(name), *map(int, sizes))


def make(name: str, folder: Path) -> Path:
    """Make the input file of this name in a folder, unless it is there, and return its path."""
    path = folder / name
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        part = folder / f"{name}.{os.getpid()}.tmp"
        part.write_bytes(content(name))
        part.replace(path)
    return path


def main() -> int:
    from apps import read

    folder = Path(sys.argv[1])
    names = sys.argv[2:] or sorted({name for app in read().values() for case in app.cases for name in app.files(case)})
    total = 0
    for name in names:
        size = make(name, folder).stat().st_size
        total += size
        print(f"{name} {size}", flush=True)
    print(f"{len(names)} files, {math.ceil(total / 1e6)} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
