from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crossperf.catalog import canonical
from crossperf.errors import ProfileFileError
from crossperf.importers import hpctoolkit
from crossperf.importers.measurement import Measurement, to_run
from tests.importers.hpctoolkit_files import ThreadValues, write_v3, write_v4

SHARED = Path(__file__).parents[3] / "shared" / "profiles"
METRICS = ["PAPI_TOT_INS", "perf::BRANCH-INSTRUCTIONS", "REALTIME (sec)", "IO Bytes Read", "PAPI_L1_DCM (proxy)"]
# Two ranks: the first with two threads. PAPI_L1_DCM was measured and stayed 0.
THREADS: list[ThreadValues] = [
    (0, 0, {"PAPI_TOT_INS": 4e9, "perf::BRANCH-INSTRUCTIONS": 5e8, "REALTIME (sec)": 2.5, "IO Bytes Read": 100.0}),
    (0, 1, {"PAPI_TOT_INS": 1e9, "perf::BRANCH-INSTRUCTIONS": 1e8, "REALTIME (sec)": 2.0}),
    (1, 0, {"PAPI_TOT_INS": 3e9, "perf::BRANCH-INSTRUCTIONS": 4e8, "REALTIME (sec)": 3.25, "IO Bytes Read": 24.0}),
]


def real(name: str) -> Path:
    if not (SHARED / name).is_dir():
        pytest.skip("the shared sample profiles are not beside this checkout")
    return SHARED / name


def only(path: Path) -> Measurement:
    (measurement,) = hpctoolkit.read(path)
    return measurement


@pytest.mark.parametrize("write", [write_v3, write_v4])
def test_counts_are_summed_over_ranks_and_threads_and_the_runtime_is_the_longest(write, tmp_path: Path) -> None:
    found = only(write(tmp_path / "db", THREADS, METRICS))
    assert found.events["PAPI_TOT_INS"] == 8e9
    assert found.events["branches"] == 1e9
    assert found.counters["io_bytes_read"] == 124.0
    assert found.runtime_s == 3.25


@pytest.mark.parametrize("write", [write_v3, write_v4])
def test_a_metric_that_was_measured_and_never_sampled_is_zero(write, tmp_path: Path) -> None:
    assert only(write(tmp_path / "db", THREADS, METRICS)).events["PAPI_L1_DCM"] == 0.0


@pytest.mark.parametrize("write", [write_v3, write_v4])
def test_ranks_threads_and_application_come_from_the_database(write, tmp_path: Path) -> None:
    found = only(write(tmp_path / "db", THREADS, METRICS, title="amg"))
    assert (found.facts["app"], found.facts["ranks"], found.facts["threads"]) == ("amg", 2, 2)
    assert found.counters["threads"] == 3.0


@pytest.mark.parametrize("write", [write_v3, write_v4])
def test_a_database_becomes_a_run(write, tmp_path: Path) -> None:
    run = to_run([only(write(tmp_path / "db", THREADS, METRICS))], input="30", platform="quartz")
    assert (run.app, run.ranks, run.runtime_s) == ("toy", 2, 3.25)
    assert run.metadata["events"]["hpctoolkit"]["PAPI_TOT_INS"] == 8e9


def test_a_file_of_the_database_stands_for_its_folder(tmp_path: Path) -> None:
    folder = write_v4(tmp_path / "db", THREADS, METRICS)
    assert hpctoolkit.reads(folder / "meta.db")
    assert only(folder / "meta.db") == only(folder)


def test_streams_of_a_gpu_are_no_threads_but_their_metrics_count(tmp_path: Path) -> None:
    threads: list[ThreadValues] = [(0, 0, {"GXCOPY:H2D (B)": 5.0}), (0, 1, {"GXCOPY:H2D (B)": 3.0})]
    found = only(write_v4(tmp_path / "db", threads, ["GXCOPY:H2D (B)"], gpu=[1]))
    assert found.counters == {"bytes_host_to_gpu": 8.0, "threads": 1.0}
    assert found.facts["threads"] == 1


def test_the_span_of_the_trace_is_the_runtime_where_only_cpu_time_was_measured(tmp_path: Path) -> None:
    threads: list[ThreadValues] = [(0, 0, {"CPUTIME (sec)": 1.5}), (1, 0, {"CPUTIME (sec)": 1.0})]
    metrics = ["CPUTIME (sec)"]
    with_trace = only(write_v4(tmp_path / "a", threads, metrics, trace_ns=(10**18, 10**18 + 4 * 10**9)))
    without = only(write_v4(tmp_path / "b", threads, metrics))
    assert with_trace.runtime_s == pytest.approx(4.0)
    assert without.runtime_s == 1.5
    assert any("waiting is not in it" in note for note in without.notes)


def test_microseconds_become_seconds(tmp_path: Path) -> None:
    threads: list[ThreadValues] = [(0, 0, {"REALTIME (usec)": 2_500_000.0})]
    assert only(write_v3(tmp_path / "db", threads, ["REALTIME (usec)"])).runtime_s == pytest.approx(2.5)


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_version_3_without_metric_db_gives_rounded_totals_and_says_so(version: str, tmp_path: Path) -> None:
    folder = write_v3(
        tmp_path / "db",
        THREADS,
        METRICS,
        metric_db=False,
        version=version,
        statistics={"REALTIME (sec):Max": 3.25, "REALTIME (sec):Mean": 2.6},
    )
    found = only(folder)
    assert found.events["PAPI_TOT_INS"] == 8e9
    assert found.runtime_s == 3.25
    assert found.facts["ranks"] is None
    assert any("six digits" in note for note in found.notes)


def test_version_3_of_a_little_endian_machine_reads_alike(tmp_path: Path) -> None:
    big, little = (write_v3(tmp_path / name, THREADS, METRICS, order=name) for name in (">", "<"))
    assert only(big).events == only(little).events


def test_a_doctype_is_read_and_an_entity_refused(tmp_path: Path) -> None:
    plain = "<!DOCTYPE HPCToolkitExperiment [<!ELEMENT HPCToolkitExperiment ANY>]>"
    assert only(write_v3(tmp_path / "a", THREADS, METRICS, doctype=plain)).runtime_s == 3.25
    laughs = '<!DOCTYPE HPCToolkitExperiment [<!ENTITY lol "lol">]>'
    with pytest.raises(ProfileFileError, match="entity 'lol'"):
        hpctoolkit.read(write_v3(tmp_path / "b", THREADS, METRICS, doctype=laughs))


@pytest.mark.parametrize("version", ["4.0", "3.0", "2.3", ""])
def test_an_unknown_version_of_the_xml_is_named(version: str, tmp_path: Path) -> None:
    with pytest.raises(ProfileFileError, match=f"found version '{version}'"):
        hpctoolkit.read(write_v3(tmp_path / "db", THREADS, METRICS, version=version))


def test_an_unknown_major_version_is_named_and_a_minor_one_noted(tmp_path: Path) -> None:
    later = write_v4(tmp_path / "a", THREADS, METRICS, version=(5, 1))
    assert hpctoolkit.reads(later)
    with pytest.raises(ProfileFileError, match=r"found version 5\.1 of the format, expected 4\.0"):
        hpctoolkit.read(later)
    notes = only(write_v4(tmp_path / "b", THREADS, METRICS, version=(4, 3))).notes
    assert sum("is version 4.3" in note for note in notes) == 3


@pytest.mark.parametrize("name", ["meta.db", "profile.db", "cct.db"])
def test_a_missing_file_of_version_4_is_named(name: str, tmp_path: Path) -> None:
    folder = write_v4(tmp_path / "db", THREADS, METRICS)
    (folder / name).unlink()
    assert hpctoolkit.reads(folder)
    with pytest.raises(ProfileFileError, match=f"without {name}"):
        hpctoolkit.read(folder)


def test_a_lost_thread_of_version_3_shows_in_the_sums(tmp_path: Path) -> None:
    folder = write_v3(tmp_path / "db", THREADS, METRICS)
    next(folder.glob("*-000001-*.metric-db")).unlink()
    with pytest.raises(ProfileFileError, match="PAPI_TOT_INS 5e\\+09 instead of 8e\\+09"):
        hpctoolkit.read(folder)
    for path in folder.glob("*.metric-db"):
        path.unlink()
    with pytest.raises(ProfileFileError, match=r"found no \*\.metric-db file"):
        hpctoolkit.read(folder)


def test_threads_that_contradict_the_stored_sum_are_refused(tmp_path: Path) -> None:
    folder = write_v4(tmp_path / "db", THREADS, METRICS, stored_sums={"PAPI_TOT_INS": 9e9})
    with pytest.raises(ProfileFileError, match="sums to 8e\\+09 beside a stored sum of 9e\\+09"):
        hpctoolkit.read(folder)


def test_raw_measurements_and_other_folders_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(ProfileFileError, match="found no HPCToolkit database"):
        hpctoolkit.read(tmp_path)
    (tmp_path / "amg-000000-000-a8c0-1-0.hpcrun").write_bytes(b"HPCRUN")
    with pytest.raises(ProfileFileError, match="hpcprof -o"):
        hpctoolkit.read(tmp_path)
    assert not hpctoolkit.reads(tmp_path)
    assert not hpctoolkit.reads(tmp_path / "nowhere")


def database_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.suffix in (".db", ".xml", ".metric-db"))


@pytest.mark.parametrize("write", [write_v3, write_v4])
def test_a_file_cut_short_anywhere_is_one_clear_error(write, tmp_path: Path) -> None:
    folder = write(tmp_path / "db", THREADS[:1], METRICS[:2])
    if write is write_v4:
        write_v4(folder, THREADS[:1], METRICS[:2], trace_ns=(1, 2))
    for path in database_files(folder):
        whole = path.read_bytes()
        for size in range(len(whole.rstrip(b"\n"))):
            path.write_bytes(whole[:size])
            with pytest.raises(ProfileFileError, match="expected"):
                hpctoolkit.read(folder)
            hpctoolkit.reads(folder)
        path.write_bytes(whole)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), version=st.sampled_from([3, 4]))
def test_damaged_bytes_never_raise_anything_else(data: st.DataObject, version: int, tmp_path: Path) -> None:
    folder = {3: write_v3, 4: write_v4}[version](tmp_path / f"v{version}", THREADS[:2], METRICS[:2])
    path = data.draw(st.sampled_from(database_files(folder)))
    content = bytearray(path.read_bytes())
    start = data.draw(st.integers(0, len(content) - 1))
    damage = data.draw(st.one_of(st.binary(min_size=1, max_size=8), st.just(b"\xff" * 8), st.just(b"\0" * 8)))
    content[start : start + len(damage)] = damage
    path.write_bytes(content)
    try:
        hpctoolkit.read(folder)
    except ProfileFileError as error:
        assert str(folder) in str(error)


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        ("perf::INSTRUCTIONS", "instructions"),
        ("CYCLES", "cycles"),
        ("perf::CPU-CYCLES", "cycles"),
        ("perf::L1-DCACHE-LOAD-MISSES", "L1-dcache-load-misses"),
        ("perf::STALLED-CYCLES-BACKEND", "stalled-cycles-backend"),
        ("PAGE-FAULTS", "page-faults"),
        ("bdw_ep::FP_ARITH:SCALAR_DOUBLE", "FP_ARITH:SCALAR_DOUBLE"),
        ("papi::perf::INSTRUCTIONS", "instructions"),
        ("papi::PAPI_TOT_CYC", "PAPI_TOT_CYC"),
    ],
)
def test_events_get_the_names_that_formulas_use(raw: str, name: str) -> None:
    assert canonical(raw) == name


def test_real_version_3_agrees_with_an_independent_reader() -> None:
    # llnl-hatchet 2026.2.0, from_hpctoolkit: time (inc) of <program root> by rank, in microseconds.
    by_rank = [999238.0, 999390.0, 1000306.0, 999308.0]
    found = only(real("hpctoolkit-v3-cpi"))
    assert found.events == {"CPUTIME (usec)": sum(by_rank)}
    assert found.runtime_s == pytest.approx(max(by_rank) * 1e-6)
    assert (found.facts["app"], found.facts["ranks"], found.facts["threads"]) == ("cpi", 4, 1)


def test_real_version_4_agrees_with_an_independent_reader_and_with_the_context_tree() -> None:
    folder = real("hpctoolkit-v4-ping-pong")
    found = only(folder)
    # llnl-hatchet 2026.2.0, from_hpctoolkit_latest: time (inc) of the entry point, in seconds, over both ranks.
    assert found.events["CPUTIME (sec)"] == pytest.approx(float.fromhex("0x1.0c5c13fd0d067p-2"))
    # cct.db keeps the same numbers by context: context 0, metric 3 ("execution"), one value for each profile.
    tree = (folder / "cct.db").read_bytes()
    (infos,) = struct.unpack_from("<Q", tree, 0x18)
    (array,) = struct.unpack_from("<Q", tree, infos)
    count, values, metrics, indices = struct.unpack_from("<QQH6xQ", tree, array)
    starts = dict(struct.unpack_from("<HQ", tree, indices + 10 * place) for place in range(metrics))
    by_rank = [struct.unpack_from("<Id", tree, values + 12 * place)[1] for place in range(starts[3], count)]
    assert len(by_rank) == found.facts["ranks"] == 2
    assert found.events["CPUTIME (sec)"] == pytest.approx(sum(by_rank))
    # The least and the greatest time stamp, in nanoseconds, of a dump of trace.db.
    assert found.runtime_s == pytest.approx((0x174D1AB8B90EDE18 - 0x174D1AB8A6767608) * 1e-9)
    assert (found.facts["app"], found.facts["threads"]) == ("ping-pong", 1)
