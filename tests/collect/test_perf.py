from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from crossperf.collect.perf import PerfBackend
from crossperf.collect.process import Runner
from crossperf.collect.strace import StraceBackend, read_trace
from crossperf.errors import CollectError
from crossperf.importers.measurement import counted
from tests.collect.real import compiled_mpi, need, unavailable

DATA = Path(__file__).parents[1] / "data" / "perf"


def tracing() -> PerfBackend:
    """Return perf where it may use the kernel's tracepoints."""
    need("perf")
    backend = PerfBackend()
    if backend.why_not() or not backend._tracepoints()[0]:
        unavailable("perf may not use tracepoints here; that needs root")
    return backend


@pytest.mark.parametrize("tool", ["perf", "strace"])
def test_threads_started_are_counted_exactly_whether_together_or_one_after_another(
    programs: dict[str, Path], tool: str
) -> None:
    backend = tracing() if tool == "perf" else strace()
    for arguments in (["0"], ["5"], ["5", "together"]):
        found = counted([backend.count([str(programs["threads"]), *arguments], Runner())])
        assert found.values["threads"] == 1 + int(arguments[0])


@pytest.mark.parametrize("tool", ["perf", "strace"])
@pytest.mark.parametrize(
    ("command", "threads"),
    [
        (["sh", "-c", "sleep 0; sleep 0; :"], 3),
        (["sh", "-c", "{threads} 2; {threads} 1; :"], 1 + 3 + 2),
        (["env", "A=1", "{threads}", "2"], 3),
        (["timeout", "20", "{threads}", "2"], 3),
    ],
)
def test_processes_count_by_their_first_thread_and_what_only_starts_them_does_not(
    programs: dict[str, Path], tool: str, command: list[str], threads: int
) -> None:
    backend = tracing() if tool == "perf" else strace()
    command = [word.format(threads=programs["threads"]) for word in command]
    assert counted([backend.count(command, Runner())]).values["threads"] == threads


@pytest.mark.parametrize("tool", ["perf", "strace"])
def test_threads_and_files_of_mpi_ranks_are_theirs_and_not_those_of_mpirun(
    mpi: Path, tool: str, tmp_path: Path
) -> None:
    backend = tracing() if tool == "perf" else strace()
    command = ["mpirun", "--oversubscribe", "-n", "2", str(mpi)]
    values = counted([measured := backend.count(command, Runner())]).values
    truth = strace_of_one_rank(mpi, tmp_path)
    assert values["threads"] == 2 * truth[0]
    assert values["io_files_opened"] == pytest.approx(2 * truth[1], rel=0.05)
    assert "mpirun, which only started the others, is left out" in measured.notes
    assert ("io_bytes_read" in values) == (tool == "strace")


@pytest.fixture(scope="session")
def mpi(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An MPI program, that root may start too."""
    os.environ |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return compiled_mpi("ranks.c", tmp_path_factory.mktemp("mpi"))


def strace_of_one_rank(program: Path, folder: Path) -> tuple[int, int]:
    """Return the threads and opened files of one of two ranks: strace behind mpirun, its summary read by hand."""
    log = folder / "rank"
    traced = ["strace", "-ff", "-o", str(log), "-e", "trace=clone,clone3,openat,open,creat", str(program)]
    subprocess.run(["mpirun", "--oversubscribe", "-n", "2", *traced], check=True, capture_output=True, timeout=60)
    texts = [path.read_text() for path in folder.glob("rank.*")]
    opened = sum(
        line.startswith(("open", "creat")) and " = -1" not in line for text in texts for line in text.splitlines()
    )
    return len(texts) // 2, opened // 2


@pytest.mark.parametrize("tool", ["perf", "strace"])
def test_opened_files_are_counted_exactly_and_those_that_failed_are_not(
    programs: dict[str, Path], tmp_path: Path, tool: str
) -> None:
    backend = tracing() if tool == "perf" else strace()
    (tmp_path / "in").write_text("x")
    command = [str(programs["files"]), str(tmp_path / "in"), str(tmp_path / "out")]
    opened = [counted([backend.count([*command, n], Runner())]).values["io_files_opened"] for n in ("0", "7")]
    assert opened[1] - opened[0] == 7


def test_behind_a_launcher_strace_counts_the_bytes_of_the_program_alone(
    programs: dict[str, Path], tmp_path: Path
) -> None:
    (tmp_path / "in").write_bytes(b"x" * (1 << 20))
    command = ["timeout", "20", str(programs["files"]), str(tmp_path / "in"), str(tmp_path / "out")]
    none, three = (counted([strace().count([*command, n], Runner())]).values for n in ("0", "3"))
    for counter in ("io_bytes_read", "io_bytes_written"):
        assert three[counter] - none[counter] == 3 << 20
    assert none["io_bytes_written"] == 0


def strace() -> StraceBackend:
    need("strace")
    backend = StraceBackend()
    if why_not := backend.why_not():
        unavailable(why_not)
    return backend


def test_perf_and_the_kernel_agree_on_page_faults_of_a_program_with_children(programs: dict[str, Path]) -> None:
    backend = tracing()
    faults = [backend.count([str(programs["children"]), k], Runner()).events["page-faults"] or 0 for k in ("0", "4")]
    kernel = [Runner().execute([str(programs["children"]), k]).minor_faults for k in ("0", "4")]
    assert faults[1] - faults[0] == pytest.approx(kernel[1] - kernel[0], rel=0.02)


def test_hardware_events_count_or_their_absence_is_said() -> None:
    backend = tracing()
    found = backend.count(["true"], Runner())
    if backend.what_not() is None:
        assert found.events["instructions:u"] is not None
    else:
        assert found.events["instructions"] is None
        assert any("no hardware counters here" in note for note in found.notes)
        assert counted([found]).missing["instructions"] == "perf: instructions was not counted"


def test_a_command_that_fails_under_perf_is_no_measurement() -> None:
    with pytest.raises(CollectError, match="failed under perf: exit status 4"):
        # perf loses the status of a child that ends while it is being started.
        tracing().count(["sh", "-c", "sleep 0.2; exit 4"], Runner())


def test_hardware_events_are_asked_for_in_groups_that_fit_the_counters_of_a_processor() -> None:
    wanted = PerfBackend("Intel")._wanted_hardware()
    assert {"instructions", "branches", "branch-misses", "mem_inst_retired.all_loads"} <= set(wanted)
    assert "page-faults" not in wanted
    assert "ls_dispatch.ld_dispatch" in PerfBackend("AMD")._wanted_hardware()
    assert max(map(len, PerfBackend("Intel")._groups(wanted))) == 4
    assert PerfBackend("Intel", multiplex=True)._groups(wanted) == [wanted]


def test_a_call_that_another_thread_interrupts_is_counted_once_in_the_log_of_strace() -> None:
    log = [
        '7 execve("./a", [...], 0x7ff) = 0',
        "7 clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|SIGCHLD) = 8",
        '7 openat(AT_FDCWD, "a", O_RDONLY <unfinished ...>',
        "8 clone3({flags=CLONE_VM|CLONE_THREAD, exit_signal=0}, 88 <unfinished ...>",
        "7 <... openat resumed>) = 3",
        "8 <... clone3 resumed> => {parent_tid=[9]}, 88) = 9",
        '7 creat("b", 0600) = -1 EACCES (Permission denied)',
        "+++ exited with 0 +++",
    ]
    trace = read_trace(log)
    assert (trace.files, trace.threads) == (1, 3)


def test_what_a_new_process_does_before_its_parent_knows_of_it_belongs_to_the_program() -> None:
    log = [
        '7 execve("/usr/bin/mpirun", [...], 0x7ff) = 0',
        '7 openat(AT_FDCWD, "hosts", O_RDONLY) = 3',
        "7 vfork( <unfinished ...>",
        '8 openat(AT_FDCWD, "pipe", O_RDONLY) = 3',
        '8 execve("/home/me/app", [...], 0x7ff) = 0',
        '8 openat(AT_FDCWD, "data", O_RDONLY) = 3',
        "7 <... vfork resumed>) = 8",
        '8 read(3, ""..., 100) = 42',
        '7 read(3, ""..., 100) = 17',
    ]
    trace = read_trace(log)
    assert (trace.threads, trace.files, trace.read, trace.launchers) == (1, 1, 42, {"mpirun"})


def test_a_launcher_whose_ranks_are_elsewhere_gives_no_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    srun = tmp_path / "srun"
    srun.write_text("#!/bin/sh\nread unused < /dev/null\nexit 0\n")
    srun.chmod(0o755)
    with pytest.raises(
        CollectError, match="srun starts its processes where they cannot be followed; put crossperf behind"
    ):
        strace().count([str(srun), "-n", "2", "app"], Runner())


def test_a_command_is_found_by_the_callers_path_under_perf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Called by its path, perf searches its own folder first: another program of the same name would be counted."""
    backend = tracing()
    program = tmp_path / "true"
    program.write_text("#!/bin/sh\n: > ran\nsleep 0.2\n")
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    backend.count(["true"], Runner())
    assert (tmp_path / "ran").exists()


STAND_IN = """#!{python}
# Answers as perf stat does on a processor with counters: no machine of the tests has any.
import json, subprocess, sys
KNOWN = {known}
if "--version" in sys.argv:
    sys.exit(print("perf version 6.1.0"))
split = sys.argv.index("--")
options, command = sys.argv[1:split], sys.argv[split + 1:]
events = [options[i + 1] for i, word in enumerate(options) if word == "-e"]
unknown = [name for name in events if name.removesuffix(":u") not in KNOWN]
if unknown:
    sys.exit("event syntax error: " + unknown[0])
with open({log!r}, "a") as log:
    print(json.dumps([events, command]), file=log)
status = subprocess.run(command).returncode
with open(options[options.index("-o") + 1], "w") as out:
    for name in events:
        value, share = KNOWN[name.removesuffix(":u")]
        for part in name.split("+"):
            row = {{"counter-value": value, "unit": "", "event": part, "event-runtime": 1, "pcnt-running": share}}
            print(json.dumps(row), file=out)
sys.exit(status)
"""


def stand_in(folder: Path, known: dict[str, tuple[str, float]], monkeypatch: pytest.MonkeyPatch) -> Path:
    log = folder / "log"
    program = folder / "perf"
    program.write_text(STAND_IN.format(python=sys.executable, known=known, log=str(log)))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return log


def test_with_hardware_counters_events_are_counted_four_at_a_time_and_unknown_ones_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {name: (str(100.0 * (number + 1)), 100.0) for number, name in enumerate([
        "instructions", "branches", "branch-misses", "L1-dcache-loads", "L1-dcache-load-misses", "page-faults",
        "task-clock", "mem_inst_retired.all_loads", "mem_inst_retired.all_stores",
    ])}  # fmt: skip
    known |= {"L1-dcache-loads": ("5000.0", 100.0), "instructions": ("10000.0", 100.0)}
    log = stand_in(tmp_path, known, monkeypatch)
    backend = PerfBackend("Intel")
    assert backend.why_not() is None
    assert backend.what_not() is None
    found = backend.count(["true", "counted"], Runner())
    executions = [json.loads(line)[0] for line in log.read_text().splitlines() if "counted" in line]
    hardware = [[name for name in events if name.endswith(":u")] for events in executions]
    assert [len(group) for group in hardware] == [4, 3]
    assert "page-faults" in executions[0]
    assert "page-faults" not in executions[1]
    values = counted([found]).values
    assert values["instructions"] == 10000.0
    assert values["control_ratio"] == 0.02
    assert values["cache_miss_ratio"] == 500.0 / 4500.0
    assert values["mem_ratio"] == (800.0 + 900.0) / 10000.0
    assert found.events["l2_rqsts.miss"] is None
    assert any("not offered by this processor" in note and "l2_rqsts.miss" in note for note in found.notes)
    assert any("2 executions" in note for note in found.notes)
    assert any("tracepoints need root" in note for note in found.notes)
    assert "threads" not in values


def test_multiplexed_events_come_from_one_execution_with_their_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = dict.fromkeys(("instructions", "branches", "branch-misses"), ("100.0", 40.0))
    known |= {"L1-dcache-loads": ("<not counted>", 0.0), "L1-dcache-load-misses": ("-5.0", 40.0)}
    known |= {"page-faults": ("7.0", 100.0), "task-clock": ("1.0", 100.0)}
    log = stand_in(tmp_path, known, monkeypatch)
    found = PerfBackend(None, multiplex=True).count(["true", "counted"], Runner())
    assert sum("counted" in line for line in log.read_text().splitlines()) == 1
    assert "branches:u was counted for 40% of the time and scaled by perf" in found.notes
    assert any("came out negative" in note for note in found.notes)
    assert "cache_miss_ratio" not in counted([found]).values


def test_only_the_events_of_the_first_formula_that_a_processor_can_answer_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("ls_rd_blk_c", "dc_hit_in_l2", "ls_rd_blk_cs", "ls_rd_blk_l_hit_x", "ls_rd_blk_l_hit_s", "ls_rd_blk_x")
    zen4 = [f"l2_cache_req_stat.{name}" for name in names]
    generic = ["instructions", "branches", "branch-misses", "L1-dcache-loads", "L1-dcache-load-misses"]
    known = dict.fromkeys([*generic, "page-faults", "task-clock", *zen4], ("100.0", 100.0))
    log = stand_in(tmp_path, known, monkeypatch)
    found = PerfBackend("AMD").count(["true", "counted"], Runner())
    counted_events = [
        name for line in log.read_text().splitlines() if "counted" in line for name in json.loads(line)[0]
    ]
    assert [name for name in counted_events if name.startswith("l2_")] == [f"{name}:u" for name in zen4[:2]]
    assert counted([found]).values["l2_miss_ratio"] == 1.0
    assert not any("ls_rd_blk_cs" in note for note in found.notes)
