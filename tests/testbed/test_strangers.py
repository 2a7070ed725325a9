"""The programs on which benchmarks/familiarity.py asks a model: none of the testbed, timed in rounds that go on."""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path[:0] = [str(BENCHMARKS), str(BENCHMARKS.parent / "testbed" / "apps")]

import apps  # noqa: E402
import inputs  # noqa: E402

import strangers  # noqa: E402

STRANGERS = apps.read(BENCHMARKS / "strangers.toml")


def timed_of(times: dict[str, list[float]]) -> strangers.Timed:
    """Return the times of one program, by platform and round."""
    lines = [
        {"platform": where, "round": number, "seconds": seconds, "status": "unchecked"}
        for where, of_rounds in times.items()
        for number, seconds in enumerate(of_rounds)
    ]
    return strangers.Timed.of(lines)


def test_no_program_of_the_testbed_is_among_them() -> None:
    known = apps.read()
    programs = {path for app in known.values() for path in app.programs}
    assert not set(STRANGERS) & set(known)
    assert not {path for app in STRANGERS.values() for path in app.programs} & programs


def test_they_are_of_many_fields_and_half_of_them_can_use_two_threads() -> None:
    assert len(STRANGERS) >= 20
    assert len({app.field for app in STRANGERS.values()}) >= 12
    assert 0.4 <= sum(app.parallel for app in STRANGERS.values()) / len(STRANGERS) <= 0.6


@pytest.mark.parametrize("name", STRANGERS)
def test_every_file_that_one_needs_can_be_made(name: str) -> None:
    app = STRANGERS[name]
    for file in app.files(app.cases[0]):
        assert file.partition("-")[0] in inputs.MAKERS
    scripts = [word for word in (*app.command, *app.prepare) if word.startswith("{programs}/")]
    assert all(Path(word.format(programs=BENCHMARKS / "strangers")).exists() for word in scripts)


def test_a_ratio_is_that_of_medians_and_halves_are_every_other_round() -> None:
    timed = timed_of({"epyc-1t": [2.0, 4.0, 2.0, 4.0], "epyc-2t": [1.0, 3.0, 1.0, 3.0, 9.0]})
    assert len(timed) == 4  # a round counts where it has both platforms
    assert timed.ratio() == pytest.approx(2.0 / 3.0)
    assert timed.halves == pytest.approx((3.0 / 4.0) / (1.0 / 2.0))


def test_a_run_beside_which_others_worked_does_not_count() -> None:
    quiet = {"platform": "epyc-1t", "round": 0, "seconds": 1.0, "status": "unchecked", "others_s": 0.1}
    assert strangers.counts(quiet)
    assert not strangers.counts(quiet | {"others_s": 0.9})
    assert not strangers.counts(quiet | {"status": "failed"})


def test_a_second_start_times_what_the_first_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(app: apps.App, *_: object) -> dict[str, object]:
        return {"workload": app.name, "seconds": 1.0, "user_s": 1.0, "system_s": 0.0, "status": "unchecked"}

    monkeypatch.setattr(strangers.testbed_run, "measure", measure)
    monkeypatch.setattr(strangers, "busy_s", lambda: 0.0)
    programs = {name: STRANGERS[name] for name in ("gcc", "heat")}
    first = list(itertools.islice(strangers.rounds(strangers.Study(tmp_path), programs, 2), 3))
    second = list(strangers.rounds(strangers.Study(tmp_path), programs, 2))
    assert (len(first), len(second)) == (3, 5)
    lines = [json.loads(line) for line in (tmp_path / "times.jsonl").read_text().splitlines()]
    assert len({(line["round"], line["workload"], line["platform"]) for line in lines}) == 8
