from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from crossperf.errors import ProfileFileError
from crossperf.importers import rocprof
from crossperf.importers.detect import import_runs
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


def table(path: Path, columns: dict[str, str], *rows: dict[str, object]) -> Path:
    """Write CSV: a header, and rows whose cells default to those of `columns`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [",".join(columns), *(",".join(str(cell) for cell in ({**columns, **row}).values()) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


LAUNCH = {"Dispatch_ID": "0", "Kernel_Name": "copy", "GPU_ID": "2", "Grid_Size": "1024", "Workgroup_Size": "256"}
TIMES = {"Start_Timestamp": "1000", "End_Timestamp": "3000"}
#: A copy of 1,024 doubles by 16 wavefronts: 128 lines of 64 bytes each way.
MI200 = {
    **dict.fromkeys(("SQ_INSTS_VALU", "SQ_INSTS_SALU", "SQ_INSTS_SMEM"), "80"),
    **dict.fromkeys(("SQ_INSTS_VMEM_RD", "SQ_INSTS_VMEM_WR", "SQ_INSTS_BRANCH", "SQ_INSTS_SENDMSG"), "16"),
    **{"SQ_INSTS": "400", "SQ_INSTS_LDS": "0", "SQ_INSTS_GDS": "0", "SQ_WAVES": "16"},
    **{"SQ_INSTS_VALU_INT32": "64", "SQ_INSTS_VALU_INT64": "0"},
    **{"TCP_TOTAL_CACHE_ACCESSES_sum": "512", "TCP_TCC_READ_REQ_sum": "128", "TCP_TCC_WRITE_REQ_sum": "128"},
    **{"TCC_HIT[0]": "30", "TCC_HIT[1]": "70", "TCC_HIT_sum": "100", "TCC_MISS_sum": "150"},
    **{
        "TCC_EA_RDREQ_sum": "128",
        "TCC_EA_RDREQ_32B_sum": "0",
        "TCC_EA_WRREQ_sum": "130",
        "TCC_EA_WRREQ_64B_sum": "126",
    },
}


def workload(folder: Path, counters: dict[str, str], command: str = "./bin/vcopy -n 1024") -> Path:
    table(folder / "pmc_perf.csv", LAUNCH | counters | TIMES, {}, {"Dispatch_ID": 1})
    timed = LAUNCH | {"queue-id": "0", "pid": "7"} | TIMES
    late = {"queue-id": 1, "Start_Timestamp": 2000, "End_Timestamp": 6000}
    table(folder / "timestamps.csv", timed, {}, {"Dispatch_ID": 1} | late)
    table(folder / "SQ_LEVEL_WAVES.csv", LAUNCH | {"SQ_WAVES": "16", "SQ_ACCUM_PREV_HIRES": "9"} | TIMES, {})
    (folder / "roofline.csv").write_text("device,HBMBw\n0,1388.9\n")
    table(
        folder / "sysinfo.csv",
        {"command": command, "hostname": "node7", "gpu_model": "MI200", "gpu_arch": "gfx90a"},
        {},
    )
    return folder


def test_a_folder_of_rocprof_compute_is_one_run_with_its_names_and_the_time_of_its_kernels(tmp_path: Path) -> None:
    imported = import_runs("auto", [workload(tmp_path / "vcopy" / "MI200", MI200)])
    (run,) = imported.runs
    assert (run.app, run.input, run.platform, run.host) == ("vcopy", "-n 1024", "MI200", "node7")
    assert run.platform_class == "gpu"
    assert run.metadata["gpu_arch"] == "gfx90a"
    # From 1,000 to 6,000 ns: the second kernel starts before the first one ends.
    assert run.runtime_s == pytest.approx(5e-6)
    assert run.counters["threads"] == 2
    assert any("runtime is the time in which 2 kernels ran" in note for _, note in imported.notes)


def test_instructions_are_all_that_were_issued_and_shares_are_of_them(tmp_path: Path) -> None:
    found = counted(rocprof.read(workload(tmp_path, MI200))).values
    assert found["instructions"] == 800  # not 2 * (3 * 80 + 4 * 16) = 608
    assert found["int_ratio"] == pytest.approx((64 + 0 + 80) / 400)
    assert found["mem_ratio"] == pytest.approx((80 + 16 + 16) / 400)
    assert found["control_ratio"] == pytest.approx(16 / 400)


def test_sums_beside_their_instances_are_counted_once(tmp_path: Path) -> None:
    assert rocprof.read(workload(tmp_path, MI200))[0].events["TCC_HIT_sum"] == 200


def test_the_last_level_of_mi200_is_its_l2_and_lines_have_64_bytes(tmp_path: Path) -> None:
    found = counted(rocprof.read(workload(tmp_path, MI200))).values
    assert found["llc_miss_ratio"] == found["l2_miss_ratio"] == 1.5
    assert found["llc_miss_rate"] == 0.6
    assert found["bytes_beyond_l1"] == 2 * 64 * (128 + 128)
    assert found["bytes_beyond_llc"] == 2 * (64 * 128 + 64 * 126 + 32 * 4)
    assert found["kernel_launches"] == 2
    assert found["block_size"] == 256


def test_mi300_reads_128_bytes_and_has_a_last_level_that_nobody_counts(tmp_path: Path) -> None:
    mi300 = {name.replace("_EA_", "_EA0_"): value for name, value in MI200.items()}
    found = counted(rocprof.read(workload(tmp_path, mi300)))
    assert found.values["bytes_beyond_l1"] == 2 * (128 * 128 + 64 * 128)
    assert "llc_miss_ratio" not in found.values
    assert "TCC_EA_RDREQ_sum was not counted" in found.missing["llc_miss_ratio"]
    assert "bytes_beyond_llc" not in found.values


def test_counters_of_a_gpu_that_saw_no_wavefront_are_missing(tmp_path: Path) -> None:
    zeros = {name: "0" if name.startswith("SQ_") else value for name, value in MI200.items()}
    measurement = rocprof.read(workload(tmp_path, zeros))[0]
    assert "instructions" not in counted([measurement]).values
    assert any("all are 0 although kernels ran" in note for note in measurement.notes)


def test_a_workload_without_its_joined_table_is_read_by_execution(tmp_path: Path) -> None:
    workload(tmp_path, MI200)
    (tmp_path / "pmc_perf.csv").unlink()
    table(tmp_path / "pmc_perf_0.csv", LAUNCH | {"SQ_WAVES": "16"} | TIMES, {})
    table(tmp_path / "pmc_perf_1.csv", LAUNCH | {"SQ_INSTS": "400"} | TIMES, {})
    (found,) = rocprof.read(tmp_path)
    assert (found.events["SQ_WAVES"], found.events["SQ_INSTS"], found.events["workgroups"]) == (16, 400, 4)
    (tmp_path / "pmc_perf_0.csv").write_text("Dispatch_ID,Kernel_Name\n")
    (tmp_path / "pmc_perf_1.csv").write_text("Dispatch_ID,Kernel_Name\n")
    with pytest.raises(ProfileFileError, match="found no kernel launch"):
        rocprof.read(tmp_path)


def test_times_that_a_spreadsheet_rounded_are_no_runtime(tmp_path: Path) -> None:
    workload(tmp_path, MI200)
    rounded = dict.fromkeys(TIMES, "8.1097E+14")
    for name in ("pmc_perf.csv", "timestamps.csv"):
        table(tmp_path / name, LAUNCH | {"SQ_WAVES": "16"} | rounded, {})
    (found,) = rocprof.read(tmp_path)
    assert found.runtime_s is None
    assert any("no runtime" in note for note in found.notes)


def test_folders_after_lines_of_rocprofv3_s_text_input_are_executions_too(tmp_path: Path) -> None:
    for number in (1, 2):
        shutil.copytree(DATA / "rocprofv3" / f"pass_{number}", tmp_path / f"pmc_{number}")
    assert rocprof.read(tmp_path)[0].events == rocprof.read(DATA / "rocprofv3")[0].events


def test_a_table_of_launches_without_counters_has_their_sizes_and_their_time(tmp_path: Path) -> None:
    columns = {"Index": "0", "KernelName": "k", "gpu-id": "0", "grd": "512", "wgr": "64", "BeginNs": "0", "EndNs": "0"}
    times = [{"BeginNs": 100, "EndNs": 400}, {"Index": 1, "BeginNs": 900, "EndNs": 1000}]
    path = table(tmp_path / "results.csv", columns, *times)
    (found,) = rocprof.read(path)
    assert found.runtime_s == pytest.approx(400e-9)
    assert counted([found]).values["warp_blocks"] == 16
