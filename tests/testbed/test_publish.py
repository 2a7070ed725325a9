"""What the testbed refuses to publish."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from crossperf.records import OK, Run

TESTBED = Path(__file__).parents[2] / "testbed"
sys.path[:0] = [str(TESTBED)]

publish: Any = importlib.import_module("publish")


def checked(path: Path, *lines: tuple[float, list[float]]) -> None:
    """Write what check.py writes of as many programs: seconds of the whole, and composed before and after it."""
    facts = (
        {"platform": "cpu", "workload": "app", "input": str(i), "whole": whole, "composed": composed}
        for i, (whole, composed) in enumerate(lines)
    )
    path.write_text("".join(json.dumps(line) + "\n" for line in facts), encoding="utf-8")


def run_of(platform: str, checksum: object, kind: str = "proxy") -> Run:
    return Run("app", "n=1", platform, 1.0, status=OK, metadata={"kind": kind, "checksum": checksum})


def test_composed_programs_that_are_longer_than_whole_ones_on_average_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publish, "CHECKS", tmp_path / "check.jsonl")
    checked(tmp_path / "check.jsonl", (1.0, [1.1, 1.1]), (1.0, [1.2, 1.2]))
    composed = publish.check_composed()
    assert composed["cpu"]["bias"] == pytest.approx((1.1 * 1.2) ** 0.5)
    assert "composed programs take 1.149 of whole ones" in publish.too_far(composed)[0]


def test_composed_programs_may_be_as_far_from_whole_ones_as_they_are_from_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publish, "CHECKS", tmp_path / "check.jsonl")
    checked(tmp_path / "check.jsonl", (1.0, [1.0, 1.2]), (1.0, [1.0, 1 / 1.2]))
    composed = publish.check_composed()
    assert composed["cpu"]["composed_again"] == pytest.approx(1.2)
    assert publish.too_far(composed) == []
    checked(tmp_path / "check.jsonl", (1.0, [1.1, 1.1]), (1.1, [1.0, 1.0]))
    assert "a factor 1.100 from whole ones, expected 1.05" in publish.too_far(publish.check_composed())[0]


def test_results_that_differ_are_refused_and_single_precision_may_round() -> None:
    assert publish.different_results([run_of("a", 1.0), run_of("b", 1.0 + 1e-6)]) != []
    assert publish.different_results([run_of("a", 1.0), run_of("b", 1.0 + 1e-9)]) == []
    arrays = [run_of(name, value, "array program") for name, value in (("a", 1.0), ("b", 1.0 + 1e-6))]
    assert publish.different_results(arrays) == []


def test_a_digest_is_kept_apart_from_checksums_which_are_numbers() -> None:
    (told,) = publish.marked([run_of("a", "1e99")], publish.CAMPAIGNS["apps"])
    assert (told.metadata["checksum"], told.metadata["digest"], told.runnable) == (None, "1e99", "cpu")


def test_inputs_counted_twice_tell_how_well_an_event_repeats(tmp_path: Path) -> None:
    lines = [("a", 100.0, 5.0), ("b", 100.0, 5.0), ("a", 110.0, 5.0), ("c", 7.0, 0.0), ("c", 7.0, 5.0)]
    facts = (
        {"counts": "gpu", "tool": "ncu", "workload": name, "input": "n=1", "events": {"loads": loads, "misses": misses}}
        for name, loads, misses in lines
    )
    (tmp_path / "counts.jsonl").write_text("".join(json.dumps(line) + "\n" for line in facts), encoding="utf-8")
    again = publish.counted_again(tmp_path)
    assert again["loads"]["inputs"] == 2
    assert again["loads"]["typical_factor"] == pytest.approx(1.1**0.5)
    assert again["misses"] == {"inputs": 1, "typical_factor": 1.0, "median_factor": 1.0}
