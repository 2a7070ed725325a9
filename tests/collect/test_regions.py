"""Marked regions: programs that do a known amount inside, and ten times as much before and after."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from crossperf import include_path
from crossperf.collect import regions, summary
from crossperf.collect.perf import PerfBackend
from crossperf.collect.process import Runner
from crossperf.collect.profile import Profile, profile
from crossperf.collect.regions import Region
from crossperf.collect.strace import StraceBackend
from crossperf.collect.valgrind import ValgrindBackend
from crossperf.importers.measurement import Measurement, counted
from tests.collect.real import compiled, need, unavailable

SOURCE = Path(__file__).parents[2] / "src"
CACHES = {"I1": (32768, 8, 64), "D1": (32768, 8, 64), "LL": (1 << 20, 16, 64)}
ROUNDS = 1_000_000
#: Three visits of a loop of two instructions.
INSTRUCTIONS = 3 * 2 * ROUNDS


@pytest.fixture(scope="module")
def marked(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The program that marks regions."""
    folder = tmp_path_factory.mktemp("regions")
    return str(compiled("region.c", folder, f"-I{include_path()}", "-pthread", "-ldl"))


def region_of(*command: str) -> Region:
    found = regions.execute(Runner(), command, quiet=True).marked
    assert found is not None
    return found


def marking(region: Region) -> Runner:
    """Return what runs the program under a tool, as a profile does."""
    return Runner(region=region, env=regions.library())


def under_valgrind(*command: str) -> Measurement:
    need("valgrind")
    return ValgrindBackend(CACHES).count(command, marking(region_of(*command)))


def result(*command: str, whole: bool = False) -> Profile:
    return profile(command, platform="here", backend="os", repeats=1, whole=whole)


def test_the_runtime_is_that_of_the_region_and_the_whole_is_kept(marked: str) -> None:
    (run,) = result(marked, "3", "0", "sleep").runs
    # A busy machine makes both longer, but never takes from the 200 ms that are slept outside of the region.
    assert 0.06 < (run.runtime_s or 0) < run.metadata["whole_runtime_s"] - 0.2
    assert run.metadata["region_visits"] == 3


def test_the_summary_names_the_region_and_the_time_of_the_whole(marked: str) -> None:
    assert "in the marked region, entered 3 times; the whole took 0." in summary.lines(result(marked, "3", "0"))[1]
    assert "entered once" in summary.lines(result(marked, "1", "0"))[1]


def test_page_faults_and_bytes_are_those_of_the_region(marked: str) -> None:
    (run,) = result(marked, "3", "0", "pages").runs
    assert run.counters["page_faults"] == pytest.approx(3 * 256, abs=5)
    assert run.counters["io_bytes_read"] == run.counters["io_bytes_written"] == 0


def test_a_program_can_be_measured_whole(marked: str) -> None:
    (run,) = result(marked, "3", "0", "sleep", whole=True).runs
    assert (run.runtime_s or 0) > 0.26
    assert "whole_runtime_s" not in run.metadata


def test_a_program_without_marks_has_no_region() -> None:
    execution = regions.execute(Runner(), ["true"])
    assert execution.region is None
    assert execution.runtime_s == execution.wall_s


@pytest.mark.parametrize(
    ("how", "instructions"),
    [("", INSTRUCTIONS), ("thread", INSTRUCTIONS), ("nest", 2 * INSTRUCTIONS), ("inside", INSTRUCTIONS)],
)
def test_valgrind_counts_the_instructions_of_the_region_alone(marked: str, how: str, instructions: int) -> None:
    measurement = under_valgrind(marked, "3", str(ROUNDS), how)
    assert measurement.events["Ir"] == pytest.approx(instructions, rel=0.01)
    assert measurement.events["mix.control"] == pytest.approx(instructions / 2, rel=0.01)


def test_a_child_that_marks_too_is_added_and_inherits_nothing(marked: str) -> None:
    assert region_of(marked, "3", str(ROUNDS), "fork").visits == 6
    assert under_valgrind(marked, "3", str(ROUNDS), "fork").events["Ir"] == pytest.approx(2 * INSTRUCTIONS, rel=0.01)


def test_a_child_forked_after_a_region_does_not_count_it_again(marked: str) -> None:
    assert under_valgrind(marked, "3", str(ROUNDS), "after").events["Ir"] == pytest.approx(INSTRUCTIONS, rel=0.01)


@pytest.mark.parametrize(
    ("how", "instructions"), [("", INSTRUCTIONS), ("thread", INSTRUCTIONS), ("fork", 2 * INSTRUCTIONS)]
)
def test_qemu_counts_the_instructions_of_the_region_alone(marked: str, how: str, instructions: int) -> None:
    qemu = pytest.importorskip("crossperf.collect.qemu", reason="this version has no back end qemu")
    backend = qemu.QemuBackend(CACHES)
    if reason := backend.why_not():
        unavailable(reason)
    command = [marked, "3", str(ROUNDS), how]
    measurement = backend.count(command, marking(region_of(*command)))
    assert counted([measurement]).values["instructions"] == pytest.approx(instructions, rel=0.01)


@pytest.mark.slow
def test_ranks_count_their_time_once(marked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    need("mpirun")
    monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT", "1")
    monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
    region = region_of("mpirun", "--oversubscribe", "-n", "3", marked, "3", "0", "sleep")
    assert (region.processes, region.visits) == (3, 9)
    assert 0.06 < region.wall_s < 0.15


def test_empty_caches_are_noted_where_other_threads_work(marked: str) -> None:
    assert region_of(marked, "3", "3000000", "thread").threaded
    assert not region_of(marked, "3", "3000000").threaded
    assert any("caches are empty" in note for note in under_valgrind(marked, "1", str(ROUNDS), "thread").notes)


def test_perf_counts_the_faults_of_the_region_and_the_threads_of_the_whole(marked: str) -> None:
    need("perf")
    backend = PerfBackend()
    if reason := backend.why_not():
        unavailable(reason)
    events = backend.count([marked, "3", "0", "pages"], marking(region_of(marked, "3", "0", "pages"))).events
    assert events["page-faults"] == pytest.approx(3 * 256, abs=5)
    if events.get("task:task_newtask") is not None:
        threads = [marked, "3", "0", "thread"]
        events = backend.count(threads, marking(region_of(*threads))).events
        assert events["task:task_newtask"] == 3
        assert events["syscalls:sys_exit_openat"] == 0


def test_perf_counts_while_any_process_is_in_a_region(marked: str) -> None:
    need("perf")
    backend = PerfBackend()
    if reason := backend.why_not():
        unavailable(reason)
    command = [marked, "0", "0", "two"]
    events = backend.count(command, marking(region_of(*command))).events
    assert events["page-faults"] == pytest.approx(1024, abs=60)  # and a few of each process after the fork


def test_strace_keeps_the_threads_of_the_whole_and_drops_the_files(marked: str) -> None:
    need("strace")
    command = [marked, "3", "0", "thread"]
    region = region_of(*command)
    measurement = regions.counted_in(region, StraceBackend().count(command, marking(region)))
    assert counted([measurement]).values["threads"] == 4
    assert measurement.events["strace.files_opened"] is None
    assert any("marked region" in note for note in measurement.notes)


def test_a_tool_for_gpus_counts_the_whole_and_says_so() -> None:
    measurement = regions.counted_in(Region(1.0), Measurement("cupti", {"kernel_launches": 3.0}))
    assert measurement.events == {"kernel_launches": 3.0}
    assert "whole program" in measurement.notes[0]


def test_a_region_that_is_begun_and_not_ended_is_one_note(marked: str) -> None:
    found = result(marked, "3", "0", "open")
    (note,) = found.notes
    assert "began a region and did not end it" in note
    assert found.runs[0].metadata["region_visits"] == 3


def test_a_program_that_never_ends_its_region_is_measured_whole(marked: str) -> None:
    found = result(marked, "0", "0", "open")
    assert "the whole program is measured" in found.notes[0]
    assert "whole_runtime_s" not in found.runs[0].metadata


def test_without_a_compiler_the_program_is_measured_whole_with_a_note(
    marked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(regions, "library", dict)
    found = result(marked, "3", "0")
    assert "needs a C compiler" in found.notes[0]
    assert "whole_runtime_s" not in found.runs[0].metadata
    assert result("true").notes == ()


@pytest.mark.parametrize("language", [("c", "c99"), ("c", "c11"), ("c++", "c++11"), ("c++", "c++20")])
def test_the_header_is_strict_c_and_cpp_without_warnings(tmp_path: Path, language: tuple[str, str]) -> None:
    need("gcc", "g++")
    source = tmp_path / "source"
    source.write_text("#include <crossperf.h>\nint main(void) { crossperf_begin(); crossperf_end(); return 0; }\n")
    flags = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{include_path()}", "-o", str(tmp_path / "program")]
    compiler = "gcc" if language[0] == "c" else "g++"
    subprocess.run([compiler, f"-std={language[1]}", "-x", language[0], str(source), *flags, "-ldl"], check=True)
    subprocess.run([tmp_path / "program"], check=True)


def test_without_crossperf_ten_million_marks_take_less_than_a_second(marked: str) -> None:
    before_s = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run([marked, "5000000", "0"], check=True, timeout=60)
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before_s < 1.0  # of the processor, not of the clock


PYTHON = """
import sys, time
import crossperf

@crossperf.region()
def work(seconds):
    with crossperf.region():
        time.sleep(seconds)
    raise ValueError

time.sleep(0.2)
for _ in range(3):
    try:
        work(0.02)
    except ValueError:
        time.sleep(0.05)
heavy = {"numpy", "polars", "click", "crossperf.collect.profile", "crossperf.errors"} & set(sys.modules)
sys.exit(bool(heavy))
"""


def test_a_region_of_a_python_program_is_measured_and_ends_with_an_exception(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(SOURCE))
    script = tmp_path / "script.py"
    script.write_text(PYTHON)
    (run,) = result(sys.executable, "-S", str(script)).runs
    assert run.status == "ok"
    assert 0.06 < (run.runtime_s or 0) < run.metadata["whole_runtime_s"] - 0.35
    assert run.metadata["region_visits"] == 3


def test_processes_that_overlap_count_once_and_others_are_added() -> None:
    # Two ranks at a time, then a third alone.
    assert regions._together([(0.0, 2.0, 2.0), (0.1, 2.1, 1.9), (3.0, 4.0, 0.5)]) == pytest.approx(2.5)
