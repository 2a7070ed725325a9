from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from crossperf.errors import ProfileFileError
from crossperf.importers import nsys
from crossperf.importers.measurement import to_run

SCHEMA = """
    CREATE TABLE StringIds (id INTEGER, value TEXT);
    CREATE TABLE PROCESSES (globalPid INTEGER, pid INTEGER, name TEXT);
    CREATE TABLE ANALYSIS_DETAILS (globalVid INTEGER, duration INTEGER, startTime INTEGER, stopTime INTEGER);
    CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT, localTime TEXT);
    CREATE TABLE TARGET_INFO_SYSTEM_ENV (globalVid INTEGER, name TEXT, value TEXT);
    CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT);
    CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);
    CREATE TABLE META_DATA_CAPTURE (name TEXT, value TEXT);
    CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (
        start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER, globalPid INTEGER,
        demangledName INTEGER, registersPerThread INTEGER, gridX INTEGER, gridY INTEGER, gridZ INTEGER,
        blockX INTEGER, blockY INTEGER, blockZ INTEGER);
    CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (
        start INTEGER, end INTEGER, contextId INTEGER, streamId INTEGER, globalPid INTEGER, bytes INTEGER,
        copyKind INTEGER);
"""
ROWS = """
    INSERT INTO StringIds VALUES (7, 'axpy(float*, int)'), (8, 'dot(float*)');
    INSERT INTO PROCESSES VALUES (1, 1, 'systemd'), (900, 9, '/home/ada/axpy');
    INSERT INTO ANALYSIS_DETAILS VALUES (0, 2500000000, 10, 2500000010);
    INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (0, '2026-03-01T10:00:00', '2026-03-01T11:00:00');
    INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES (0, 'Hostname', 'node7'), (0, 'CpuDescription', 'A fast one');
    INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA H200'), (1, 'NVIDIA T4');
    INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_PRODUCT_VERSION', '2023.3.1');
    INSERT INTO META_DATA_CAPTURE VALUES ('PROCESS_0:COMMAND', './axpy'), ('PROCESS_0:ARGUMENT_0', '-n'),
        ('PROCESS_0:ARGUMENT_1', '1000');
    INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES
        (100, 400, 0, 1, 7, 900, 7, 16, 10, 2, 1, 128, 1, 1),
        (500, 700, 0, 1, 13, 900, 7, 16, 10, 2, 1, 128, 1, 1),
        (800, 850, 0, 1, 7, 900, 8, 32, 4, 1, 1, 8, 8, 2);
    INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES
        (0, 2000, 1, 7, 900, 4000, 1), (2000, 3000, 1, 14, 900, 2000, 1), (4000, 4500, 1, 7, 900, 1500, 2),
        (5000, 5100, 0, 0, 900, 65536, 11);
"""


def written(path: Path, *scripts: str) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        for script in scripts:
            connection.executescript(script)
    return path


def test_launches_blocks_copies_and_streams_are_added_up(tmp_path: Path) -> None:
    [measurement] = nsys.read(written(tmp_path / "report.sqlite", SCHEMA, ROWS))
    counters = to_run([measurement], platform="h200").counters
    assert counters["kernel_launches"] == 3
    assert counters["warp_blocks"] == 20 + 20 + 4
    assert counters["block_size"] == pytest.approx((40 * 128 + 4 * 128) / 44)
    assert counters["threads"] == 3, "streams 7 and 13 carried kernels, 14 a copy"
    assert counters["bytes_host_to_gpu"] == 6000
    assert counters["bytes_gpu_to_host"] == 1500
    assert counters["bandwidth_host_to_gpu"] == pytest.approx(6000 / 3000e-9)
    assert measurement.events["kernel_ns"] == 300 + 200 + 50


def test_pages_that_move_on_demand_are_kept_apart(tmp_path: Path) -> None:
    [measurement] = nsys.read(written(tmp_path / "report.sqlite", SCHEMA, ROWS))
    assert measurement.events["managed_htod_bytes"] == 65536
    assert "65,536 bytes of managed memory" in " ".join(measurement.notes)


def test_program_input_machine_and_span_come_from_the_file(tmp_path: Path) -> None:
    [measurement] = nsys.read(written(tmp_path / "report.sqlite", SCHEMA, ROWS))
    run = to_run([measurement], platform="h200")
    assert (run.app, run.input, run.host, run.started) == ("axpy", "-n 1000", "node7", "2026-03-01T10:00:00")
    assert run.runtime_s == pytest.approx(2.5)
    assert run.metadata["gpu"] == "NVIDIA H200"
    assert measurement.version == "2023.3.1"
    assert [kernel["name"] for kernel in measurement.facts["kernels"]] == ["axpy(float*, int)", "dot(float*)"]


def test_tables_that_an_older_release_lacks_are_done_without(tmp_path: Path) -> None:
    lacking = "DROP TABLE META_DATA_CAPTURE; DROP TABLE META_DATA_EXPORT; DROP TABLE ANALYSIS_DETAILS;"
    [measurement] = nsys.read(written(tmp_path / "report.sqlite", SCHEMA, ROWS, lacking))
    assert measurement.events["kernel_launches"] == 3
    assert measurement.runtime_s is None
    assert measurement.facts["input"] is None


def test_the_file_stays_as_it_is(tmp_path: Path) -> None:
    report = written(tmp_path / "report.sqlite", SCHEMA, ROWS)
    before = report.read_bytes()
    nsys.read(report)
    assert report.read_bytes() == before
    assert list(tmp_path.iterdir()) == [report]


def test_kernels_in_graphs_that_were_not_listed_are_named(tmp_path: Path) -> None:
    graphs = "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER);"
    graphs += "INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (1);"
    [measurement] = nsys.read(written(tmp_path / "report.sqlite", SCHEMA, ROWS, graphs))
    assert "CUDA graphs" in " ".join(measurement.notes)


def test_a_capture_without_a_gpu_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ProfileFileError, match="found no kernel and no copy"):
        nsys.read(written(tmp_path / "report.sqlite", SCHEMA))


def test_another_sqlite_file_is_not_taken_for_one(tmp_path: Path) -> None:
    assert not nsys.reads(written(tmp_path / "mail.sqlite", "CREATE TABLE mail (id INTEGER);"))
    assert nsys.reads(written(tmp_path / "report.sqlite", SCHEMA))


@pytest.mark.parametrize("length", [40, 1024, 5000])
def test_a_file_cut_short_is_an_error_in_a_sentence(tmp_path: Path, length: int) -> None:
    whole = written(tmp_path / "report.sqlite", SCHEMA, ROWS).read_bytes()
    cut = tmp_path / "cut.sqlite"
    cut.write_bytes(whole[:length])
    with pytest.raises(ProfileFileError, match=r"cut\.sqlite: found"):
        nsys.read(cut)


def test_odd_columns_and_values_are_an_error_in_a_sentence(tmp_path: Path) -> None:
    odd = (
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start TEXT, end BLOB); CREATE TABLE ANALYSIS_DETAILS (duration TEXT);"
    )
    odd += "INSERT INTO ANALYSIS_DETAILS VALUES ('long');"
    odd += "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (copyKind, bytes, start, end);"
    odd += "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (1, 'many', x'00', NULL);"
    with pytest.raises(ProfileFileError, match="no export of nsys"):
        nsys.read(written(tmp_path / "report.sqlite", odd))


def test_a_query_that_never_ends_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nsys, "_MOST_STEPS", 1)
    monkeypatch.setattr(nsys, "_STEPS", 10)
    with pytest.raises(ProfileFileError, match="interrupted"):
        nsys.read(written(tmp_path / "report.sqlite", SCHEMA, ROWS))
