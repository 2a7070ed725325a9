from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from crossperf import campaign
from crossperf.campaign import log
from crossperf.campaign.composing import Composer
from crossperf.campaign.log import CountedInput, ProgramPart, TimedInput, TimedStart
from crossperf.campaign.spec import Work
from crossperf.collect.process import Runner
from crossperf.collect.qemu import QemuBackend
from crossperf.importers.measurement import counted
from tests.collect.real import need

TESTBED = Path(__file__).parents[2] / "testbed"
WORK = Work("triad", "size=8")
SYSTEM = {"os.minor_faults": 100.0, "os.major_faults": 1.0, "os.rchar": 7000.0, "os.wchar": 50.0}
START = TimedStart("one", "r1", (0.002, 0.004, 0.003), (SYSTEM,) * 3)
VISIT = TimedInput(
    "one",
    "triad",
    "size=8",
    "r1",
    seconds=(0.5, 0.6),
    page_faults=2.0,
    bytes_read=10.0,
    bytes_written=0.0,
    bytes_to_device=4.0,
    bytes_to_host=0.0,
    set_up=ProgramPart(1.0, page_faults=30.0, bytes_to_device=1.0),
    first=ProgramPart(0.7, page_faults=3.0, bytes_to_device=4.0),
    rest=ProgramPart(0.25),
)


def test_a_program_takes_its_start_set_up_first_pass_rest_and_as_long_for_each_further_pass() -> None:
    (whole,) = Composer({WORK: 11}, [START]).visits([VISIT])
    assert whole.input == "size=8 passes=11"
    assert whole.seconds == pytest.approx((0.003 + 1.0 + 0.7 + 0.25 + 5.0, 0.003 + 1.0 + 0.7 + 0.25 + 6.0))
    assert whole.page_faults == 101.0 + 30.0 + 3.0 + 20.0
    assert whole.bytes_read == 7000.0 + 100.0
    assert whole.bytes_to_device == 1.0 + 4.0 + 40.0


def test_a_program_whose_parts_failed_fails_whole_and_rounds_without_a_start_are_left_out() -> None:
    failed = TimedInput("one", "triad", "size=8", "r1", error="no memory")
    composer = Composer({WORK: 3}, [START])
    assert [visit.error for visit in composer.visits([failed])] == ["no memory"]
    assert not list(composer.visits([TimedInput("one", "triad", "size=8", "r2", seconds=(1.0,))]))
    assert not list(composer.visits([TimedInput("one", "triad", "size=9", "r1", seconds=(1.0,))]))


def test_counts_of_a_gpu_are_those_of_a_pass_as_often_as_it_is_made() -> None:
    known = CountedInput("gpu", "triad", "size=8", events={"inst": 5.0, "streams_with_kernels": 1.0, "lost": None})
    (whole,) = Composer({WORK: 4}, []).counts([known])
    assert whole.events == {"inst": 20.0, "streams_with_kernels": 1.0, "lost": None}


@pytest.mark.slow
def test_a_composed_program_has_the_counters_of_the_same_program_run_whole(tmp_path: Path) -> None:
    need("g++", "make", "qemu-x86_64")
    subprocess.run(["make", "-s", "-j2", "-C", str(TESTBED), "cpu"], check=True)
    (tmp_path / "inputs.toml").write_text("[checkpoint]\nsize = [30000]\n[jacobi2d]\nsize = [200]\n")
    spec_text = (TESTBED / "campaign.toml").read_text().replace("build/", f"{TESTBED}/build/")
    spec_text = "\n".join(line for line in spec_text.splitlines() if not line.startswith(("inputs", "calibration")))
    (tmp_path / "spec.toml").write_text('inputs = ["inputs.toml"]\n' + spec_text)
    spec = campaign.read(tmp_path / "spec.toml")
    campaign.visit(spec, [spec.modes["epyc-1t"]], tmp_path, until=None)
    campaign.count(spec, spec.counts["epyc"], tmp_path)
    runs = {run.app: run for run in campaign.assemble(spec, tmp_path, dict.fromkeys(spec.works, 9))}
    for work in spec.works:
        command = [str(TESTBED / "build" / "testbed-cpu"), *work.line.split(), "passes=9"]
        whole = counted([QemuBackend(spec.counts["epyc"].caches).count(command, Runner())]).values
        composed = runs[work.workload].counters
        exact = ("parallel_regions", "io_files_opened")
        assert {name: composed[name] for name in exact} == {name: whole[name] for name in exact}
        for name in ("instructions", "bytes_loaded", "bytes_stored", "mem_ratio", "startup_instructions"):
            assert composed[name] == pytest.approx(whole[name], rel=0.03), name
        for name in ("cache_miss_rate", "footprint_bytes", "sequential_access_ratio"):
            assert composed[name] == pytest.approx(whole[name], rel=0.1), name


def test_a_log_that_was_put_away_is_read_with_what_came_after(tmp_path: Path) -> None:
    log.add(tmp_path / log.TIMES, {"round": "r1", "platforms": ["one"]})
    times = tmp_path / log.TIMES
    log.put_away([times], times)
    times.unlink()
    log.add(tmp_path / log.TIMES, {"round": "r2", "platforms": ["one"]})
    assert [known.name for known in log.rounds(tmp_path)] == ["r1", "r2"]
    log.put_away([times], times)
    times.unlink()
    assert [known.name for known in log.rounds(tmp_path)] == ["r1", "r2"]
