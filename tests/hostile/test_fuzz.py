"""Whatever the bytes: a value or our error, within bounded time. `make fuzz` tries for an hour."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.hostile import fuzz, mutations
from tests.hostile.target import Target
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
def test_a_file_with_another_number_is_read_or_refused(name: str, tmp_path: Path) -> None:
    """Not by chance: every number of a short file, and some of a long one, is each of the odd ones in turn."""
    data, numbers = BY_NAME[name].sound(), mutations.NUMBERS
    tries = [(span, number) for span in mutations.numbers_of(data) for number in numbers]
    step = max(1, len(tries) // (FILES // 2))
    step += step % len(numbers) in (0, 3, 6)  # so that each of the odd ones has its turn
    for (start, end), number in tries[::step]:
        fuzz.read(BY_NAME[name], data[:start] + number + data[end:], tmp_path)


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


_LONG = b"9" * 400
#: What fuzzing met once, cut down to what mattered.
MET = {
    "a limit of 400 digits": ("script", b"#!/bin/bash\n#SBATCH --time=" + _LONG + b"\n"),
    "days of 400 digits": ("script", b"#!/bin/bash\n#SBATCH -t " + _LONG + b"-1\n"),
    "nodes of 5,000 digits": ("script", b"#!/bin/bash\n#SBATCH -N " + b"9" * 5000 + b"\n"),
    "a share of 400 digits": (
        "perf-json",
        b'{"counter-value": "3.0", "unit": "", "event": "page-faults", "pcnt-running": ' + _LONG + b"}\n",
    ),
    "a runtime of 400 digits": (
        "body-predict",
        b'{"app": "a", "input": "1", "platform": "epyc-1t", "runtime_s": ' + _LONG + b', "counters": {"threads": 1}}',
    ),
    "a limit of hardly any time": ("swf", b"1 10 5 91 1 -1 2048 1 2e-317 4096 1 3 1 2 1 1 -1 -1\n"),
    "throughputs that are no JSON": ("throughputs", b"{"),
    "blocks of 400 digits": (
        "ncu-csv",
        b'"ID","Kernel Name","Block Size","Grid Size","Metric Name","Metric Unit","Metric Value"\n'
        b'"0","k","(' + _LONG + b', 1, 1)","(2, 1, 1)","gpu__time_duration.sum","nsecond","1"\n',
    ),
    "a digit that is no number": ("machines", "machine,size\na,²\n".encode()),
    "seconds that are no number": (
        "campaign-log",
        b'{"platform": "first", "round": "r1", "workload": "quick", "input": "n=1", "seconds": [0.1, NaN]}\n',
    ),
    "a price of 400 digits within a fact": (
        "body-platforms",
        b'{"name": "h200", "facts": {"facts": {"price_per_hour": ' + _LONG + b"}}}",
    ),
    "nodes of no mode": ("times-csv", b"app,input,c:low,a:nodes\nlu,1,1.0,2.\n"),
}


@pytest.mark.parametrize("what", MET)
def test_a_file_that_failed_once_is_read_or_refused(what: str, tmp_path: Path) -> None:
    name, data = MET[what]
    fuzz.read(BY_NAME[name], data, tmp_path)


def test_a_reader_that_takes_too_much_memory_fails_and_the_file_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def greedy(path: Path) -> None:
        if path.read_bytes() != b"sound":
            bytearray(6 << 30)

    monkeypatch.setattr(fuzz, "_KEPT", tmp_path / "kept")
    monkeypatch.setattr(fuzz, "mutated", lambda *_: b"unsound")
    monkeypatch.setitem(fuzz.BY_NAME, "greedy", Target("greedy", "file", lambda: b"sound", greedy))
    assert fuzz.main(["--seconds", "0", "--seed", "1", "--only", "greedy"]) == 1
    assert (tmp_path / "kept" / "greedy-1-0").read_bytes() == b"unsound"
    printed = capsys.readouterr()
    assert "1 files, 0 taken, 1 failed, 0 of them hung" in printed.out
    assert "MemoryError" in printed.err
