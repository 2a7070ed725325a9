"""The table of bad inputs: each ends in one sentence that names the file, and in nothing else."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from crossperf.errors import CrossperfError
from tests.hostile.cases import CASES, Case
from tests.hostile.targets import BY_NAME, TARGETS, Target

#: Seconds that a reader may take on the slowest of them, on a busy machine.
SOON = 20.0


def test_the_table_is_as_long_as_promised() -> None:
    assert len(CASES) >= 400
    assert len({str(case) for case in CASES}) == len(CASES)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_a_sound_file_is_read(target: Target, tmp_path: Path) -> None:
    path = tmp_path / target.file
    path.write_bytes(target.sound())
    target.read(path)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_bad_input_ends_in_one_sentence(case: Case, tmp_path: Path) -> None:
    target = BY_NAME[case.target]
    path = tmp_path / target.file
    data = case.made()
    path.write_bytes(data)
    started = time.monotonic()
    with pytest.raises(CrossperfError) as caught:
        target.read(path)
    sentence = str(caught.value)
    assert time.monotonic() - started < SOON
    assert re.search(case.sentence, sentence), sentence
    assert sentence.startswith(str(tmp_path))
    assert "\n" not in sentence
    assert len(sentence) <= 2_000
    assert sentence.encode().endswith(b".") or sentence.endswith(("them all)", "?)"))
    assert path.read_bytes() == data
