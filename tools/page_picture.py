"""Take docs/page.png, the answer of `crossperf serve` for a small program with OpenMP that the model has not seen.

gcc -O2 -fopenmp -o heat benchmarks/strangers/heat.c
OMP_NUM_THREADS=1 crossperf profile --backend qemu --threads 1 --platform epyc-1t -o heat.jsonl -- ./heat 1200 600
python tools/page_picture.py heat.jsonl
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import sync_playwright

from crossperf.runs import read
from crossperf.serve.web.asking import PageQuestion

PICTURE = Path(__file__).parents[1] / "docs" / "page.png"
_CHROMIUM = "/usr/bin/chromium"
_FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"]
_SCREEN = {"width": 1200, "height": 1010}


@contextmanager
def served() -> Iterator[str]:
    """Start the server with the model that ships, on a free port; yield its address."""
    command = [sys.executable, "-m", "crossperf", "serve", "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        address = re.search(r"http://[\w.]+:\d+", server.stdout.readline() if server.stdout else "")
        if address is None:
            sys.exit("the server did not start")
        yield address[0]
    finally:
        server.terminate()
        server.wait()


def main() -> None:
    """Ask about the first run of the table that the command names, light, and keep the first screen."""
    run = next(iter(read(sys.argv[1]).runs()))
    with served() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_CHROMIUM, args=_FLAGS)
        page = browser.new_page(viewport=_SCREEN, color_scheme="light")  # type: ignore[arg-type]
        page.goto(address + PageQuestion(run, gpu="yes").link(), wait_until="networkidle")
        page.wait_for_selector("text=known runs", timeout=90_000)  # the reasons come after the answer
        page.screenshot(path=PICTURE)
        browser.close()
    print(f"wrote {PICTURE}")


if __name__ == "__main__":
    main()
