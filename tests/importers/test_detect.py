from __future__ import annotations

import json
from pathlib import Path

import pytest

from crossperf.errors import ProfileFileError, SettingsError
from crossperf.importers.detect import FORMATS, Importer, guess, import_runs, importers
from crossperf.importers.tabular import ProfileReading
from crossperf.runs import jsonl
from crossperf.runs.table import check
from tests.importers.hpctoolkit_files import ThreadValues, write_v3, write_v4

THREADS: list[ThreadValues] = [(0, 0, {"PAPI_TOT_INS": 4e9, "REALTIME (sec)": 2.5})]
METRICS = ["PAPI_TOT_INS", "REALTIME (sec)"]
CALIPER = json.dumps([{"path": "main", "time": 1.5, "PAPI_TOT_INS": 7}])
RESULTS = {"machine": "ruby", "app": "amg", "args": "-n 3", "ranks": "1", "duration": "1", "PAPI_TOT_INS": 5.0}


def test_every_format_of_the_command_line_has_an_importer() -> None:
    assert (
        *("hpctoolkit", "caliper", "papi", "perf", "ncu", "nvprof", "rocprof", "nsys", "likwid", "tau", "perf-data"),
        *("scorep", "vtune", "google-benchmark", "cross-modeling", "table"),
    ) == FORMATS
    assert all(name == importer.name for name, importer in importers().items())


def test_formats_are_told_apart_by_their_looks(tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text(CALIPER)
    (tmp_path / "results.json").write_text(json.dumps(RESULTS))
    assert guess(write_v3(tmp_path / "v3", THREADS, METRICS)) == "hpctoolkit"
    assert guess(write_v4(tmp_path / "v4", THREADS, METRICS)) == "hpctoolkit"
    assert guess(tmp_path / "c.json") == "caliper"
    assert guess(tmp_path / "results.json") == "cross-modeling"


@pytest.mark.parametrize("content", [b"", b"\x00\xff", b"hello\n", b"a,b\n1,2\n", b"{}", b"[[[["])
def test_what_no_reader_knows_is_told_with_all_that_do(content: bytes, tmp_path: Path) -> None:
    for name in ("a.csv", "a.json", "a.cali.txt", "a"):
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(ProfileFileError, match="found no format that crossperf knows, expected one of hpctoolkit"):
            guess(path)
    with pytest.raises(ProfileFileError, match="found no format"):
        guess(tmp_path)


def test_what_several_importers_claim_is_refused_with_their_names(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text(CALIPER)
    greedy = Importer("greedy", lambda path: True, lambda path: ProfileReading([], []))
    with pytest.raises(ProfileFileError, match="could be caliper or greedy"):
        guess(path, {**importers(), "greedy": greedy})


def test_runs_carry_names_from_options_above_those_of_the_file(tmp_path: Path) -> None:
    database = write_v4(tmp_path / "db", THREADS, METRICS, title="toy")
    found = import_runs("hpctoolkit", [database], input="30", platform="quartz", platform_class="cpu")
    (run,) = found.runs
    assert (run.app, run.input, run.platform, run.platform_class) == ("toy", "30", "quartz", "cpu")
    assert run.counters["instructions"] == 4e9
    assert run.metadata["imported_from"] == str(database)
    assert found.rejected == []
    assert all(path == str(database) for path, _ in found.notes)
    assert import_runs("auto", [database], app="other", input="1", platform="p").runs[0].app == "other"


def test_a_run_without_a_name_says_which_arguments_to_give(tmp_path: Path) -> None:
    database = write_v4(tmp_path / "db", THREADS, METRICS)
    with pytest.raises(ProfileFileError, match=r"found no input and no platform.*Give input and platform yourself"):
        import_runs("auto", [database])
    with pytest.raises(ProfileFileError, match=r"Give platform yourself\."):
        import_runs("auto", [database], input="1")


def test_a_folder_of_many_profiles_is_searched_and_the_bad_one_left_out_with_its_reason(tmp_path: Path) -> None:
    for name in ("run1", "deep/run2"):
        write_v4(tmp_path / "all" / name, THREADS, METRICS)
    write_v3(tmp_path / "all" / "old", THREADS, METRICS)
    broken = write_v4(tmp_path / "all" / "run3", THREADS, METRICS)
    (broken / "cct.db").unlink()
    (tmp_path / "all" / "README").write_text("nothing to read here")
    found = import_runs("auto", [tmp_path / "all"], input="1", platform="p")
    assert len(found.runs) == 3
    (rejected,) = found.rejected
    assert rejected.path == str(broken)
    assert "without cct.db" in rejected.reason


def test_several_paths_keep_going_past_a_missing_one(tmp_path: Path) -> None:
    database = write_v4(tmp_path / "db", THREADS, METRICS)
    found = import_runs("hpctoolkit", [tmp_path / "nowhere", database], input="1", platform="p")
    assert len(found.runs) == 1
    assert "found nothing there" in found.rejected[0].reason


def test_nothing_readable_at_all_is_an_error_with_the_reasons(tmp_path: Path) -> None:
    with pytest.raises(ProfileFileError, match="found nothing there"):
        import_runs("auto", [tmp_path / "nowhere"])
    with pytest.raises(ProfileFileError, match="found no HPCToolkit database"):
        import_runs("hpctoolkit", [tmp_path])
    with pytest.raises(ProfileFileError, match="no path: found no profile"):
        import_runs("auto", [])


def test_results_of_many_runs_are_collected_and_a_dead_one_stays_as_failed(tmp_path: Path) -> None:
    for name in ("0a", "0b", "0c"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "results.json").write_text(json.dumps(RESULTS))
    (tmp_path / "0c" / "results.json").write_text('{\n\t"machine": "ruby",\n\t"app": "amg",\n\t"args": "-n 3",\n')
    found = import_runs("cross-modeling", [tmp_path])
    assert [run.status == "ok" for run in found.runs] == [True, True, False]


def table(tmp_path: Path, rows: str) -> tuple[Path, Path]:
    (tmp_path / "t.csv").write_text("name,size,node,s,instr\n" + rows)
    (tmp_path / "map.toml").write_text(
        '[columns]\napp="name"\ninput="size"\nplatform="node"\nruntime_s="s"\n[events]\nPAPI_TOT_INS="instr"\n'
    )
    return tmp_path / "t.csv", tmp_path / "map.toml"


def test_rows_of_a_table_that_cannot_be_used_are_left_out_one_by_one(tmp_path: Path) -> None:
    path, map_file = table(tmp_path, "a,1,p,2.0,5\na,1,p,zero,5\na,1,,2.0,5\na,1,p\n")
    found = import_runs("table", [path], mapping=map_file)
    assert [run.metadata["imported_row"] for run in found.runs] == [1]
    assert [bad.row for bad in found.rejected] == [2, 3, 4] or [bad.row for bad in found.rejected] == [2, 4, 3]
    reasons = {bad.row: bad.reason for bad in found.rejected}
    assert "column 's'" in reasons[2]
    assert "found no platform" in reasons[3]
    assert "3 cells, expected 5" in reasons[4]
    assert len(import_runs("table", [path], mapping=map_file, platform="q").runs) == 2


def test_a_mapping_goes_with_a_table_alone(tmp_path: Path) -> None:
    path, map_file = table(tmp_path, "a,1,p,2.0,5\n")
    with pytest.raises(SettingsError, match="needs a mapping file"):
        import_runs("table", [path])
    with pytest.raises(SettingsError, match=r"mapping: .*for format 'table', not 'auto'"):
        import_runs("auto", [path], mapping=map_file)
    with pytest.raises(SettingsError, match=r"did you mean 'caliper'\?"):
        import_runs("calliper", [path])


def test_regions_choose_what_a_run_of_caliper_is(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text(json.dumps([{"path": "a/x", "time": 1.5}, {"path": "a/y", "time": 2.5}]))
    whole = import_runs("caliper", [path], app="suite", input="1", platform="p")
    leaves = import_runs("auto", [path], input="1", platform="p", regions="leaf")
    assert [run.runtime_s for run in whole.runs] == [4.0]
    assert [run.app for run in leaves.runs] == ["x", "y"]
    assert sum("no counter could be made" in note for _, note in leaves.notes) == 1


def test_runs_that_were_built_differently_and_count_as_repeats_are_noted(tmp_path: Path) -> None:
    for flags in ("-O0", "-O3"):
        facts = {"records": [{"path": "x", "time": 1.5}], "cluster": "quartz", "cmake_cxx_flags": flags}
        (tmp_path / f"{flags}.json").write_text(json.dumps(facts))
    found = import_runs("caliper", [tmp_path], regions="leaf", input="1")
    assert len(found.runs) == 2
    assert [note for where, note in found.notes if where == "quartz" and "cmake_cxx_flags (-O0, -O3)" in note]
    alone = import_runs("caliper", [tmp_path / "-O0.json"], regions="leaf", input="1")
    assert not [note for _, note in alone.notes if "differ" in note]


def test_recorded_outputs_of_every_tool_are_claimed_by_their_own_reader_alone() -> None:
    claimed = [
        (name, path)
        for name, importer in importers().items()
        for path in sorted((Path(__file__).parents[1] / "data" / name).rglob("*"))
        if path.is_file() and importer.reads(path)
    ]
    assert {name for name, _ in claimed} >= {"perf", "papi", "ncu"}
    for name, path in claimed:
        assert guess(path) == name


@pytest.mark.parametrize("format_", ["table", "cross-modeling", "hpctoolkit", "caliper"])
def test_imported_runs_are_a_sound_table_that_nothing_is_to_be_said_about(format_: str, tmp_path: Path) -> None:
    path, map_file = table(tmp_path, "a,1,p,2.0,5\na,2,p,2.5,6\n")
    if format_ == "cross-modeling":
        path = tmp_path / "results.json"
        path.write_text(json.dumps(RESULTS))
    elif format_ == "hpctoolkit":
        path = write_v4(tmp_path / "db", THREADS, METRICS)
    elif format_ == "caliper":
        path = tmp_path / "c.json"
        path.write_text(CALIPER)
    mapping = map_file if format_ == "table" else None
    imported = import_runs(format_, [path], app="a", input="1", platform="p", mapping=mapping)
    jsonl.append(tmp_path / "runs.jsonl", imported.runs)
    assert check(tmp_path / "runs.jsonl") == []


@pytest.mark.parametrize(
    "start", [b"", b"{", b"[" * 2000, b"__rec=", b'"ID",', b"1,,cycles,", b"# time counts unit events\n"]
)
def test_a_line_beyond_all_measure_beside_good_profiles_does_no_harm(start: bytes, tmp_path: Path) -> None:
    write_v4(tmp_path / "all" / "good", THREADS, METRICS)
    for name in ("long.csv", "long.json", "long.txt", "long"):
        (tmp_path / "all" / name).write_bytes(start + b"x," * 100_000 + b"[" * 200_000)
    imported = import_runs("auto", [tmp_path / "all"], app="a", input="1", platform="p")
    assert len(imported.runs) == 1


def test_a_runtime_given_by_hand_stands_above_the_file_s(tmp_path: Path) -> None:
    database = write_v4(tmp_path / "db", THREADS, METRICS)
    imported = import_runs("auto", [database], app="a", input="1", platform="p", runtime_s=7.25)
    assert imported.runs[0].runtime_s == 7.25
    assert "runtime is the one given by hand" in [note for _, note in imported.notes]
    assert not any(note.startswith("no runtime") for _, note in imported.notes)


def test_one_runtime_for_several_runs_is_refused(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_v4(tmp_path / name, THREADS, METRICS)
    with pytest.raises(SettingsError, match="found one runtime for 2 runs"):
        import_runs("auto", [tmp_path], app="a", input="1", platform="p", runtime_s=1.0)
    with pytest.raises(SettingsError, match="found -1, expected seconds above 0"):
        import_runs("auto", [tmp_path / "one"], runtime_s=-1.0)
