"""A command profiled: its runs, what they hold, and tools that fail."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crossperf import catalog, platforms
from crossperf.collect import summary
from crossperf.collect.backends import backends
from crossperf.collect.process import Runner
from crossperf.collect.profile import measure, profile
from crossperf.errors import CollectError, SettingsError
from crossperf.importers.measurement import Measurement, counted, to_run
from crossperf.runs import jsonl, read_jsonl
from crossperf.runs.rules import Problem
from crossperf.runs.table import check
from tests.collect.profiling import TRUE, Fake, crossperf
from tests.collect.real import need, unavailable

CPU_ROWS = [
    "instructions", "int_ratio", "float_ratio", "mem_ratio", "control_ratio", "independent_ratio",
    "cache_miss_ratio", "branch_miss_ratio", "page_levels", "page_faults", "threads",
    "io_bytes_read", "io_bytes_written", "io_files_opened",
]  # fmt: skip


def test_every_cpu_row_of_table_one_comes_from_one_command(
    programs: dict[str, Path], tmp_path: Path, environment: dict[str, str]
) -> None:
    need("qemu-x86_64", "gcc", "perf")
    done = crossperf("profile", "--repeats", "2", "--", programs["dgemm"], "40", cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    if "tracepoints need root" in done.stderr:
        need("strace")
    runs = read_jsonl(tmp_path / "runs.jsonl")
    assert [run.repeat for run in runs] == [0, 1]
    for run in runs:
        assert set(CPU_ROWS) <= {name for name, value in run.counters.items() if value is not None}
        assert run.runtime_s is not None
        assert (run.app, run.input, run.platform_class) == ("dgemm", "40", "cpu")
        assert run.host
        assert run.started
        assert run.metadata["command"] == [str(programs["dgemm"]), "40"]
        tools = {tool["tool"]: tool for tool in run.metadata["tools"]}
        assert tools["qemu"]["version"]
        assert tools["qemu"]["slowdown"] > 1
        assert tools["qemu"]["command"][-2:] == [str(programs["dgemm"]), "40"]
        assert "valgrind" not in tools
        assert set(run.metadata["measured_by"]) == set(run.counters)
        assert run.metadata["events"]["qemu"]["qemu.instructions"] == run.counters["instructions"]
    assert "missing: " in done.stderr
    assert re.search(r"^qemu \d+\.", done.stderr, re.MULTILINE)


def test_a_second_profile_of_the_same_workload_goes_on_counting_its_repeats(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    for _ in range(2):
        crossperf("profile", "--backend", "os", "--repeats", "2", "true", cwd=tmp_path, env=environment)
    assert [run.repeat for run in read_jsonl(tmp_path / "runs.jsonl")] == [0, 1, 2, 3]
    assert crossperf("runs", "check", "runs.jsonl", cwd=tmp_path, env=environment).returncode == 0


def test_output_input_and_status_of_the_command_stay_its_own(tmp_path: Path, environment: dict[str, str]) -> None:
    script = "tr a-z A-Z; echo to stderr >&2; exit 7"
    done = crossperf("profile", "--", "sh", "-c", script, cwd=tmp_path, env=environment, input="text")
    assert done.stdout == "TEXT"
    assert done.stderr.startswith("to stderr\n")
    assert done.returncode == 7


@pytest.mark.parametrize(
    ("script", "options", "status", "returncode"),
    [
        ("exit 3", [], "exit status 3", 3),
        ("kill -SEGV $$", [], "killed by SIGSEGV", 139),
        ("sleep 60", ["--timeout", "0.3"], "timeout after 0.3 s", 124),
    ],
)
def test_a_failed_command_is_recorded_as_a_failed_run(
    tmp_path: Path, environment: dict[str, str], script: str, options: list[str], status: str, returncode: int
) -> None:
    done = crossperf("profile", *options, "--", "sh", "-c", script, cwd=tmp_path, env=environment)
    assert done.returncode == returncode
    assert f"failed: {status}" in done.stderr
    (run,) = read_jsonl(tmp_path / "runs.jsonl")
    assert run.status == status
    assert crossperf("runs", "check", "runs.jsonl", cwd=tmp_path, env=environment).returncode == 0


def test_an_exit_status_that_is_a_result_is_no_failure_where_the_user_says_so(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    (tmp_path / "a").write_text("1\n")
    (tmp_path / "b").write_text("2\n")
    command = ("--backend", "os", "--repeats", "2", "--", "diff", "a", "b")
    refused = crossperf("profile", *command, cwd=tmp_path, env=environment)
    assert "failed: exit status 1 (if that is a result and no failure, add --success 0,1)" in refused.stderr
    done = crossperf("profile", "--success", "0,1", *command, cwd=tmp_path, env=environment)
    assert (done.returncode, done.stdout) == (1, "1c1\n< 1\n---\n> 2\n")
    assert [run.status for run in read_jsonl(tmp_path / "runs.jsonl")] == ["exit status 1", "ok", "ok"]


def test_exit_statuses_of_success_are_numbers(tmp_path: Path, environment: dict[str, str]) -> None:
    done = crossperf("profile", "--success", "0,one", "--", "true", cwd=tmp_path, env=environment)
    assert (done.returncode, "--success: found '0,one', expected exit statuses" in done.stderr) == (1, True)


def test_the_list_says_of_each_back_end_whether_it_works_and_why_not(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    done = crossperf("profile", "--list", cwd=tmp_path, env=environment)
    lines = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert list(lines) == ["os", "ncu", "cupti", "rocprof", "perf", "papi", "strace", "qemu", "valgrind"]
    assert all(word.startswith(("works", "no: ")) for word in lines.values())


def test_a_tool_that_fails_is_named_and_the_others_still_count(tmp_path: Path) -> None:
    broken = Fake(CollectError("it fell over"))
    result = measure(TRUE, [broken])
    assert result.not_counted == {"valgrind": "it fell over"}
    assert result.why_missing("independent_ratio") == "valgrind: it fell over"
    assert result.runs[0].status == "ok"


def test_a_tool_that_adds_nothing_is_left_out_and_one_that_was_asked_for_is_not() -> None:
    full = Measurement("first", counters={name: 1.0 for name in catalog.COUNTERS if name != "warp_blocks"})

    class First(Fake):
        name = "first"

    tools = [First(full), Fake(Measurement("valgrind", {"Ir": 5.0}))]
    auto = measure(TRUE, tools)
    assert [found.tool for found in auto.measurements] == ["first"]
    assert "other tools counted" in auto.not_counted["valgrind"]
    asked = measure(TRUE, tools, "valgrind")
    assert [found.tool for found in asked.measurements] == ["valgrind"]


def test_a_back_end_that_was_asked_for_and_does_not_work_is_an_error() -> None:
    with pytest.raises(CollectError, match=r"backend: valgrind does not work here: not today\. Fix that"):
        measure(TRUE, [Fake(Measurement("valgrind"), why_not="not today")], "valgrind")


def test_a_command_that_launched_kernels_belongs_to_the_gpu() -> None:
    executions = (Runner().execute(["true"]),)
    kernels = Measurement("ncu", counters={"warp_blocks": 4.0})
    gpu = replace(TRUE, executions=executions, measurements=(kernels,))
    assert gpu.platform_class == "gpu"
    assert replace(TRUE, executions=executions).platform_class == "cpu"
    assert gpu.runs[0].platform_class == "gpu"


def test_where_two_tools_know_a_counter_hardware_is_believed_before_simulation() -> None:
    simulated = Measurement("valgrind", {"Ir": 90.0})
    hardware = Measurement("perf", {"instructions:u": 100.0})
    found = counted([simulated, hardware])
    assert found.values["instructions"] == 100.0
    assert found.measured_by["instructions"] == "perf"


def test_columns_stand_above_what_a_measurement_tells_of_itself() -> None:
    run = to_run([Measurement("x", facts={"app": "file", "input": "1", "platform": "p", "color": "red"})], app="mine")
    assert (run.app, run.input, run.metadata["color"]) == ("mine", "1", "red")


def test_the_interval_of_a_median_holds_it_at_least_95_times_in_100() -> None:
    """By simulation: the order statistics must bracket the true median of a skewed law."""
    draw = random.Random(3)  # noqa: S311
    inside = 0
    for _ in range(2000):
        low, high, kind = summary.interval([draw.expovariate(1.0) for _ in range(11)])
        assert kind == "95 % interval"
        inside += low <= 0.693147 <= high
    assert 0.95 <= inside / 2000 < 0.995


def test_settings_out_of_range_are_named() -> None:
    with pytest.raises(SettingsError, match="repeats: found 0, expected at least 1"):
        profile(["true"], repeats=0)
    with pytest.raises(SettingsError, match="timeout: found 0, expected seconds above 0"):
        profile(["true"], timeout=0)


def test_a_command_alone_is_enough_to_profile_it(programs: dict[str, Path], tmp_path: Path) -> None:
    registry = tmp_path / "platforms.json"
    result = profile([str(programs["dgemm"]), "40"], registry=registry)
    facts = platforms.facts_of_this_machine()
    assert [run.repeat for run in result.runs] == [0, 1, 2]
    assert {(run.app, run.input, run.platform) for run in result.runs} == {("dgemm", "40", platforms.name_for(facts))}
    assert result.runs is result.runs  # the ids of runs stay
    assert result.platform.facts == facts
    assert not registry.exists()
    assert len(repr(result).splitlines()) <= 10
    if shutil.which("valgrind"):
        # 40 x 40 x 40 multiplications and additions, and what surrounds them.
        assert result.runs[0].counters["instructions"] > 2 * 40**3
    assert check_rows(tmp_path, result.runs) == []


def check_rows(folder: Path, runs: Any) -> list[Problem]:
    jsonl.append(folder / "runs.jsonl", runs)
    return check(folder / "runs.jsonl")


def test_perf_files_are_imported_with_names_from_the_command_line(tmp_path: Path, environment: dict[str, str]) -> None:
    data = Path(__file__).parents[1] / "data" / "perf" / "software.csv"
    lacking = crossperf("import", "auto", data, cwd=tmp_path, env=environment)
    assert "found no app and no input and no platform" in lacking.stderr
    names = ["--app", "ls", "--input", "root", "--platform", "vm"]
    done = crossperf("import", "auto", data, *names, cwd=tmp_path, env=environment)
    assert done.returncode == 0
    (run,) = read_jsonl(tmp_path / "runs.jsonl")
    assert (run.app, run.platform, run.counters) == ("ls", "vm", {"page_faults": 311.0})
    assert run.runtime_s == pytest.approx(0.258115184)


MELT = """units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 4 0 4 0 4
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 3.0 87287 loop geom
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
fix 1 all nve
run 20
"""


@pytest.mark.slow
def test_qemu_and_valgrind_agree_on_a_real_application(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """LAMMPS as Debian ships it, by two emulators and two disassemblers that share nothing."""
    need("valgrind", "qemu-x86_64", "lmp", "gcc")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT", "1")
    monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
    (tmp_path / "in.melt").write_text(MELT)
    command = ["lmp", "-in", "in.melt", "-log", "none", "-screen", "none"]
    (valgrind,) = [tool for tool in backends(platforms.facts_of_this_machine()) if tool.name == "valgrind"]
    if why_not := valgrind.why_not():
        unavailable(why_not)
    events = valgrind.count(command, Runner()).events

    plugin = tmp_path / "count.so"
    source = Path(__file__).parent / "programs" / "qemu_count.c"
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", str(plugin), str(source)], check=True)
    monkeypatch.setenv("QEMU_COUNT_FILE", str(tmp_path / "counts"))
    program = shutil.which("lmp") or "lmp"
    subprocess.run(
        ["qemu-x86_64", "-plugin", str(plugin), program, *command[1:]], check=True, capture_output=True, timeout=300
    )
    rows = [tuple(map(int, line.split())) for line in (tmp_path / "counts").read_text().splitlines()]
    total, floats = max(rows)
    assert events["Ir"] == pytest.approx(total, rel=0.05)
    assert events["mix.float"] == pytest.approx(floats, rel=0.001)
