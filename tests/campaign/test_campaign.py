from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from crossperf import campaign
from crossperf.campaign import counting, log
from crossperf.campaign.log import spread
from crossperf.errors import CollectError, SettingsError
from crossperf.runs.table import from_runs
from tests.campaign.stand_in import SPEC, alive, children_of, prepare, timed, visit, wait_for
from tests.collect.real import need

#: A program of one thread that marks its second pass, as the testbed's do.
DUMPING = """
#include <stdio.h>
#include <valgrind/callgrind.h>
static volatile char data[64000];
static void pass(void) {
    for (int i = 0; i < 64000; i += 64) data[i];
}
int main(int argc, char **argv) {
    pass();
    CALLGRIND_DUMP_STATS;
    pass();
    CALLGRIND_DUMP_STATS;
    printf("{\\"workload\\": \\"%s\\", \\"bytes_to_device\\": 0}\\n", argv[argc > 1]);
    return 0;
}
"""


def test_every_combination_of_a_table_of_lists_is_one_input(tmp_path: Path) -> None:
    spec = campaign.read(prepare(tmp_path, '[quick]\nn = [1, 2, 3]\nkind = ["a", "b"]\n[other]\nn = [9]\n'))
    assert len(spec.works) == 7
    assert spec.works[1].line == "quick n=1 kind=b"
    assert spec.works[-1].line == "other n=9"


def test_times_become_one_run_for_each_repeat_per_pass(tmp_path: Path) -> None:
    spec = campaign.read(prepare(tmp_path, "[quick]\nn = [1, 2]\n"))
    visit(spec, tmp_path)
    runs = campaign.assemble(spec, tmp_path)
    assert len(runs) == 2 * 2 * 3
    assert [run.runtime_s for run in runs[:3]] == [0.01, 0.0101, 0.0102]
    assert runs[0].counters["io_files_opened"] == 1
    assert runs[0].counters["threads"] == 1.0
    assert runs[0].metadata["checksum"] == 1.5
    assert from_runs(runs).n_failed == 0


def test_an_input_that_crashes_the_program_is_a_failed_run_and_the_rest_goes_on(tmp_path: Path) -> None:
    spec = campaign.read(prepare(tmp_path, "[quick]\nn = [1]\n[crash]\nn = [1]\n[refuse]\nn = [1]\n[late]\nn = [5]\n"))
    visit(spec, tmp_path, "one")
    status = {run.app: run.status for run in campaign.assemble(spec, tmp_path)}
    assert status == {
        "quick": "ok", "crash": "the program ended or hung at this input", "refuse": "no such size", "late": "ok",
    }  # fmt: skip


def test_what_was_timed_before_a_kill_is_not_timed_again(tmp_path: Path) -> None:
    inputs = "[slow]\nn = [1, 2, 3, 4, 5, 6]\n"
    spec_file = prepare(tmp_path, inputs)
    out = tmp_path / "out"
    command = [sys.executable, "-m", "crossperf", "campaign", str(spec_file), "-o", str(out), "--platform", "one"]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    until = time.monotonic() + 30
    while len(timed(out, "slow")) < 2:
        assert time.monotonic() < until
        time.sleep(0.02)
    programs = children_of(process.pid)
    process.send_signal(signal.SIGKILL)
    process.wait()
    wait_for(lambda: not any(map(alive, programs)))
    before = len(timed(out, "slow"))
    assert 2 <= before < 6
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "error: " in refused.stderr
    assert "--resume" in refused.stderr
    done = subprocess.run([*command, "--resume"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    inputs_timed = [facts["input"] for facts in timed(out, "slow")]
    assert sorted(map(str, inputs_timed)) == [f"n={n}" for n in range(1, 7)]
    assert "6 cells of 12, 18 runs, 0 failed" in done.stdout


def test_a_torn_line_of_a_kill_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    log.add(path, {"a": 1})
    with path.open("ab") as file:
        file.write(b'{"a": 2, "b"\n')
    log.add(path, {"a": 3})
    assert [facts["a"] for facts in log.lines(path)] == [1, 3]


def test_time_that_runs_out_stops_a_campaign_and_the_next_call_goes_on(tmp_path: Path) -> None:
    spec = campaign.read(prepare(tmp_path, "[slow]\nn = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]\n"))
    within_s = 0.7
    while not timed(tmp_path, "slow"):  # on a busy machine the program alone can take that long to start
        visit(spec, tmp_path, "one", until=time.monotonic() + within_s)
        within_s *= 2
    assert len(timed(tmp_path, "slow")) < 12
    visit(spec, tmp_path, "one")
    assert len(timed(tmp_path, "slow")) == 12


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (('inputs = ["inputs.toml"]', 'inputs = "x"'), "inputs is 'x', expected a list of files"),
        (('inputs = ["inputs.toml"]', 'inputs = ["gone.toml"]'), "gone.toml: cannot be read"),
        (('tool = "valgrind"', 'tool = "magic"'), "the tool 'magic', expected valgrind or qemu or ncu"),
        (("threads = 2", "threads = 0"), "threads 0, expected 1 or more"),
        (('counts = "here"', 'counts = "there"'), "names counts 'there'"),
        (('counts = "here"', "counts = [[]]"), r"names counts \[\], which the spec does not have"),
        (('counts = "here"', 'counts = {a = "here"}'), r"names counts \{'a': 'here'\}, which the spec does not have"),
        (("threads = 2", "threads = true"), "threads True, expected 1 or more"),
        (("repeats = 3", "repeats = 0"), "repeats is 0"),
        (("D1=32768,8,64 ", ""), "no caches I1, D1 and LL"),
        (("visits = 1", "visit = 1"), r"'visit' is no setting of a campaign \(did you mean 'visits'\?\)"),
        (("visits = 1", "visits = 1\nspread = 0.05"), "spread is no more a setting"),
        (("visits = 1", "visits = true"), "visits is True, expected a whole number"),
        (("visits = 1", "limit_s = 0"), "limit_s is 0, expected seconds above 0"),
        (('["quick n=1"]', "3"), "calibration is 3, expected workloads with their inputs"),
        (("threads = 2", 'command = ["x"]'), "platform two must name either a program or a command"),
        (('program = "program"\nthreads = 2', 'command = "x {n}"'), "command 'x {n}', expected a list of words"),
        (('program = "program"\nthreads = 2', 'command = ["x", "{size}"]'), "'quick n=1' has no value for"),
        (("threads = 2", 'threads = 2\ncheck = "exit"'), "check 'exit', expected 'stdout'"),
        (("[platforms.one]", "[platforms"), "is not TOML"),
    ],
)
def test_a_bad_spec_is_refused_with_what_is_wrong(tmp_path: Path, change: tuple[str, str], sentence: str) -> None:
    path = prepare(tmp_path, "[quick]\nn = [1]\n")
    path.write_text(SPEC.replace(*change))
    with pytest.raises(SettingsError, match=sentence):
        campaign.read(path)


def test_a_platform_that_the_spec_does_not_have_and_a_program_that_is_not_built_are_named(tmp_path: Path) -> None:
    spec = campaign.read(prepare(tmp_path, "[quick]\nn = [1]\n"))
    with pytest.raises(SettingsError, match="expected one of the spec's: one, two"):
        spec.mode("three")
    (tmp_path / "program").unlink()
    with pytest.raises(CollectError, match=r"found no program to run for platform one\. Build it first"):
        visit(spec, tmp_path, "one")


def test_spread_is_the_coefficient_of_variation() -> None:
    assert spread([1.0, 2.0, 3.0]) == 0.5
    assert spread([4.0]) == 0.0


def test_counts_join_the_times_of_the_platforms_that_name_them(tmp_path: Path) -> None:
    spec = campaign.read(prepare(tmp_path, "[quick]\nn = [1]\n"))
    visit(spec, tmp_path)
    events = {"Ir": 500.0, "mix.int": 100.0, "mix.classified": 400.0}
    facts = {
        "counts": "here",
        "tool": "valgrind",
        "workload": "quick",
        "input": "n=1",
        "events": events,
        "version": "3",
    }
    log.add(tmp_path / log.COUNTS, facts)
    by_platform = {run.platform: run for run in campaign.assemble(spec, tmp_path)}
    assert by_platform["one"].counters["instructions"] == 500.0
    assert by_platform["one"].counters["int_ratio"] == 0.25
    assert "by hand" in json.dumps(by_platform["one"].metadata["tools"])
    assert "instructions" not in by_platform["two"].counters


def counted_as(folder: Path, counts: str, events: dict[str, float]) -> None:
    """Add counts of the one input to a campaign."""
    facts = {"counts": counts, "workload": "quick", "input": "n=1", "events": events, "version": "3"}
    log.add(folder / log.COUNTS, facts)


def test_a_platform_may_be_counted_in_several_ways(tmp_path: Path) -> None:
    path = prepare(tmp_path, "[quick]\nn = [1]\n")
    more = '[counts.more]\ntool = "qemu"\nprogram = "program"\n\n[platforms.one]'
    path.write_text(SPEC.replace("[platforms.one]", more).replace('counts = "here"', 'counts = ["more", "here"]'))
    spec = campaign.read(path)
    visit(spec, tmp_path, "one")
    counted_as(tmp_path, "here", {"Ir": 500.0, "Bc": 10.0, "Bcm": 1.0, "Bi": 0.0, "Bim": 0.0})
    counted_as(tmp_path, "more", {"qemu.instructions": 501.0})
    run = campaign.assemble(spec, tmp_path)[0]
    assert run.counters["instructions"] == 501.0
    assert run.counters["branch_miss_ratio"] == 0.1
    assert run.metadata["measured_by"]["instructions"] == "qemu"
    assert run.source_tool == "qemu 3 + valgrind 3 + testbed"
    path.write_text(SPEC.replace('counts = "here"', 'counts = ["here", "there"]'))
    with pytest.raises(SettingsError, match="names counts 'there'"):
        campaign.read(path)


def test_qemu_counts_the_marked_pass_alone_with_caches_as_the_one_before_left_them(tmp_path: Path) -> None:
    need("qemu-x86_64", "gcc")
    pytest.importorskip("capstone")
    path = prepare(tmp_path, "[quick]\nn = [1]\n")
    source = tmp_path / "program.c"
    source.write_text(DUMPING)
    subprocess.run(["gcc", "-O1", "-o", str(tmp_path / "program"), str(source)], check=True)
    path.write_text(SPEC.replace('tool = "valgrind"', 'tool = "qemu"').replace("D1=32768,8,64 ", ""))
    spec = campaign.read(path)
    campaign.count(spec, spec.counts["here"], tmp_path)
    (line,) = log.lines(tmp_path / log.COUNTS)
    events = line["events"]
    # One look at each of 1,000 lines, which 32 KiB do not hold and 128 KiB do.
    assert events["qemu.loads"] == pytest.approx(1_000, abs=50)
    assert events["qemu.misses_32k"] == pytest.approx(1_000, abs=20)
    assert max(events["qemu.misses_128k"], events["qemu.ll_misses"]) < 20
    assert "qemu.d1_misses" not in events
    assert not any(name.startswith("qemu.startup") for name in events)
    # A whole process with one pass has as many again, and its start.
    assert line["once"]["qemu.loads"] > 2_000
    assert line["once"]["qemu.startup_instructions"] > 10_000
    assert line["once"]["qemu.startup_page_faults"] > 20


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_campaign_keeps_what_it_has_and_leaves_no_process(
    tmp_path: Path, number: signal.Signals
) -> None:
    # A minute of inputs: on a busy machine it is seconds until this test sees the second.
    spec_file = prepare(tmp_path, f"[slow]\nn = {list(range(200))}\n")
    out = tmp_path / "out"
    command = [sys.executable, "-m", "crossperf", "campaign", str(spec_file), "-o", str(out), "--platform", "one"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    until = time.monotonic() + 30
    while len(timed(out, "slow")) < 2:
        assert time.monotonic() < until
        time.sleep(0.02)
    programs = children_of(process.pid)
    process.send_signal(number)
    _, error = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Go on with --resume" in error
    assert programs
    assert not any(map(alive, programs))
    assert (out / "runs.jsonl").read_text().count("\n") >= 2 * 3


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 130), (signal.SIGKILL, -signal.SIGKILL)])
def test_an_interrupt_or_a_kill_while_counting_leaves_no_valgrind_behind(
    tmp_path: Path, number: signal.Signals, status: int
) -> None:
    need("valgrind")
    pytest.importorskip("capstone")
    spec_file = prepare(tmp_path, "[slow]\nn = [1, 2, 3, 4]\n")
    (tmp_path / "program").write_text("#!/bin/sh\nsleep 60\n")
    command = [sys.executable, "-m", "crossperf", "campaign", str(spec_file), "-o", str(tmp_path / "out")]
    process = subprocess.Popen([*command, "--counts", "here", "--jobs", "2"], stderr=subprocess.DEVNULL)
    until = time.monotonic() + 30
    while len(children_of(process.pid)) < 3:  # two tools, and the guard
        assert time.monotonic() < until
        time.sleep(0.02)
    time.sleep(0.5)
    tools = children_of(process.pid)
    process.send_signal(number)
    assert process.wait(timeout=30) == status
    wait_for(lambda: not any(map(alive, tools)))


def test_a_program_that_starts_while_all_are_being_ended_goes_with_what_it_started(tmp_path: Path) -> None:
    running = counting._Running()
    running.stop()
    told = tmp_path / "pid"

    class AfterItsChildStarted:
        """A lock that is had once the program has started one of its own."""

        def __enter__(self) -> None:
            until = time.monotonic() + 30
            while not (told.exists() and told.read_text().strip()):
                assert time.monotonic() < until
                time.sleep(0.01)

        def __exit__(self, *_: object) -> None:
            pass

    running._lock = AfterItsChildStarted()  # type: ignore[assignment]
    start = time.monotonic()
    running.run(["sh", "-c", f"sleep 60 & echo $! > {told}; wait"])
    assert time.monotonic() - start < 45  # it would wait for the child's output
    assert not alive(int(told.read_text()))


def test_a_program_beside_the_spec_is_run_and_no_namesake_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From its own folder, ``spec.toml`` has the folder ``.``, and the program a name without one."""
    prepare(tmp_path, "[quick]\nn = [1]\n")
    namesake = tmp_path / "bin" / "program"
    namesake.parent.mkdir()
    namesake.write_text(f"#!/bin/sh\ntouch {tmp_path / 'namesake'}\n")
    namesake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{namesake.parent}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    spec = campaign.read(Path("spec.toml"))
    campaign.visit(spec, [spec.mode("one")], tmp_path)
    assert [run.status for run in campaign.assemble(spec, tmp_path)] == ["ok"] * 3
    assert not (tmp_path / "namesake").exists()
