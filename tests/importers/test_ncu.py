from __future__ import annotations

import csv
from pathlib import Path

import pytest

from crossperf.errors import MissingDependencyError, ProfileFileError
from crossperf.importers import ncu
from crossperf.importers.detect import guess
from crossperf.importers.measurement import counted
from tests.collect.gpu_known import BLOCKS, BYTES_LOADED, BYTES_STORED, DIVERGENT, FP64, SECTORS_L1, THREADS, WARPS

DATA = Path(__file__).parents[1] / "data" / "ncu"
RAW = DATA / "gpu_known.csv"


def _launch(name: str) -> ncu.NcuLaunch:
    return next(launch for launch in ncu.launches(RAW) if launch.kernel.startswith(name))


def _table(tmp_path: Path, units: str, *rows: str) -> Path:
    header = '"ID","Process ID","Process Name","Kernel Name","Context","Stream","Grid Size","Block Size"'
    path = tmp_path / "ncu.csv"
    metrics = '"dram__bytes_read.sum","gpu__time_duration.sum","smsp__inst_executed.sum"'
    lines = ["==PROF== Connected to process 7 (/tmp/a)", f"{header},{metrics}", f'"","","","","","","","",{units}']
    lines += [f'"{i}","7","a","k(int, int)","1","{7 + i}","(2, 3, 1)","(32, 1, 1)",{row}' for i, row in enumerate(rows)]
    path.write_text("\n".join([*lines, "==PROF== Disconnected from process 7", ""]))
    return path


# A recorded file against what its program does


def test_double_precision_instructions_are_those_of_the_matrix_product() -> None:
    events = ncu.read(RAW)[0].events
    assert events["smsp__sass_thread_inst_executed_op_fp64_pred_on.sum"] == FP64


def test_blocks_and_threads_are_added_up_over_launches() -> None:
    events = ncu.read(RAW)[0].events
    assert events["launch__grid_size"] == BLOCKS
    assert events["launch__thread_count"] == THREADS


def test_divergent_branches_are_those_of_the_source() -> None:
    assert ncu.read(RAW)[0].events["smsp__sass_branch_targets_threads_divergent.sum"] == DIVERGENT


def test_warps_execute_as_many_instructions_as_the_disassembly_lists() -> None:
    # copy: 13 from its first to EXIT. diverge: 12 outside of its loop and 20 in each of 10 rounds.
    assert _launch("copy").metrics["smsp__inst_executed.sum"] == 13 * WARPS["copy"]
    assert _launch("diverge").metrics["smsp__inst_executed.sum"] == (12 + 10 * 20) * WARPS["diverge"]


def test_sectors_of_the_first_cache_are_those_of_the_loads_and_stores() -> None:
    events = ncu.read(RAW)[0].events
    hits, misses = events["l1tex__t_sectors_lookup_hit.sum"], events["l1tex__t_sectors_lookup_miss.sum"]
    assert hits is not None
    assert misses is not None
    assert hits + misses == SECTORS_L1


def test_the_copy_misses_the_second_cache_with_every_load_and_hits_it_with_every_store() -> None:
    copy = _launch("copy").metrics
    assert copy["lts__t_sectors_srcunit_tex_lookup_miss.sum"] == pytest.approx(4 * WARPS["copy"], rel=0.01)
    assert copy["lts__t_sectors_srcunit_tex_lookup_hit.sum"] == pytest.approx(4 * WARPS["copy"], rel=0.01)
    assert copy["dram__bytes_read.sum"] == pytest.approx(128 * 2**20, rel=0.01)


def test_ratios_are_taken_of_sums_and_not_averaged_over_launches() -> None:
    found = counted(ncu.read(RAW)).values
    on = "smsp__thread_inst_executed_pred_on.sum"
    memory = "smsp__sass_thread_inst_executed_op_memory_pred_on.sum"
    launches = ncu.launches(RAW)
    sums = [sum(launch.metrics[name] or 0 for launch in launches) for name in (memory, on)]
    average = sum((launch.metrics[memory] or 0) / (launch.metrics[on] or 1) for launch in launches) / 3
    assert found["mem_ratio"] == pytest.approx(sums[0] / sums[1])
    assert found["mem_ratio"] != pytest.approx(average, rel=0.1)
    # Of copy's 13 instructions 4 load constants, one loads and one stores; the other kernels hardly weigh.
    assert found["mem_ratio"] == pytest.approx(6 / 13, rel=0.01)


def test_every_counter_that_ncu_knows_comes_out() -> None:
    found = counted(ncu.read(RAW))
    assert dict(found.missing) == {}
    assert set(found.values) == {
        "instructions",
        "int_ratio",
        "float_ratio",
        "mem_ratio",
        "control_ratio",
        "cache_miss_ratio",
        "l2_miss_ratio",
        "llc_miss_ratio",
        "cache_miss_rate",
        "l2_miss_rate",
        "llc_miss_rate",
        "branch_miss_ratio",
        "warp_blocks",
        "threads",
        "kernel_launches",
        "block_size",
        "occupancy",
        "bytes_loaded",
        "bytes_stored",
        "bytes_beyond_l1",
        "bytes_beyond_llc",
    }
    assert found.values["threads"] == 3


def test_bytes_by_level_are_those_of_the_source() -> None:
    values = counted(ncu.read(RAW)).values
    assert values["bytes_loaded"] == BYTES_LOADED
    assert values["bytes_stored"] == BYTES_STORED
    # copy reads 128 MiB and writes them; the other kernels move less than 1 MiB.
    assert values["bytes_beyond_l1"] == pytest.approx(2 * 128 * 2**20, rel=0.002)
    # Up to the 50 MB of an L2 are written after the kernel has ended.
    assert 128 * 2**20 + (128 * 2**20 - 50e6) < values["bytes_beyond_llc"] < 2.01 * 128 * 2**20


def test_launches_and_the_mean_size_of_a_block_are_those_of_the_source() -> None:
    values = counted(ncu.read(RAW)).values
    assert values["kernel_launches"] == 3
    assert values["block_size"] == THREADS / BLOCKS


def test_occupancy_weighs_launches_by_their_cycles() -> None:
    # Of each launch ncu shows 12.5, 70.9 and 3.1 %; copy takes 99 % of the cycles.
    shares = [(12.49, 1774.58), (70.88, 190925.89), (3.12, 125.74)]
    weighed = sum(percent / 100 * cycles for percent, cycles in shares) / sum(cycles for _, cycles in shares)
    (details,) = ncu.read(DATA / "gpu_known_details.csv")
    assert counted([details]).values["occupancy"] == pytest.approx(weighed)
    # A recording of its own, from the raw sums.
    assert counted(ncu.read(RAW)).values["occupancy"] == pytest.approx(weighed, rel=0.02)


def test_the_file_tells_the_program_the_gpu_and_its_kernels() -> None:
    facts = ncu.read(RAW)[0].facts
    assert facts["app"] == "gpu_known"
    assert facts["gpu"] == "NVIDIA H200"
    assert [kernel["name"].split("(")[0] for kernel in facts["kernels"]] == ["copy", "multiply_add", "diverge"]
    assert facts["kernels"][1]["most_threads_per_block"] == 256
    assert facts["kernels"][2]["blocks"] == 7


def test_the_page_of_details_gives_blocks_and_a_hint() -> None:
    measurement = ncu.read(DATA / "gpu_known_details.csv")[0]
    assert counted([measurement]).values["warp_blocks"] == BLOCKS
    assert measurement.events["gpu__time_duration.sum"] == pytest.approx(111e3, rel=0.2)
    assert any("--page raw" in note for note in measurement.notes)


def test_a_report_gives_the_same_sums_as_the_csv_made_of_it() -> None:
    pytest.importorskip("ncu_report", reason="the extra crossperf[ncu] is not installed")
    report, table = ncu.read(DATA / "gpu_known.ncu-rep")[0], ncu.read(RAW)[0]
    assert report.events == pytest.approx(table.events)
    assert report.facts["gpu"] == table.facts["gpu"]


def test_a_report_without_the_package_names_the_pip_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ncu_report", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'crossperf\[ncu\]'"):
        ncu.read(DATA / "gpu_known.ncu-rep")


def test_a_cut_report_is_one_sentence(tmp_path: Path) -> None:
    pytest.importorskip("ncu_report", reason="the extra crossperf[ncu] is not installed")
    cut = tmp_path / "cut.ncu-rep"
    cut.write_bytes((DATA / "gpu_known.ncu-rep").read_bytes()[:5000])
    with pytest.raises(ProfileFileError, match="cut short"):
        ncu.read(cut)


# Numbers, units, gaps


def test_units_are_brought_to_bytes_nanoseconds_and_counts(tmp_path: Path) -> None:
    path = _table(tmp_path, '"Mbyte","us","inst"', '"1.50","2.25","1,234"', '"0.50","1,000.00","6"')
    events = ncu.read(path)[0].events
    assert events["dram__bytes_read.sum"] == 2e6
    assert events["gpu__time_duration.sum"] == pytest.approx(1_002_250)
    assert events["smsp__inst_executed.sum"] == 1240


@pytest.mark.parametrize(
    ("bytes_read", "time", "instructions"),
    [
        ("4,352", "2.25", "1,234,567"),
        ("4.352", "2,25", "1.234.567"),
        ("4\u202f352", "2,25", "1\u202f234\u202f567"),
        ("4352", "2.25", "1234567"),
    ],
    ids=["english", "german", "french", "plain"],
)
def test_numbers_are_read_in_the_spelling_of_their_locale(
    tmp_path: Path, bytes_read: str, time: str, instructions: str
) -> None:
    events = ncu.read(_table(tmp_path, '"byte","ns","inst"', f'"{bytes_read}","{time}","{instructions}"'))[0].events
    assert events["dram__bytes_read.sum"] == 4352
    assert events["gpu__time_duration.sum"] == 2.25
    assert events["smsp__inst_executed.sum"] == 1_234_567


def test_a_metric_that_one_launch_lacks_has_no_sum(tmp_path: Path) -> None:
    path = _table(tmp_path, '"byte","ns","inst"', '"1","2","3"', '"n/a","2","3"', '"","2","3"')
    measurement = ncu.read(path)[0]
    assert measurement.events["dram__bytes_read.sum"] is None
    assert measurement.events["smsp__inst_executed.sum"] == 9
    assert any("dram__bytes_read.sum" in note for note in measurement.notes)


def test_sizes_come_from_the_columns_where_no_metric_has_them(tmp_path: Path) -> None:
    events = ncu.read(_table(tmp_path, '"byte","ns","inst"', '"1","2","3"', '"1","2","3"'))[0].events
    assert events["launch__grid_size"] == 12
    assert events["launch__thread_count"] == 12 * 32
    assert events["streams_with_kernels"] == 2


def test_what_the_program_prints_around_the_table_is_passed_over(tmp_path: Path) -> None:
    path = _table(tmp_path, '"byte","ns","inst"', '"1","2","3"')
    path.write_text(f'step 1, "residual" 0.5\n{path.read_text()}done\n')
    assert ncu.reads(path)
    assert ncu.read(path)[0].events["smsp__inst_executed.sum"] == 3


# Bad files


def test_garbage_is_not_claimed(tmp_path: Path) -> None:
    for name, data in {"a": b"", "b": bytes(range(256)) * 9, "c": b'"ID","Name"\n', "d": b"=" * 9}.items():
        (tmp_path / name).write_bytes(data)
        assert not ncu.reads(tmp_path / name)
    assert not ncu.reads(tmp_path)
    assert not ncu.reads(tmp_path / "absent")


def test_a_file_without_a_table_is_one_sentence_with_what_ncu_said(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("==ERROR== ERR_NVGPUCTRPERM - no permission\n")
    with pytest.raises(ProfileFileError, match=r"ERR_NVGPUCTRPERM.*--page raw"):
        ncu.read(path)


def test_a_cut_table_is_told(tmp_path: Path) -> None:
    path = tmp_path / "cut.csv"
    path.write_text(RAW.read_text()[:-300])
    with pytest.raises(ProfileFileError, match="cut short"):
        ncu.read(path)


def test_a_table_without_launches_is_told(tmp_path: Path) -> None:
    with pytest.raises(ProfileFileError, match="no kernel launch"):
        ncu.read(_table(tmp_path, '"byte","ns","inst"'))


def test_runtime_is_the_time_of_all_kernels_and_says_so(tmp_path: Path) -> None:
    path = _table(tmp_path, '"byte","usecond","inst"', '"10","2.5","3"', '"10","1.5","3"')
    (found,) = ncu.read(path)
    assert found.runtime_s == pytest.approx(4e-6)
    assert any("runtime is the time of 2 kernels, added up" in note for note in found.notes)


def test_a_table_that_was_written_again_without_quotes_reads_alike(tmp_path: Path) -> None:
    path = _table(tmp_path, '"byte","usecond","inst"', '"10","2.5","3"')
    bare = tmp_path / "bare.csv"
    rows = list(csv.reader(path.read_text().splitlines()[1:-1]))
    with bare.open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file).writerows(rows)
    assert bare.read_text(encoding="utf-8").startswith("\ufeffID,Process ID")
    assert guess(bare) == "ncu"
    assert ncu.read(bare) == ncu.read(path)


def test_without_its_row_of_units_a_time_could_be_of_any(tmp_path: Path) -> None:
    path = _table(tmp_path, '"byte","usecond","inst"', '"10","2.5","3"')
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:2] + lines[3:]))
    (found,) = ncu.read(path)
    assert found.runtime_s is None
    assert found.events["smsp__inst_executed.sum"] == 3
    assert any("no runtime" in note for note in found.notes)
