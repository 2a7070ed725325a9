from __future__ import annotations

import json
from pathlib import Path

import pytest

from crossperf.errors import ProfileFileError
from crossperf.importers import mapping
from crossperf.importers.measurement import to_run
from crossperf.importers.tabular import ProfileReading

MAPPING = """
tool = "papi"
missing = [-1, "n/a"]
[columns]
app = "benchmark"
input = ["size", "ranks"]
platform = "node"
ranks = "ranks"
runtime_s = { column = "time_ms", factor = 0.001 }
[constants]
platform_class = "cpu"
[events]
PAPI_TOT_INS = "instr"
PAPI_BR_INS = { column = "kilo_branches", factor = 1000 }
[counters]
page_faults = "faults"
"""
HEADER = "benchmark,size,ranks,node,time_ms,instr,kilo_branches,faults\n"
ROW = "amg,120,4,quartz,2500,8000,2,77\n"


def write(tmp_path: Path, rows: str, text: str = MAPPING) -> tuple[Path, Path]:
    table, map_file = tmp_path / "t.csv", tmp_path / "map.toml"
    table.write_text(HEADER + rows)
    map_file.write_text(text)
    return table, map_file


def read(table: Path, map_file: Path) -> ProfileReading:
    return mapping.read(table, mapping.load(map_file))


def test_columns_events_counters_and_constants_are_found_and_units_converted(tmp_path: Path) -> None:
    (found,) = read(*write(tmp_path, ROW)).measurements
    assert found.runtime_s == pytest.approx(2.5)
    assert found.events == {"PAPI_TOT_INS": 8000.0, "PAPI_BR_INS": 2000.0}
    assert found.counters == {"page_faults": 77.0}
    run = to_run([found])
    assert (run.app, run.input, run.platform, run.platform_class, run.ranks) == ("amg", "120 4", "quartz", "cpu", 4)
    # By the catalog's formulas: 2000 branches of 8000 instructions.
    assert run.counters["control_ratio"] == 0.25


@pytest.mark.parametrize("absent", ["", "-1", "-1.0", "n/a", "NaN"])
def test_missing_zero_and_negative_stay_three_things(absent: str, tmp_path: Path) -> None:
    rows = f"amg,120,4,quartz,2500,{absent},0,-5\n"
    (found,) = read(*write(tmp_path, rows)).measurements
    assert found.events == {"PAPI_TOT_INS": None, "PAPI_BR_INS": 0.0}
    assert found.counters == {"page_faults": None}
    assert found.notes == ("page_faults was -5, which no count can be; it is kept as not measured",)


def test_jsonl_reads_like_csv_and_a_mapping_may_be_json(tmp_path: Path) -> None:
    table, _ = write(tmp_path, ROW)
    lines = tmp_path / "t.jsonl"
    lines.write_text(json.dumps({"benchmark": "amg", "size": 120, "ranks": 4.0, "node": "quartz", "time_ms": 2500}))
    map_file = tmp_path / "map.json"
    columns = {"app": "benchmark", "input": ["size", "ranks"], "platform": "node"}
    columns["runtime_s"] = {"column": "time_ms", "factor": 0.001}
    map_file.write_text(json.dumps({"columns": columns, "events": {"PAPI_TOT_INS": "instr"}}))
    (from_csv,), (from_lines,) = read(table, map_file).measurements, read(lines, map_file).measurements
    assert from_csv.facts == from_lines.facts
    assert from_csv.runtime_s == from_lines.runtime_s == pytest.approx(2.5)
    assert from_lines.events == {"PAPI_TOT_INS": None}


def test_bad_cells_name_row_and_column_and_the_other_rows_are_kept(tmp_path: Path) -> None:
    rows = ROW + "amg,120,4,quartz,-3,many,2,1\n" + ROW + "amg,120,x,quartz,1,inf,2,1\n"
    table, map_file = write(tmp_path, rows)
    reading = read(table, map_file)
    measurements, rejected = reading.measurements, reading.rejected
    assert [measurement.facts["imported_row"] for measurement in measurements] == [1, 3]
    assert [bad.row for bad in rejected] == [2, 4]
    assert "column 'time_ms': found '-3', expected seconds above 0" in rejected[0].reason
    assert "column 'instr': found 'many', expected a number" in rejected[0].reason
    assert "column 'ranks': found 'x', expected a whole number" in rejected[1].reason
    assert "column 'instr': found 'inf'" in rejected[1].reason


def test_a_runtime_may_be_empty_for_a_failed_run_alone(tmp_path: Path) -> None:
    text = MAPPING.replace("[columns]", '[columns]\nstatus = "faults"').replace('page_faults = "faults"', "")
    reading = read(*write(tmp_path, ROW.replace("2500", "").replace("77", "crashed"), text))
    assert reading.measurements[0].facts["status"] == "crashed"
    assert not reading.rejected
    (rejected,) = read(*write(tmp_path, ROW.replace("2500", ""))).rejected
    assert "column 'time_ms': found nothing, expected the runtime" in rejected.reason


def test_a_column_that_the_table_lacks_is_named_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(ProfileFileError, match=r"no column 'instrs' \(did you mean 'instr'\?\)"):
        read(*write(tmp_path, ROW, MAPPING.replace('"instr"', '"instrs"')))


def test_everything_wrong_with_a_mapping_is_said_at_once(tmp_path: Path) -> None:
    map_file = tmp_path / "map.toml"
    map_file.write_text('colums = 1\nmissing = 3\n[columns]\nplatfrom = "x"\nruntime_s = ["a", "b"]\n[events]\nE = 5\n')
    with pytest.raises(ProfileFileError) as caught:
        mapping.load(map_file)
    for words in ("'colums' (did you mean 'columns'?)", "'platfrom'", "columns.runtime_s", "events.E", "for missing"):
        assert words in str(caught.value)


@pytest.mark.parametrize(
    "text", ["[columns", "", "[columns]\napp = 'a'", "[constants]\napp='x'\n[columns]\napp='y'\n[events]\nE='e'"]
)
def test_a_broken_or_empty_mapping_is_one_clear_error(text: str, tmp_path: Path) -> None:
    map_file = tmp_path / "map.toml"
    map_file.write_text(text)
    with pytest.raises(ProfileFileError, match="expected"):
        mapping.load(map_file)


def test_an_absent_mapping_and_an_empty_table_are_clear_errors(tmp_path: Path) -> None:
    with pytest.raises(ProfileFileError, match="expected a mapping file"):
        mapping.load(tmp_path / "nowhere.toml")
    with pytest.raises(ProfileFileError, match="found no row"):
        read(*write(tmp_path, ""))
    bad = tmp_path / "map.json"
    bad.write_text("[1]")
    with pytest.raises(ProfileFileError, match="found a list"):
        mapping.load(bad)
