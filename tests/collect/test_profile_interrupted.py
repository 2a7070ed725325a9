"""A profile that is interrupted keeps what was measured, and leaves no process."""

from __future__ import annotations

import contextlib
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from crossperf.runs import read_jsonl
from tests.collect.real import need


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
