from __future__ import annotations

from pathlib import Path

import pytest

from crossperf.errors import ProfileFileError
from crossperf.importers import rocprof
from crossperf.importers.measurement import counted

# Written by hand after AMD's description of the formats; see the note beside them.
DATA = Path(__file__).parents[1] / "data" / "rocprof"


def test_counters_are_added_up_over_launches() -> None:
    events = rocprof.read(DATA / "results.csv")[0].events
    assert events["SQ_WAVES"] == 16384 + 16384 + 16
    assert events["SQ_INSTS_VALU"] == 200_500


def test_a_last_workgroup_that_is_filled_in_part_counts() -> None:
    # 1,048,576 / 256 twice, and 1,000 / 64 = 15.6.
    assert counted(rocprof.read(DATA / "results.csv")).values["warp_blocks"] == 4096 + 4096 + 16


def test_misses_to_hits_come_from_sums_and_instances_of_a_cache_are_added_up() -> None:
    found = counted(rocprof.read(DATA / "results.csv")).values
    assert found["l2_miss_ratio"] == pytest.approx((8000 + 0 + 4) / (4000 + 12000 + 16))


def test_percentages_are_left_out() -> None:
    assert "L2CacheHit" not in rocprof.read(DATA / "results.csv")[0].events
    assert "OccupancyPercent" not in rocprof.read(DATA / "rocprofv3")[0].events


def test_shares_of_kinds_are_of_all_instructions() -> None:
    found = counted(rocprof.read(DATA / "results.csv")).values
    waves = 2 * (100_000 + 32_768 + 5 * 16_384 - 16_384) + (500 + 96 + 32 + 16 + 1 + 112 + 48)
    assert found["instructions"] == waves
    assert found["control_ratio"] == pytest.approx((2 * 16_384 + 48) / waves)
    assert found["mem_ratio"] == pytest.approx((2 * 3 * 16_384 + 32 + 16 + 1 + 112) / waves)


def test_kinds_that_were_not_counted_are_missing_rather_than_zero() -> None:
    found = counted(rocprof.read(DATA / "results.csv"))
    assert "float_ratio" not in found.values
    assert "SQ_INSTS_VALU_FMA_F64" in found.missing["float_ratio"]


def test_queues_are_counted_and_kernels_are_named() -> None:
    measurement = rocprof.read(DATA / "results.csv")[0]
    assert counted([measurement]).values["threads"] == 2
    first = measurement.facts["kernels"][0]
    assert first == {"name": "scale(float*, float const*, int)", "launches": 2, "time_s": pytest.approx(18e-6)}


def test_the_layout_of_rocprofv2_is_read() -> None:
    found = counted(rocprof.read(DATA / "rocprofv2.csv")).values
    assert found["warp_blocks"] == 32
    assert found["l2_miss_ratio"] == pytest.approx(1 / 3)


def test_a_folder_of_rocprofv3_gives_the_counters_of_all_its_executions_once() -> None:
    measurements = rocprof.read(DATA / "rocprofv3")
    assert len(measurements) == 1
    events = measurements[0].events
    assert events["SQ_WAVES"] == 16384 + 32
    assert events["SQ_INSTS_SALU"] == 49152 + 96
    assert events["workgroups"] == 1048576 / 64 + 2048 / 256
    assert events["queues"] == 2
    assert counted(measurements).values["l2_miss_ratio"] == 1.5


def test_processes_of_one_execution_are_added_up(tmp_path: Path) -> None:
    text = (DATA / "rocprofv3" / "pass_1" / "4711_counter_collection.csv").read_text()
    (tmp_path / "4711_counter_collection.csv").write_text(text)
    (tmp_path / "4712_counter_collection.csv").write_text(text.replace(",4711,4711,", ",4712,4712,"))
    events = rocprof.read(tmp_path)[0].events
    assert events["SQ_WAVES"] == 2 * (16384 + 32)
    assert events["queues"] == 4


def test_executions_that_differ_are_told(tmp_path: Path) -> None:
    text = (DATA / "rocprofv3" / "pass_1" / "4711_counter_collection.csv").read_text()
    for number, lines in ((1, 9), (2, 5)):
        folder = tmp_path / f"pass_{number}"
        folder.mkdir()
        (folder / "1_counter_collection.csv").write_text("\n".join(text.splitlines()[:lines]) + "\n")
    assert any("differ in their number of launches (2, 1)" in note for note in rocprof.read(tmp_path)[0].notes)


def test_a_counter_without_a_value_has_no_sum(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    path.write_text((DATA / "results.csv").read_text().replace("500.0000000000", "", 1))
    measurement = rocprof.read(path)[0]
    assert measurement.events["SQ_INSTS_VALU"] is None
    assert any("SQ_INSTS_VALU" in note for note in measurement.notes)


def test_own_files_are_claimed_and_others_are_not(tmp_path: Path) -> None:
    for name in ("results.csv", "rocprofv2.csv", "rocprofv3", "rocprofv3/pass_1/4711_counter_collection.csv"):
        assert rocprof.reads(DATA / name)
    (tmp_path / "a").write_bytes(bytes(range(256)) * 9)
    (tmp_path / "b").write_text("")
    (tmp_path / "trace.csv").write_text("Kind,Agent_Id,Kernel_Name,Start_Timestamp,Grid_Size_X\nKERNEL,1,a,2,3\n")
    assert not any(rocprof.reads(path) for path in (*tmp_path.iterdir(), tmp_path, tmp_path / "absent"))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "an empty file"),
        ("a,b\n1,2\n", "expected a header"),
        ("Index,KernelName,grd,wgr,SQ_WAVES\n0,k,64,64\n", "row 2: found 4 cells, expected 5"),
        ("Index,KernelName,grd,wgr,SQ_WAVES\n", "no kernel launch"),
    ],
)
def test_bad_files_are_one_sentence(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "results.csv"
    path.write_text(text)
    with pytest.raises(ProfileFileError, match=told):
        rocprof.read(path)


def test_an_empty_folder_and_an_absent_file_are_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ProfileFileError, match="rocprofv3 --pmc"):
        rocprof.read(tmp_path)
    with pytest.raises(ProfileFileError, match="cannot be read"):
        rocprof.read(tmp_path / "absent.csv")
