from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from crossperf.errors import ProfileFileError
from crossperf.importers import google_benchmark
from crossperf.importers.detect import import_runs
from crossperf.importers.measurement import to_run
from tests.collect.real import need, unavailable

CONTEXT = {"date": "2026-03-01T10:00:00+00:00", "host_name": "node1", "num_cpus": 8, "library_version": "v1.8.0"}
PROGRAM = """\
#include <benchmark/benchmark.h>
#include <chrono>
#include <thread>
static void nap(benchmark::State& state) {
  for (auto _ : state) std::this_thread::sleep_for(std::chrono::milliseconds(state.range(0)));
  state.counters["naps"] = 7;
}
BENCHMARK(nap)->Arg(2)->Arg(8)->Iterations(5)->Repetitions(3)->Unit(benchmark::kMicrosecond)->UseRealTime();
static void broken(benchmark::State& state) {
  state.SkipWithError("no such matrix");
  for (auto _ : state) {}
}
BENCHMARK(broken);
BENCHMARK_MAIN();
"""


def entry(name: str, time: float, **facts: Any) -> dict[str, Any]:
    return {"name": name, "run_name": name, "run_type": "iteration", "real_time": time, "time_unit": "ns"} | facts


def written(folder: Path, entries: list[dict[str, Any]] | str) -> Path:
    path = folder / "bench.json"
    document = {"context": CONTEXT, "benchmarks": entries}
    path.write_text(entries if isinstance(entries, str) else json.dumps(document))
    return path


def test_a_benchmark_is_an_application_and_its_arguments_the_input(tmp_path: Path) -> None:
    units = [("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0)]
    entries = [entry(f"BM_Copy<float>/{at}/threads:2", 250.0, time_unit=unit) for at, (unit, _) in enumerate(units)]
    runs = [to_run([m], platform="p") for m in google_benchmark.read(written(tmp_path, entries))]
    assert [run.app for run in runs] == ["BM_Copy<float>"] * 4
    assert [run.input for run in runs] == [f"{at}/threads:2" for at in range(4)]
    assert [run.runtime_s for run in runs] == [pytest.approx(250 * scale) for _, scale in units]
    assert (runs[0].host, runs[0].started) == ("node1", CONTEXT["date"])


def test_repetitions_are_runs_and_their_statistics_are_not(tmp_path: Path) -> None:
    entries = [entry("sum/8", 10.0 + at, repetition_index=at) for at in range(3)]
    entries += [entry("sum/8_mean", 11.0, run_name="sum/8", run_type="aggregate", aggregate_name="mean")]
    runs = [to_run([m], platform="p") for m in google_benchmark.read(written(tmp_path, entries))]
    assert [(run.repeat, run.runtime_s) for run in runs] == [(at, pytest.approx((10 + at) * 1e-9)) for at in range(3)]


def test_older_releases_tell_statistics_by_their_name_alone(tmp_path: Path) -> None:
    names = ["sum/8", "sum/8", "sum/8_mean", "sum/8_median", "sum/8_stddev"]
    entries = [{"name": name, "iterations": 5, "real_time": 4, "cpu_time": 4, "time_unit": "us"} for name in names]
    runs = [to_run([m], platform="p") for m in google_benchmark.read(written(tmp_path, entries))]
    assert [(run.app, run.input, run.repeat) for run in runs] == [("sum", "8", 0), ("sum", "8", 1)]


def test_a_benchmark_that_failed_is_a_failed_run(tmp_path: Path) -> None:
    entries = [entry("solve/8", 0.0, error_occurred=True, error_message="did not converge"), entry("solve/9", 1.0)]
    failed, sound = (to_run([m], platform="p") for m in google_benchmark.read(written(tmp_path, entries)))
    assert (failed.status, failed.runtime_s) == ("did not converge", None)
    assert sound.status == "ok"


def test_counters_of_the_author_are_kept_and_skipped_benchmarks_named(tmp_path: Path) -> None:
    entries = [entry("sum/8", 1.0, bytes_per_second=3e9, label="warm"), entry("gpu/8", 0.0, skipped=True)]
    [measurement] = google_benchmark.read(written(tmp_path, entries))
    assert measurement.facts["benchmark_counters"] == {"bytes_per_second": 3e9}
    assert measurement.facts["label"] == "warm"
    assert "1 benchmark skipped itself and is left out: gpu/8" in measurement.notes


@pytest.mark.parametrize(
    ("entries", "why"),
    [
        ("{", "found no whole JSON"),
        ("[]", "found no whole JSON"),
        ("[" * 100_000, "found no whole JSON"),
        ([], "found no benchmark"),
        ([entry("a_mean", 1.0, run_type="aggregate")], "statistics over repetitions alone"),
        ([entry("a", 1.0, time_unit="weeks")], "benchmark 'a': found 1.0 weeks"),
    ],
)
def test_what_cannot_be_used_is_an_error_in_a_sentence(tmp_path: Path, entries: Any, why: str) -> None:
    with pytest.raises(ProfileFileError, match=why):
        google_benchmark.read(written(tmp_path, entries))


def test_what_the_real_library_writes_is_read(tmp_path: Path) -> None:
    need("g++")
    source, program, output = tmp_path / "nap.cc", tmp_path / "nap", tmp_path / "nap.json"
    source.write_text(PROGRAM)
    line = ["g++", "-O1", "-o", str(program), str(source), "-lbenchmark", "-lpthread"]
    if subprocess.run(line, capture_output=True, check=False).returncode != 0:
        unavailable("google-benchmark is not installed (Debian: libbenchmark-dev)")
    options = [f"--benchmark_out={output}", "--benchmark_out_format=json"]
    subprocess.run([program, *options], check=True, capture_output=True)
    runs = import_runs("auto", [output], platform="here").runs
    naps = [run for run in runs if run.app == "nap"]
    assert sorted((run.input, run.repeat) for run in naps) == [(n, at) for n in ("2", "8") for at in range(3)]
    for run in naps:
        assert int(run.input) * 1e-3 <= run.runtime_s <= 1.0, "a nap takes no less, and on a busy machine more"
        assert run.metadata["benchmark_counters"] == {"naps": 7}
    assert [run.status for run in runs if run.app == "broken"] == ["no such matrix"]
