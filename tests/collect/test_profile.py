from __future__ import annotations

import contextlib
import json
import os
import pty
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crossperf import catalog, platforms
from crossperf.collect import summary
from crossperf.collect.backends import backends
from crossperf.collect.process import Execution, Runner
from crossperf.collect.profile import Profile, measure, profile
from crossperf.errors import CollectError, SettingsError
from crossperf.importers.measurement import Measurement, counted, to_run
from crossperf.records import Run
from crossperf.runs import jsonl, read_jsonl
from crossperf.runs.rules import Problem
from crossperf.runs.table import check
from tests.collect.real import need, unavailable

CPU_ROWS = [
    "instructions", "int_ratio", "float_ratio", "mem_ratio", "control_ratio", "independent_ratio",
    "cache_miss_ratio", "branch_miss_ratio", "page_levels", "page_faults", "threads",
    "io_bytes_read", "io_bytes_written", "io_files_opened",
]  # fmt: skip


TRUE = Profile(("true",), "true", "", "p")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return os.environ | {"XDG_CONFIG_HOME": str(tmp_path / "settings")}


def crossperf(*arguments: object, cwd: Path, env: dict[str, str], **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "crossperf", *map(str, arguments)]
    return subprocess.run(
        command, cwd=cwd, env=env, capture_output=True, text=True, timeout=120, check=False, **options
    )


class Fake:
    """A back end that answers from a list: for what happens around back ends, not for what they count."""

    name = "valgrind"

    def __init__(self, answer: Measurement | Exception, why_not: str | None = None) -> None:
        self._answer = answer
        self._why_not = why_not

    def why_not(self) -> str | None:
        return self._why_not

    def count(self, command: Any, runner: Runner) -> Measurement:
        runner.execute(command, quiet=True)
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_profile_keeps_the_repeats_that_ended_and_leaves_no_process(
    tmp_path: Path, environment: dict[str, str], number: signal.Signals
) -> None:
    # The third execution waits for a signal: two are whole by then.
    script = "echo x >> count; if [ $(wc -l < count) -ge 3 ]; then echo $$ > pid; exec sleep 300; fi"
    command = [
        sys.executable,
        "-m",
        "crossperf",
        "profile",
        "--backend",
        "os",
        "--repeats",
        "5",
        "--",
        "sh",
        "-c",
        script,
    ]
    process = subprocess.Popen(command, cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    pid_file = tmp_path / "pid"
    until = time.monotonic() + 30
    while not (pid_file.exists() and pid_file.read_text().strip()):
        assert time.monotonic() < until
        time.sleep(0.02)
    time.sleep(0.1)
    process.send_signal(number)
    _, error = process.communicate(timeout=30)
    assert process.returncode == 128 + number
    assert b"interrupted; what was measured before is kept" in error
    assert [run.status for run in read_jsonl(tmp_path / "runs.jsonl")] == ["ok", "ok"]
    assert not Path(f"/proc/{pid_file.read_text().strip()}").exists()


def test_an_interrupt_while_counting_keeps_the_native_runs(
    tmp_path: Path, environment: dict[str, str], programs: dict[str, Path]
) -> None:
    need("valgrind")
    command = [sys.executable, "-m", "crossperf", "profile", "--repeats", "1", "--backend", "valgrind", "--"]
    process = subprocess.Popen(
        [*command, str(programs["dgemm"]), "400"], cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stderr is not None
    while b"counting with valgrind" not in process.stderr.readline():
        pass
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=30)
    assert process.returncode == 130
    (run,) = read_jsonl(tmp_path / "runs.jsonl")
    assert run.status == "ok"
    assert "page_faults" in run.counters
    assert "instructions" not in run.counters
    assert b"interrupted" in error


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["profile"], "no command was given"),
        (["profile", "--", "nosuchprogram"], "nosuchprogram: no such command on PATH"),
        (["profile", "--repeats", "0", "true"], "repeats: found 0, expected at least 1"),
        (["profile", "--backend", "valgrnd", "true"], "did you mean 'valgrind'"),
        (["profile", "--timeout", "0", "true"], "timeout: found 0, expected seconds above 0"),
        (["profile", "--cache", "D1=1", "true"], "cache: found 'D1=1'"),
        (["profile", "-o", "nowhere/runs.jsonl", "true"], "the folder nowhere does not exist"),
        (["profile", "-o", ".", "true"], "found a folder, expected a file for the runs"),
        (["profile", "-o", "runs.csv", "true"], "found the ending '.csv', expected .jsonl"),
        (["import", "perf", "absent.csv"], "absent.csv: found nothing there"),
        (["import", "prf", "absent.csv"], "did you mean 'perf'"),
        (["platforms", "show", "atlantis"], "no platform 'atlantis' is known"),
    ],
)
def test_bad_input_is_one_sentence_and_writes_nothing(
    tmp_path: Path, environment: dict[str, str], arguments: list[str], sentence: str
) -> None:
    done = crossperf(*arguments, cwd=tmp_path, env=environment)
    assert done.returncode in (1, 2)
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("error: ")
    assert sentence in lines[0]
    assert not list(tmp_path.iterdir())


def test_a_read_only_output_is_refused_before_anything_runs(tmp_path: Path, environment: dict[str, str]) -> None:
    if os.geteuid() == 0:
        output: Path = Path("/sys/kernel/uevent_seqnum")  # not even root may write here
    else:
        output = tmp_path / "runs.jsonl"
        output.touch(mode=0o444)
    done = crossperf("profile", "-o", output, "touch", "ran", cwd=tmp_path, env=environment)
    assert done.returncode == 1
    assert "may not be written" in done.stderr
    assert not (tmp_path / "ran").exists()


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


def test_a_registered_name_of_this_machine_is_taken_for_its_runs(tmp_path: Path) -> None:
    registry = tmp_path / "platforms.json"
    platforms.add(registry, platforms.Platform("mine", "cpu", platforms.facts_of_this_machine()))
    named = profile(["true"], repeats=1, backend="os", registry=registry)
    assert named.runs[0].platform == "mine"
    other = profile(["true"], repeats=1, backend="os", registry=registry, platform="other")
    assert other.runs[0].platform == "other"


def test_this_machine_becomes_a_platform_once_and_is_found_again(tmp_path: Path, environment: dict[str, str]) -> None:
    first = crossperf("profile", "--backend", "os", "true", cwd=tmp_path, env=environment)
    second = crossperf("profile", "--backend", "os", "true", cwd=tmp_path, env=environment)
    assert "added platform" in first.stderr
    assert "added platform" not in second.stderr
    (entry,) = platforms.read(tmp_path / "settings" / "crossperf" / "platforms.json")
    assert {run.platform for run in read_jsonl(tmp_path / "runs.jsonl")} == {entry.name}
    listed = crossperf("platforms", cwd=tmp_path, env=environment)
    assert listed.stdout.split()[0] == entry.name
    crossperf("platforms", "add", "other", "--set", "price_per_hour=2.5", cwd=tmp_path, env=environment)
    same = crossperf("platforms", "compare", entry.name, "other", "--json", "both.json", cwd=tmp_path, env=environment)
    facts = {row["fact"]: row for row in json.loads((tmp_path / "both.json").read_text())["facts"]}
    assert facts["price_per_hour"]["b"] == 2.5
    assert facts["cores"]["ratio"] == 1.0
    assert "cores" in same.stdout


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


class Counting(Fake):
    """A back end that notes when it counted, beside the native executions of a command that does the same."""

    def __init__(self, name: str, log: Path, counters: dict[str, float]) -> None:
        super().__init__(Measurement(name, counters=counters))
        self.name = name
        self._log = log

    def count(self, command: Any, runner: Runner) -> Measurement:
        with self._log.open("a") as log:
            log.write(f"{self.name}\n")
        return super().count(["true"], runner)


def test_repeats_are_spread_between_the_tools_that_count(tmp_path: Path) -> None:
    log = tmp_path / "log"
    command = ("sh", "-c", f"echo native >> {log}")
    tools = [Counting("first", log, {"instructions": 1.0}), Counting("second", log, {"int_ratio": 0.5})]
    for repeats, order in (
        (1, "native first second"),
        (3, "native first native second native"),
        (5, "native native first native native second native"),
    ):
        log.unlink(missing_ok=True)
        result = measure(replace(TRUE, command=command), tools, repeats=repeats)
        assert log.read_text().split() == order.split()
        assert len({run.started for run in result.runs}) == repeats
        assert [run.started for run in result.runs] == sorted(str(run.started) for run in result.runs)


def test_counting_ends_at_its_limit_and_what_was_counted_is_kept() -> None:
    class Slow(Fake):
        name = "slow"

        def count(self, command: Any, runner: Runner) -> Measurement:
            runner.count(["sleep", "30"], "slow")
            raise AssertionError

    class After(Fake):
        name = "after"

    first = Counting("first", Path(os.devnull), {"instructions": 7.0})
    started = time.monotonic()
    result = measure(TRUE, [first, Slow(Measurement("slow")), After(Measurement("after"))], count_limit=1.0)
    assert time.monotonic() - started < 10
    assert result.runs[0].counters["instructions"] == 7.0
    assert result.not_counted["slow"] == "not finished within the 1 s that counting is limited to"
    assert "counting is limited to 1 s" in result.not_counted["after"]
    assert len(result.runs) == 3


def test_a_tool_that_would_take_far_longer_than_the_limit_is_tried_only_where_it_is_asked_for() -> None:
    class OneSecond(Runner):
        """Whatever the machine, a command takes a second of its processor: a minute under valgrind."""

        def execute(self, *arguments: Any, **options: Any) -> Execution:
            return replace(super().execute(*arguments, **options), wall_s=1.0, user_s=1.0, system_s=0.0)

    heard: list[str] = []
    valgrind = Fake(Measurement("valgrind", {"Ir": 5.0}))
    auto = measure(TRUE, [valgrind], repeats=1, count_limit=0.2, runner=OneSecond(), say=heard.append)
    assert auto.not_counted["valgrind"].startswith("would take about ")
    assert heard == []
    asked = measure(TRUE, [valgrind], "valgrind", repeats=1, count_limit=5.0, runner=OneSecond(), say=heard.append)
    assert [each.tool for each in asked.measurements] == ["valgrind"]
    assert len(heard) == 1
    assert "times as long; Ctrl-C keeps the runtimes" in heard[0]


def test_quick_uses_perf_alone_and_is_no_error_where_perf_does_not_work(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    done = crossperf("profile", "--quick", "true", cwd=tmp_path, env=environment)
    assert done.returncode == 0
    assert "counting with valgrind" not in done.stderr
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "true").symlink_to(shutil.which("true") or "true")
    without = crossperf("profile", "--quick", "true", cwd=tmp_path, env=environment | {"PATH": str(tmp_path / "bin")})
    assert without.returncode == 0
    assert "perf: perf is not installed" in without.stderr
    both = crossperf("profile", "--quick", "--backend", "os", "true", cwd=tmp_path, env=environment)
    assert "--quick: found beside --backend os" in both.stderr


def test_the_old_name_of_the_limit_still_works_and_is_not_shown(tmp_path: Path, environment: dict[str, str]) -> None:
    wrong = crossperf("profile", "--count-timeout", "0", "true", cwd=tmp_path, env=environment)
    assert "--count-limit: found 0, expected seconds above 0" in wrong.stderr
    assert "--count-timeout" not in crossperf("profile", "--help", cwd=tmp_path, env=environment).stdout


def test_facts_on_stdout_are_not_mixed_with_what_the_command_prints(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    arguments = ("profile", "--backend", "os", "--repeats", "1", "--json", "-", "echo", "hello")
    done = crossperf(*arguments, cwd=tmp_path, env=environment)
    assert json.loads(done.stdout)["runs"][0]["app"] == "echo"
    assert done.stderr.startswith("hello\n")


def at_a_terminal(
    command: list[str], cwd: Path, env: dict[str, str], ctrl_c_at: bytes | None = None
) -> tuple[str, int]:
    """Return what a command shows at a terminal and how it ended; Ctrl-C comes once a text was shown."""
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(cwd)
        os.execve(command[0], command, env)  # noqa: S606
    shown = b""
    with contextlib.suppress(OSError):
        while data := os.read(terminal, 4096):
            shown += data
            if ctrl_c_at and ctrl_c_at in shown:
                os.write(terminal, b"\x03")
                ctrl_c_at = None
    _, status = os.waitpid(process, 0)
    return shown.decode(), os.waitstatus_to_exitcode(status)


def test_at_a_terminal_a_line_tells_how_far_counting_is_and_ctrl_c_keeps_the_runtimes(
    tmp_path: Path, environment: dict[str, str], programs: dict[str, Path]
) -> None:
    need("valgrind")
    command = [
        sys.executable,
        "-m",
        "crossperf",
        "profile",
        "--backend",
        "valgrind",
        "--",
        str(programs["dgemm"]),
        "400",
    ]
    shown, status = at_a_terminal(command, tmp_path, environment, ctrl_c_at=b"valgrind: 2 s of about ")
    assert status == 130
    assert "\r\x1b[Kvalgrind: 1 s of about " in shown
    assert "interrupted; what was measured before is kept" in shown
    assert "valgrind: interrupted" in shown
    kept = read_jsonl(tmp_path / "runs.jsonl")
    assert kept
    assert {run.status for run in kept} == {"ok"}


def test_an_endless_command_that_is_interrupted_leaves_nothing(tmp_path: Path, environment: dict[str, str]) -> None:
    command = [sys.executable, "-m", "crossperf", "profile", "--", "sh", "-c", "echo up; while :; do :; done"]
    shown, status = at_a_terminal(command, tmp_path, environment, ctrl_c_at=b"up\r\n")
    assert status == 130
    assert "interrupted before the first execution ended; nothing was measured" in shown
    assert not (tmp_path / "runs.jsonl").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--repeat", "5", "true"], "No such option '--repeat'. Did you mean '--repeats'?"),
        (["--platform", "", "true"], "--platform: found an empty name"),
        (["--app", " ", "true"], "--app: found an empty name"),
        (["--count-limit", "-1", "true"], "--count-limit: found -1, expected seconds above 0"),
        (["--model", "nowhere", "true"], "nowhere: found no model.json that names platforms"),
    ],
)
def test_a_wrong_option_is_named_in_one_sentence(
    tmp_path: Path, environment: dict[str, str], arguments: list[str], sentence: str
) -> None:
    done = crossperf("profile", *arguments, cwd=tmp_path, env=environment)
    assert done.returncode in (1, 2)
    assert len(done.stderr.strip().splitlines()) == 1
    assert sentence in done.stderr


def test_an_option_of_the_command_is_its_own(tmp_path: Path, environment: dict[str, str]) -> None:
    done = crossperf("profile", "--backend", "os", "echo", "--repeat", "-n", cwd=tmp_path, env=environment)
    assert done.stdout == "--repeat -n\n"


def executed(*wall_s: float) -> Profile:
    execution = Runner().execute(["true"])
    return replace(TRUE, executions=tuple(replace(execution, wall_s=seconds) for seconds in wall_s))


def test_each_run_is_handed_over_as_it_ends_under_the_id_that_it_keeps(tmp_path: Path) -> None:
    kept: list[Sequence[Run]] = []
    names = {"platform": "here", "registry": tmp_path / "platforms.json"}
    result = profile(["true"], repeats=3, backend="os", keep=kept.append, **names)
    assert [[run.run_id for run in runs] for runs in kept] == [[run.run_id] for run in result.runs]
    assert len({run.run_id for run in result.runs}) == 3
    assert {run.platform for runs in kept for run in runs} == {"here"}


def test_what_a_tool_has_counted_is_handed_over_for_all_runs_before_it() -> None:
    seen: list[tuple[int, int, int]] = []

    def note(result: Profile, first: int) -> None:
        seen.append((len(result.executions), len(result.measurements), first))

    counts = Fake(Measurement("valgrind", {"Ir": 5.0}))
    measure(TRUE, [counts], "valgrind", repeats=2, on_change=note)
    assert seen == [(1, 0, 0), (1, 1, 0), (2, 1, 1)]


def test_repeats_that_differ_by_more_than_a_tenth_are_called_unstable() -> None:
    def warnings(*wall_s: float) -> list[str]:
        return [line for line in summary.lines(executed(*wall_s)) if line.startswith("unstable: ")]

    # Standard deviations over means: 1/10 = 0.1 exactly, then 1.2/10.
    assert warnings(9.0, 10.0, 11.0) == []
    assert "standard deviation is 12% of the mean" in warnings(8.8, 10.0, 11.2)[0]
    assert "the machine is busy" in warnings(8.8, 10.0, 11.2)[0]
    assert "the command is short" in warnings(0.01, 0.02, 0.03)[0]
    assert warnings(5.0) == []


def test_one_reason_takes_one_line_and_gpus_are_mentioned_once() -> None:
    reasons = {
        "valgrind": "the command failed under valgrind: killed by SIGILL (valgrind: cannot go on)",
        "papi": "no hardware counters here, as on most virtual machines (Event does not exist)",
        "ncu": "no NVIDIA GPU here",
        "cupti": "no NVIDIA GPU here",
        "rocprof": "no AMD GPU here",
        "perf": "perf is not installed",
        "strace": "strace is not installed",
    }
    lines = summary.lines(replace(executed(1.0), not_counted=reasons))
    missing = lines[next(at for at, line in enumerate(lines) if line.startswith("missing: ")) :]
    assert [sum(reason in line for line in missing) for reason in ("SIGILL", "perf is not installed", "GPU")] == [
        1,
        1,
        1,
    ]
    assert len(missing) <= 9
    assert not any("use the back end" in line for line in missing)


def model_folder(folder: Path, *names: str) -> Path:
    folder.mkdir()
    (folder / "model.json").write_text(json.dumps({"format": 3, "platforms": names}))
    return folder


def test_this_machine_takes_the_name_that_the_model_has_for_it(tmp_path: Path, environment: dict[str, str]) -> None:
    registry = tmp_path / "settings" / "crossperf" / "platforms.json"
    facts = platforms.facts_of_this_machine()
    platforms.add(registry, platforms.Platform("old-name", "cpu", facts))
    platforms.add(registry, platforms.Platform("cluster-a", "cpu", facts))
    quick = ("profile", "--backend", "os", "--repeats", "1")
    # The registry's first match is the name without a model.
    assert "on old-name" in crossperf(*quick, "true", cwd=tmp_path, env=environment).stderr
    model_folder(tmp_path / "model", "cluster-a", "cluster-b")
    default = crossperf(*quick, "true", cwd=tmp_path, env=environment)
    assert "this machine is cluster-a to model" in default.stderr
    assert read_jsonl(tmp_path / "runs.jsonl")[-1].platform == "cluster-a"
    other = model_folder(tmp_path / "other", "cluster-b", "cluster-c")
    unknown = crossperf(*quick, "--model", other, "true", cwd=tmp_path, env=environment)
    assert "does not know this machine, old-name; it knows cluster-b, cluster-c. If it is one" in unknown.stderr
    named = crossperf(*quick, "--platform", "mine", "true", cwd=tmp_path, env=environment)
    assert "on mine: " in named.stderr
    assert "cluster-a" not in named.stderr


def test_a_machine_that_is_several_platforms_is_told_apart_by_its_threads(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    registry = tmp_path / "settings" / "crossperf" / "platforms.json"
    facts = platforms.facts_of_this_machine()
    for threads in (1, 2):
        entry = platforms.Platform(f"here-{threads}t", "cpu", replace(facts, more={"threads": threads}))
        platforms.add(registry, entry)
    model_folder(tmp_path / "model", "here-1t", "here-2t")
    environment = {name: text for name, text in environment.items() if name != "OMP_NUM_THREADS"}
    quick = ("profile", "--backend", "os", "--repeats", "1")
    assert crossperf(*quick, "--threads", "2", "true", cwd=tmp_path, env=environment).returncode == 0
    assert read_jsonl(tmp_path / "runs.jsonl")[-1].platform == "here-2t"
    unclear = crossperf(*quick, "true", cwd=tmp_path, env=environment)
    assert "this machine is here-1t or here-2t to model; choose with --threads or --platform" in unclear.stderr


def test_a_gpu_that_is_not_here_is_not_added_as_this_machine(tmp_path: Path, environment: dict[str, str]) -> None:
    if platforms.facts_of_this_machine().gpus:
        pytest.skip("this machine has a GPU")
    refused = crossperf("platforms", "add", "h200", "--class", "gpu", cwd=tmp_path, env=environment)
    assert refused.returncode == 1
    assert "h200: this machine shows no GPU" in refused.stderr
    given = ("--set", "gpu_model=NVIDIA H200", "--set", "price_per_hour=4")
    added = crossperf("platforms", "add", "h200", "--class", "gpu", *given, cwd=tmp_path, env=environment)
    assert added.returncode == 0
    (entry,) = platforms.read(tmp_path / "settings" / "crossperf" / "platforms.json")
    assert entry.facts.to_json() == {"gpu_model": "NVIDIA H200", "price_per_hour": 4}
    arguments = ("--backend", "os", "--platform", "a100", "--platform-class", "gpu", "true")
    profiled = crossperf("profile", *arguments, cwd=tmp_path, env=environment)
    assert "platform a100 was not added: this machine shows no GPU" in profiled.stderr


def test_the_ranks_of_a_launcher_and_the_name_of_its_program_are_recorded(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    need("mpirun")
    environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    command = ("mpirun", "--oversubscribe", "-n", "2", "sleep", "0.1")
    crossperf("profile", "--backend", "os", "--repeats", "1", "--", *command, cwd=tmp_path, env=environment)
    (run,) = read_jsonl(tmp_path / "runs.jsonl")
    assert (run.app, run.input, run.ranks) == ("sleep", "0.1 ranks=2", 2)
    assert "io_bytes_read" not in run.counters
    assert run.metadata["missing"]["io_bytes_read"]
