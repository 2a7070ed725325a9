"""What several test files share: small tables from the toy law, and a way to write a table by hand."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

# Two test processes with two threads each on two cores wait for each other at every barrier: ten times slower.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest

from crossperf import dataset
from crossperf.dataset import Dataset
from crossperf.datasets import toy
from crossperf.runs.table import RunsTable

HEADER = "app,input,platform,runtime_s,counter.instructions"

#: Writes lines below a header to a CSV file and returns its path.
CsvWriter = Callable[..., Path]


@pytest.fixture
def csv(tmp_path: Path) -> CsvWriter:
    def write(*lines: str, header: str = HEADER, name: str = "runs.csv") -> Path:
        path = tmp_path / name
        path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
        return path

    return write


@pytest.fixture(scope="session")
def toy_table() -> RunsTable:
    return toy.make_table(apps=4, inputs=3, repeats=3, seed=1)


@pytest.fixture(scope="session")
def toy_data(toy_table: RunsTable) -> Dataset:
    return dataset.build(toy_table)
