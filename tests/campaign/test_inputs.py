"""Inputs of a campaign as whole texts, and commands that take them as they are."""

from __future__ import annotations

from pathlib import Path

from crossperf.campaign import read

SPEC = """
inputs = ["inputs.toml"]
[platforms.here]
command = ["python3", "{folder}/{workload}.py", "--threads", "{threads}", "{input}", "all: {input}", "{{x}}"]
threads = 3
"""
INPUTS = """
[sorting]
tolerance = 0.1
inputs = ["keys=10 rounds=2", "fast"]
[fft]
size = [8, 16]
"""


def test_a_list_of_texts_is_taken_input_by_input_and_what_stands_beside_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "inputs.toml").write_text(INPUTS)
    (tmp_path / "spec.toml").write_text(SPEC)
    spec = read(tmp_path / "spec.toml")
    assert [work.line for work in spec.works] == [
        "sorting keys=10 rounds=2",
        "sorting fast",
        "fft size=8",
        "fft size=16",
    ]
    assert dict(spec.works[0].parameters) == {"keys": "10", "rounds": "2"}


def test_an_input_alone_becomes_its_words_and_inside_a_word_its_text(tmp_path: Path) -> None:
    (tmp_path / "inputs.toml").write_text(INPUTS)
    (tmp_path / "spec.toml").write_text(SPEC)
    spec = read(tmp_path / "spec.toml")
    line = spec.modes["here"].line(spec.works[0])
    assert line[:2] == ["python3", f"{tmp_path}/sorting.py"]
    assert line[2:] == ["--threads", "3", "keys=10", "rounds=2", "all: keys=10 rounds=2", "{x}"]


def test_the_campaigns_of_whole_programs_are_sound() -> None:
    folder = Path(__file__).parents[2] / "testbed"
    apps, arrays = read(folder / "apps/campaign.toml"), read(folder / "arrays/campaign.toml")
    assert len(apps.works) >= 25 * 6
    assert len({work.workload for work in arrays.works}) >= 10
    assert arrays.modes["h200"].program == folder / "arrays/batch_cuda.py"
