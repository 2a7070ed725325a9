from __future__ import annotations

import json
from pathlib import Path

import pytest

from crossperf.errors import ProfileFileError
from crossperf.importers import perf
from crossperf.importers.measurement import counted

DATA = Path(__file__).parents[1] / "data" / "perf"


@pytest.mark.parametrize("name", ["software.csv", "software.json", "semicolons.csv", "intervals.csv", "repeats.csv"])
def test_recorded_files_of_perf_are_read(name: str) -> None:
    path = DATA / name
    assert perf.reads(path)
    (found,) = perf.read(path)
    assert found.events["page-faults"] is not None
    assert found.events["page-faults"] > 0
    assert found.events["instructions"] is None
    assert any("could not count instructions" in note for note in found.notes)
    assert found.runtime_s is not None
    assert found.runtime_s == pytest.approx(0.3, abs=0.15)


def test_intervals_add_up_to_the_whole() -> None:
    (found,) = perf.read(DATA / "intervals.csv")
    lines = [line.split(",") for line in (DATA / "intervals.csv").read_text().splitlines() if "page-faults" in line]
    counts = [float(fields[1]) for fields in lines if fields[1] != "<not counted>"]
    assert found.events["page-faults"] == sum(counts)
    assert len(lines) > len(counts) > 1


def test_json_and_csv_of_one_kind_of_run_name_the_same_events() -> None:
    events = [set(perf.read(DATA / name)[0].events) for name in ("software.csv", "software.json", "semicolons.csv")]
    assert events[0] == events[1] == events[2]


def test_a_shared_counter_keeps_its_share_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "perf.json"
    row = {"counter-value": "1000.0", "unit": "", "event": "cache-misses", "event-runtime": 5, "pcnt-running": 40.0}
    path.write_text(json.dumps(row) + "\n")
    (found,) = perf.read(path)
    assert found.facts["perf_running_share"] == {"cache-misses": 0.4}
    assert found.notes[0] == "cache-misses was counted for 40% of the time and scaled by perf"


def test_a_negative_count_stays_in_the_events_and_out_of_the_counters(tmp_path: Path) -> None:
    path = tmp_path / "perf.csv"
    path.write_text("-12,,branch-misses,100,50.00,,\n300,,branches,100,50.00,,\n")
    (found,) = perf.read(path)
    assert found.events["branch-misses"] == -12
    result = counted([found])
    assert "branch_miss_ratio" not in result.values
    assert "negative" in result.missing["branch_miss_ratio"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "found no event"),
        ("# started on Sunday\n\n", "found no event"),
        ("Performance counter stats for 'ls':\n", "found no event"),
        ("12,,page-faults,5,100.00\n\x00\x01garbage", "line 2"),
    ],
)
def test_what_is_no_output_of_perf_stat_is_refused_in_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "perf.txt"
    path.write_text(text)
    with pytest.raises(ProfileFileError, match=sentence):
        perf.read(path)


def test_both_kinds_of_cores_of_a_hybrid_processor_are_added_up(tmp_path: Path) -> None:
    path = tmp_path / "perf.csv"
    path.write_text("30,,cpu_core/instructions/u,5,100.00\n12,,cpu_atom/instructions/u,5,100.00\n")
    assert counted(perf.read(path)).values["instructions"] == 42.0


def test_cores_of_several_kinds_on_arm_are_added_up_and_a_comma_too_many_does_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "perf.json"
    row = '{{"counter-value" : "{}", "unit" : "", "event" : "{}/instructions/", "pcnt-running" : 100.00, }}'
    path.write_text("\n".join([row.format("30.0", "armv8_pmuv3_0"), row.format("12.0", "armv8_cortex_a53")]) + "\n")
    assert counted(perf.read(path)).values["instructions"] == 42.0
