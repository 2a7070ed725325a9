"""Write the answers that docs/ask.md shows: each command of the page is run, and what it prints takes the old place.

python tools/ask.py            # on a machine of the testbed, with the model that ships; takes some minutes
"""

from __future__ import annotations

import os
import random
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import polars as pl

from crossperf.datasets import testbed
from crossperf.runs.table import from_frame

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "ask.md"
ANSWER = re.compile(r"(?<=```text\n)\$ (crossperf ask [^\n]*)\n.*?(?=```)", re.DOTALL)


def write_files(folder: Path) -> None:
    """Write what the commands of the page read: numbers, bytes, and a run of a program that the model knows."""
    draw = random.Random(1)  # noqa: S311
    numbers = (f"{draw.gauss(0, 1e6):.6f}" for _ in range(200_000))
    (folder / "numbers.txt").write_text("\n".join(numbers) + "\n", encoding="utf-8")
    (folder / "large.bin").write_bytes(draw.randbytes(100_000_000))
    frame = testbed.load().frame.filter((pl.col("app") == "lennard_jones") & (pl.col("platform") == "epyc-1t"))
    inputs = frame["input"].unique().sort()
    from_frame(frame.filter(pl.col("input") == inputs[len(inputs) // 2])).write(folder / "run.jsonl")


def answer(command: str, folder: Path) -> str:
    """Return a command with what it prints."""
    words = [sys.executable, "-m", "crossperf", *shlex.split(command)[1:]]
    settings = {**os.environ, "CROSSPERF_PLATFORMS": str(folder / "platforms.json")}
    done = subprocess.run(words, cwd=folder, env=settings, capture_output=True, text=True, check=False)
    return f"$ {command}\n{done.stdout}{done.stderr if done.returncode else ''}"


def main() -> None:
    """Run every command of the page, and write it."""
    with tempfile.TemporaryDirectory() as place:
        write_files(Path(place))
        text = ANSWER.sub(lambda match: answer(match[1], Path(place)), PAGE.read_text(encoding="utf-8"))
    PAGE.write_text(text, encoding="utf-8")
    print(f"wrote {PAGE.name}")


if __name__ == "__main__":
    main()
