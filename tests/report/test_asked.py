"""The answer of `crossperf ask` in lines: order, ranges, seconds, costs, and what is not claimed."""

from __future__ import annotations

import json
from dataclasses import replace

from crossperf.records import CANNOT_RUN, NO_VERSION_KNOWN, Familiarity, Prediction
from crossperf.report.asked import Asked, lines

PREDICTION = Prediction(
    "gzip",
    "-9 big.txt",
    "slow",
    "source",
    {"slow": 1.0, "fast": 0.25, "other": 2.0, "gpu": float("nan")},
    level=0.8,
    low={"slow": 1.0, "fast": 0.2, "other": 1.5},
    high={"slow": 1.0, "fast": 0.4, "other": 3.0},
    chance_fastest={"slow": 0.05, "fast": 0.9, "other": 0.05},
    familiarity=Familiarity("familiar", 0.5),
    cannot={"gpu": NO_VERSION_KNOWN},
)
ASKED = Asked(PREDICTION, 4.0, "A processor, 2 cores", 1, classes={"gpu": "gpu"})


def text(asked: Asked) -> str:
    return "\n".join(lines(asked))


def test_rows_stand_in_order_with_seconds_ranges_and_the_chance_to_be_fastest() -> None:
    rows = [line.split() for line in lines(ASKED)]
    assert rows[0] == ["gzip", "-9", "big.txt:", "4.00", "s", "here", "on", "1", "thread"]
    assert rows[4:7] == [
        ["fast", "1.00", "0.800", "to", "1.60", "0.25x", "90%"],
        ["slow", "4.00", "measured", "1.00x", "5%"],
        ["other", "8.00", "6.00", "to", "12.0", "2.00x", "5%"],
    ]
    assert "Fastest is fast, 4 times as fast as here; 90% sure." in lines(ASKED)


def test_a_platform_whose_range_reaches_the_time_here_is_not_called_faster() -> None:
    close = replace(PREDICTION, relative_time={**PREDICTION.relative_time, "fast": 0.95}, high={"fast": 1.2})
    told = " ".join(lines(replace(ASKED, prediction=close)))
    assert "Nothing is clearly faster than here: fast comes first, 1.1 times as fast as here; 90% sure." in told


def test_a_platform_that_cannot_run_it_has_no_time_and_says_why() -> None:
    assert "  gpu: no version known (if there is one: --can gpu)" in lines(ASKED)
    assert "  gpu: cannot run" in lines(replace(ASKED, prediction=replace(PREDICTION, cannot={"gpu": CANNOT_RUN})))
    assert "gpu" not in ASKED.order


def test_a_machine_that_is_not_known_gets_wider_ranges_no_single_seconds_and_no_certainty() -> None:
    asked = replace(ASKED, differs=("1 MiB of L2 cache instead of 512 KiB",))
    rows = [line.split() for line in lines(asked)]
    assert ["fast", "0.533", "to", "2.40", "about", "0.25x"] in rows
    assert ["slow", "2.67", "to", "6.00", "about", "1x"] in rows
    assert "sure" not in text(asked)
    assert "takes it for slow" in text(asked)
    assert asked.to_json()["range"]["fast"] == [0.2 / 1.5, 0.4 * 1.5]


def test_a_run_that_is_unknown_gets_no_numbers_but_what_to_do() -> None:
    unknown = replace(PREDICTION, familiarity=Familiarity("unknown", 4.0, ("page_faults",)))
    asked = replace(ASKED, prediction=unknown, lacking=("branches", "loads"))
    assert "Cannot tell" in text(asked)
    assert "page_faults" in text(asked)
    assert "on fast first" in text(asked)
    assert "2 counters that the model knows were not counted (branches, loads)" in text(asked).replace("\n", " ")
    assert "x" not in "".join(line for line in lines(asked) if line.startswith("  "))
    assert asked.to_json()["can_tell"] is False


def test_an_unusual_run_is_to_be_believed_in_ranges() -> None:
    unusual = replace(PREDICTION, familiarity=Familiarity("unusual", 1.5, ("page_faults",)))
    assert "believe the ranges, not the numbers" in text(replace(ASKED, prediction=unusual)).replace("\n", " ")


def test_costs_stand_where_prices_are_known_and_the_cheapest_is_named() -> None:
    asked = replace(ASKED, prices={"fast": 36.0, "slow": 3.6})
    assert asked.costs == {"fast": 36.0 / 3600.0, "slow": 4.0 * 3.6 / 3600.0}
    rows = [line.split() for line in lines(asked)]
    assert rows[3][-3:] == ["cost", "of", "1,000"]
    assert [row[-1] for row in rows[4:7]] == ["10.0", "4.00", "-"]
    assert "Cheapest is slow, of those with a price." in lines(asked)


def test_short_runs_are_told_in_milliseconds_and_runs_without_a_time_in_relative_ones() -> None:
    assert lines(replace(ASKED, runtime_s=0.004))[0].endswith("4.00 ms here on 1 thread")
    rows = [line.split() for line in lines(replace(ASKED, runtime_s=None))]
    assert ["fast", "0.25x", "0.20x", "to", "0.40x", "90%"] in rows


def test_nothing_is_wider_than_a_terminal_and_json_holds_the_same_facts() -> None:
    wordy = replace(ASKED, differs=tuple(f"fact {n} of this instead of that" for n in range(9)), lacking=("a",) * 30)
    assert max(map(len, lines(wordy))) <= 80
    facts = json.loads(json.dumps(ASKED.to_json()["here"]))
    assert facts == {
        "platform": "slow",
        "same_machine": True,
        "differs": [],
        "machine": "A processor, 2 cores",
        "threads": 1,
        "runtime_s": 4.0,
    }
