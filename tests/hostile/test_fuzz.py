"""Whatever the bytes: a value or our error, within bounded time. `make fuzz` tries for an hour."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.hostile import fuzz
from tests.hostile.targets import BY_NAME, TARGETS

#: Unsound files for each reader: a second or two. The same ones each time, and hypothesis tells the seed of a failure.
FILES = int(os.environ.get("CROSSPERF_FUZZ_FILES", "150"))
BRIEF = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
LONGER = settings(BRIEF, max_examples=FILES)


@pytest.mark.parametrize("name", BY_NAME)
def test_a_file_made_unsound_is_read_or_refused(name: str, tmp_path: Path) -> None:
    @LONGER
    @given(st.integers(0, 2**32))
    def tried(seed: int) -> None:
        fuzz.attempt(BY_NAME[name], random.Random(seed), tmp_path)  # noqa: S311

    tried()


@pytest.mark.parametrize("name", BY_NAME)
def test_a_sound_file_is_taken(name: str, tmp_path: Path) -> None:
    assert fuzz.read(BY_NAME[name], BY_NAME[name].sound(), tmp_path)


@pytest.mark.parametrize("name", BY_NAME)
def test_any_bytes_are_read_or_refused(name: str, tmp_path: Path) -> None:
    @BRIEF
    @given(st.binary(max_size=300))
    def tried(data: bytes) -> None:
        fuzz.read(BY_NAME[name], data, tmp_path)

    tried()


def test_an_hour_of_fuzzing_covers_every_reader(capsys: pytest.CaptureFixture[str]) -> None:
    assert fuzz.main(["--seconds", "0", "--seed", "1"]) == 0
    *counts, total = capsys.readouterr().out.splitlines()[1:]
    assert [line.split()[0] for line in counts] == [target.name for target in TARGETS]
    assert total.startswith(f"{len(TARGETS)} readers: {len(TARGETS)} files, ")
    assert " 0 failed, 0 of them hung, " in total
