from __future__ import annotations

import json

import pytest

from crossperf.plain import from_json, to_json
from crossperf.records import Run
from crossperf.runs import summary, table

RUNS = [
    Run("a", "1", "p", 1.0, "cpu", repeat=0, counters={"x": 1.0, "y": None}),
    Run("a", "1", "p", 3.0, "cpu", repeat=1, counters={"x": None, "y": None}),
    Run("a", "1", "q", 4.0, repeat=0, counters={"x": 1.0, "y": 2.0}),
    Run("a", "2", "p", 5.0, "cpu", repeat=0, counters={"x": 1.0, "y": 2.0}),
    Run("b", "1", "p", None, "cpu", status="timeout"),
    Run("b", "1", "p", None, "cpu", status="timeout"),
    Run("b", "1", "q", None, status="oom"),
]


def test_info_counts_what_a_person_would_count_by_hand() -> None:
    facts = to_json(summary.info(table.from_runs(RUNS, name="mine")))
    # Two repeats of 1 s and 3 s: standard deviation sqrt(2), mean 2.
    variation = pytest.approx(2**0.5 / 2)
    assert facts.pop("fingerprint")
    between = {"noise_between_visits": None}
    none = {"cannot_run": 0, "not_measured": 0}
    assert facts == {
        **between,
        "visits": None,
        "limited_workloads": 0,
        "path": "mine",
        "runs": 7,
        "failed": {"oom": 1, "timeout": 2},
        "apps": 1,
        "workloads": 2,
        "complete_workloads": 1,
        "cells": 3,
        "repeats": {"min": 1, "median": 1.0, "max": 2},
        "noise": {"median": variation, "p90": variation},
        "platforms": [
            {"name": "p", "class": "cpu", "runs": 3, "workloads": 2, "noise": variation, **between, **none},
            {
                "name": "q",
                "class": None,
                "runs": 1,
                "workloads": 1,
                "noise": None,
                **between,
                "cannot_run": 0,
                "not_measured": 1,
            },
        ],
        "counters": 2,
        "missing_counters": {"x": {"p": pytest.approx(1 / 3)}, "y": {"p": pytest.approx(2 / 3)}},
    }


def test_noise_is_not_known_without_repeats() -> None:
    assert summary.info(table.from_runs(RUNS[2:4])).noise == summary.Noise(None, None)


def test_a_table_of_failed_runs_alone_has_facts_that_json_can_hold() -> None:
    runs = [Run("a", "1", "p", None, status="oom", counters={"x": None})]
    facts = json.loads(json.dumps(to_json(summary.info(table.from_runs(runs, need_runtime=False))), allow_nan=False))
    assert (facts["runs"], facts["failed"], facts["cells"], facts["platforms"]) == (1, {"oom": 1}, 0, [])


def test_the_facts_of_a_table_come_back_from_their_json() -> None:
    facts = summary.info(table.from_runs(RUNS))
    assert from_json(summary.TableInfo, json.loads(json.dumps(to_json(facts)))) == facts
