from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from crossperf.errors import ProfileFileError
from crossperf.importers import cross_modeling
from crossperf.importers.measurement import to_run

# The keys that run-quartz.sbatch prints, in its order, then metrics as read from the database.
DESCRIBED = {
    "machine": "quartz",
    "app": "laghos",
    "exec": "laghos",
    "args": "-p 1 -m data/cube.mesh -rs 2",
    "ranks": "1",
    "events": "-e PAPI_TOT_INS -e REALTIME",
    "path": "/data/quartz/laghos/0cc1",
    "modules": "gcc/10",
    "spack_env": "laghos",
    "exec_path": "/opt/laghos",
    "duration": "2.5000",
}
COUNTED = {"PAPI_TOT_INS": 8e9, "PAPI_BR_INS": 2e9, "REALTIME (sec)": 120.25, "IO Bytes Read": 4096.0}
# The columns of a table that combine-datasets.py makes.
INTEL = "PAPI_BR_INS,PAPI_LD_INS,PAPI_SR_INS,PAPI_TOT_INS,PAPI_L1_LDM,PAPI_L1_STM,PAPI_L2_LDM,PAPI_L2_STM,EPT,"
INTEL += (
    "FP_ARITH:SCALAR_SINGLE,FP_ARITH:SCALAR_DOUBLE,ARITH,IO Bytes Read,IO Bytes Written,PAPI_MEM_WCY,REALTIME (sec)"
)


def results(folder: Path, **changes: Any) -> Path:
    folder.mkdir(exist_ok=True, parents=True)
    path = folder / "results.json"
    path.write_text(json.dumps(DESCRIBED | COUNTED | changes))
    return path


def combined(path: Path, *rows: dict[str, Any]) -> Path:
    names = [*DESCRIBED, *INTEL.split(",")]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, names, quoting=csv.QUOTE_NONNUMERIC)
        writer.writeheader()
        for row in rows:
            writer.writerow(dict.fromkeys(names, 0.0) | DESCRIBED | COUNTED | row)
    return path


def test_results_of_a_run_become_a_run(tmp_path: Path) -> None:
    path = results(tmp_path / "0cc1")
    assert cross_modeling.reads(path)
    assert cross_modeling.reads(path.parent)
    (found,) = cross_modeling.read(path.parent).measurements
    run = to_run([found])
    assert (run.app, run.platform, run.platform_class, run.ranks) == ("laghos", "quartz", "cpu", 1)
    assert run.input == "-p 1 -m data/cube.mesh -rs 2 ranks=1"
    assert run.runtime_s == 120.25
    assert run.counters["instructions"] == 8e9
    assert run.counters["control_ratio"] == 0.25
    assert run.counters["io_bytes_read"] == 4096.0


def test_duration_in_minutes_stands_in_for_the_metric(tmp_path: Path) -> None:
    (found,) = cross_modeling.read(results(tmp_path, **{"REALTIME (sec)": -1})).measurements
    assert found.runtime_s == 150.0
    assert any("duration" in note for note in found.notes)


def test_minus_one_is_missing_and_counted_in_a_note(tmp_path: Path) -> None:
    absent = ["PAPI_L1_STM", "PAPI_L2_LDM", "PAPI_L2_STM", "EPT", "FP_ARITH:SCALAR_SINGLE"]
    absent += ["FP_ARITH:SCALAR_DOUBLE", "ARITH"]
    table = combined(tmp_path / "data.csv", {"machine": "corona"} | dict.fromkeys(absent, -1))
    assert cross_modeling.reads(table)
    (found,) = cross_modeling.read(table).measurements
    assert [name for name in absent if found.events[name] is not None] == []
    assert any(note.startswith("7 counters hold -1") for note in found.notes)
    assert found.events["PAPI_BR_INS"] == 2e9


def test_names_that_hide_another_meaning_get_their_own(tmp_path: Path) -> None:
    counts = {"PAPI_LD_INS": 11.0, "PAPI_L1_LDM": 12.0, "ARITH": 13.0, "FP_ARITH:SCALAR_DOUBLE": 14.0}
    rows = [{"machine": machine} | counts for machine in ("ruby", "lassen", "corona")]
    ruby, lassen, corona = cross_modeling.read(combined(tmp_path / "data.csv", *rows)).measurements
    assert ruby.events["ARITH"] == 13.0  # divider-active cycles, which no formula takes for integer instructions
    assert "int_ratio" not in to_run([ruby]).counters
    assert (lassen.events["PAPI_INT_INS"], lassen.events["PAPI_FP_INS"]) == (13.0, 14.0)
    assert "ARITH" not in lassen.events
    assert corona.events["LS_DISPATCH:LD_DISPATCH"] == 11.0
    assert "PAPI_LD_INS" not in corona.events
    assert "PAPI_L1_LDM" not in corona.events


def test_pmu_prefixes_of_a_single_machine_go(tmp_path: Path) -> None:
    native = {"bdw_ep::FP_ARITH:SCALAR_DOUBLE ": 5.0, "bdw_ep::FP_ARITH:SCALAR_SINGLE": 3.0}
    (found,) = cross_modeling.read(results(tmp_path, **native)).measurements
    assert to_run([found]).counters["float_ratio"] == 8.0 / 8e9


def test_means_over_ranks_are_called_so(tmp_path: Path) -> None:
    (mean,) = cross_modeling.read(results(tmp_path / "a", ranks="36")).measurements
    (first,) = cross_modeling.read(results(tmp_path / "b", ranks="36", machine="corona")).measurements
    assert any("the mean over ranks" in note for note in mean.notes)
    assert any("of rank 0" in note for note in first.notes)


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ("slurmstepd: error: *** STEP 1 CANCELLED AT NOW DUE TO TIME LIMIT ***", "timed out"),
        ("[quartz1:mpi_rank_0] Caught error: Segmentation fault (signal 11)", "segmentation fault"),
    ],
)
def test_a_run_that_died_is_kept_with_its_reason(words: str, status: str, tmp_path: Path) -> None:
    whole = "{\n" + "".join(f'\t"{name}": "{value}",\n' for name, value in list(DESCRIBED.items())[:-1])
    (tmp_path / "results.json").write_text(whole)
    (tmp_path / "std.err").write_text(f"starting\n{words}\n")
    (found,) = cross_modeling.read(tmp_path).measurements
    run = to_run([found])
    assert (run.app, run.platform, run.status, run.runtime_s) == ("laghos", "quartz", status, None)
    (tmp_path / "std.err").unlink()
    (found,) = cross_modeling.read(tmp_path).measurements
    assert found.facts["status"] == "the job ended before its results were complete"


def test_results_cut_short_anywhere_are_a_failed_run_or_one_clear_error(tmp_path: Path) -> None:
    whole = "{\n" + ",\n".join(f'\t"{name}": "{value}"' for name, value in DESCRIBED.items()) + "\n}\n"
    path = tmp_path / "results.json"
    for size in range(len(whole) - 2):
        path.write_text(whole[:size])
        try:
            (found,) = cross_modeling.read(path).measurements
        except ProfileFileError as error:
            assert "expected" in str(error)
        else:
            assert found.facts["status"] != "ok"


def test_bad_rows_are_told_with_row_and_column_and_the_rest_kept(tmp_path: Path) -> None:
    rows = [{}, {"PAPI_TOT_INS": "lots"}, {"REALTIME (sec)": 0.0, "duration": "0"}, {}]
    reading = cross_modeling.read(combined(tmp_path / "data.csv", *rows))
    measurements, rejected = reading.measurements, reading.rejected
    assert len(measurements) == 2
    assert [bad.row for bad in rejected] == [2, 3]
    assert "column 'PAPI_TOT_INS': found 'lots'" in rejected[0].reason
    assert "expected the runtime" in rejected[1].reason


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"machine": 1}', "\x00"])
def test_other_json_is_refused_in_one_sentence(text: str, tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text(text)
    assert not cross_modeling.reads(path)
    with pytest.raises(ProfileFileError, match=r"expected the results\.json of a run"):
        cross_modeling.read(path)


def test_another_table_is_not_taken_for_one_of_theirs(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("app,input,platform\na,b,c\n")
    assert not cross_modeling.reads(path)
    with pytest.raises(ProfileFileError, match="found no column machine, args, ranks"):
        cross_modeling.read(path)
