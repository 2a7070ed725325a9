from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from crossperf.errors import ProfileFileError
from crossperf.importers import perf_data
from crossperf.importers.measurement import to_run
from tests.collect.real import need, unavailable

#: Samples by the clock of a process, one for each millisecond of it.
PERIOD_NS = 1_000_000


def recorded(folder: Path, *line: str) -> Path:
    """Return a ``perf.data`` that the real perf made of a shell which counts."""
    need("perf")
    output = folder / "perf.data"
    spin = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"
    done = subprocess.run(
        ["perf", *line, "-o", str(output), "--", "sh", "-c", spin], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        unavailable(f"perf may not count here ({done.stderr.strip()[-100:]})")
    return output


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("samples")
    return recorded(folder, "record", "-q", "-e", "cpu-clock:u", "-c", str(PERIOD_NS))


def test_counts_are_samples_times_their_period(samples: Path) -> None:
    [measurement] = perf_data.read(samples)
    report = ["perf", "report", "-f", "-i", str(samples), "--stdio", "--sort", "comm", "-g", "none"]
    text = subprocess.run(report, capture_output=True, text=True, check=True).stdout
    [line] = [line for line in text.splitlines() if "Event count (approx.)" in line]
    assert measurement.events == {"cpu-clock:u": int(line.split()[-1])}
    assert measurement.facts["samples"] == {"cpu-clock:u": int(line.split()[-1]) / PERIOD_NS}
    assert "estimates from" in measurement.notes[0]


def test_program_arguments_and_machine_come_from_the_header(samples: Path) -> None:
    [measurement] = perf_data.read(samples)
    run = to_run([measurement], platform="here")
    assert run.app == "sh"
    assert run.input.startswith("-c i=0; while")
    assert run.host
    assert run.started is None, "perf tells when the file was written, which a copy changes"
    assert run.runtime_s is not None
    assert run.runtime_s >= 0.09, "a hundred milliseconds of a processor take no less"


def test_a_handful_of_samples_is_no_count(tmp_path: Path) -> None:
    [measurement] = perf_data.read(recorded(tmp_path, "record", "-q", "-e", "cpu-clock:u", "-c", str(100 * PERIOD_NS)))
    assert measurement.events == {"cpu-clock:u": None}
    assert "fewer than 100 samples" in measurement.notes[-1]


def test_what_perf_stat_recorded_are_counts(tmp_path: Path) -> None:
    path = recorded(tmp_path, "stat", "record", "-e", "page-faults,task-clock")
    [measurement] = perf_data.read(path)
    report = ["perf", "stat", "-x,", "report", "-i", str(path)]
    done = subprocess.run(report, capture_output=True, text=True, check=True)
    counts = {fields[2]: float(fields[0]) for fields in (line.split(",") for line in done.stderr.splitlines() if line)}
    assert measurement.events["page-faults"] == counts["page-faults"] > 20
    assert measurement.events["task-clock"] == pytest.approx(counts["task-clock"] * 1e6, abs=1e4)
    assert measurement.runtime_s is not None
    assert measurement.runtime_s >= counts["task-clock"] * 1e-3 * 0.9
    assert to_run([measurement], input="i", platform="p").counters["page_faults"] == counts["page-faults"]


@pytest.mark.parametrize("length", [9, 200, 3000])
def test_a_file_cut_short_is_an_error_in_the_words_of_perf(samples: Path, tmp_path: Path, length: int) -> None:
    path = tmp_path / "cut.data"
    path.write_bytes(samples.read_bytes()[:length])
    assert perf_data.reads(path)
    with pytest.raises(ProfileFileError, match="expected"):
        perf_data.read(path)


def test_without_perf_the_error_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "perf.data"
    path.write_bytes(b"PERFILE2" + bytes(100))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ProfileFileError, match="found no program perf on this machine"):
        perf_data.read(path)


def test_another_file_is_not_taken_for_one(tmp_path: Path) -> None:
    path = tmp_path / "perf.data"
    path.write_text("hello")
    assert not perf_data.reads(path)
    with pytest.raises(ProfileFileError, match="does not start with PERFILE2"):
        perf_data.read(path)
