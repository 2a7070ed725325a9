from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from crossperf.collect.process import Runner, resolve
from crossperf.errors import CollectError

MEGABYTE = 1 << 20


def script(code: str, *arguments: str, stdin: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    """Run code that has `Runner` at hand in a process of its own, with its own standard input."""
    head = "import sys\nfrom crossperf.collect.process import Runner\nrunner = Runner()\n"
    return subprocess.run(
        [sys.executable, "-c", head + code, *arguments], input=stdin, capture_output=True, timeout=60, check=False
    )


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.parametrize(
    ("command", "status", "exit_status"),
    [
        (["true"], "ok", 0),
        (["sh", "-c", "exit 3"], "exit status 3", 3),
        (["sh", "-c", "kill -SEGV $$"], "killed by SIGSEGV", 139),
        (["sh", "-c", "kill -KILL $$"], "killed by SIGKILL", 137),
    ],
)
def test_an_execution_tells_how_the_command_ended(command: list[str], status: str, exit_status: int) -> None:
    done = Runner().execute(command)
    assert (done.status, done.exit_status) == (status, exit_status)


def test_wall_time_is_that_of_the_command() -> None:
    done = Runner().execute(["sleep", "0.3"])
    assert 0.3 <= done.wall_s < 0.6
    assert done.user_s + done.system_s < 0.1


def test_bytes_read_and_written_are_those_of_the_program_and_its_children(
    programs: dict[str, Path], tmp_path: Path
) -> None:
    source = tmp_path / "in"
    source.write_bytes(b"x" * MEGABYTE)
    files = str(programs["files"])
    none = Runner().execute([files, str(source), str(tmp_path / "out"), "0"])
    three = Runner().execute([files, str(source), str(tmp_path / "out"), "3"])
    assert none.io is not None
    assert three.io is not None
    assert three.io["rchar"] - none.io["rchar"] == 3 * MEGABYTE
    assert three.io["wchar"] - none.io["wchar"] == 3 * MEGABYTE
    command = '"$1" "$2" "$3" 1; "$1" "$2" "$3" 1'
    twice = Runner().execute(["sh", "-c", command, "sh", files, str(source), str(tmp_path / "out")])
    assert twice.io is not None
    assert 0 <= twice.io["wchar"] - 2 * MEGABYTE < 1000


def test_page_faults_of_children_are_counted(programs: dict[str, Path]) -> None:
    pages = MEGABYTE // os.sysconf("SC_PAGE_SIZE")
    faults = [Runner().execute([str(programs["children"]), str(k)]).minor_faults for k in (0, 4)]
    assert 4 * pages <= faults[1] - faults[0] < 4 * pages + 400


def test_the_most_threads_at_a_time_are_seen_while_they_sleep(programs: dict[str, Path]) -> None:
    assert Runner().execute([str(programs["threads"]), "5", "together"]).peak_threads == 6
    assert Runner().execute([str(programs["threads"]), "3"]).peak_threads == 2


def test_peak_memory_is_that_of_the_command_and_not_of_its_parent() -> None:
    grow = Runner().execute([sys.executable, "-c", "import time; x = b'x' * (300 << 20); time.sleep(0.2)"])
    small = Runner().execute(["sleep", "0.2"])
    assert grow.max_rss_bytes is not None
    assert small.max_rss_bytes is not None
    assert 300 * MEGABYTE < grow.max_rss_bytes < 340 * MEGABYTE
    assert small.max_rss_bytes < 8 * MEGABYTE


def test_output_of_the_command_is_untouched_and_a_quiet_execution_prints_nothing() -> None:
    done = script("runner.execute(['sh', '-c', 'echo out; echo err >&2'])\nrunner.execute(['echo', 'no'], quiet=True)")
    assert (done.stdout, done.stderr) == (b"out\n", b"err\n")


def test_each_execution_reads_the_same_piped_input_from_its_start() -> None:
    data = os.urandom(300_000)
    done = script("for _ in range(3): runner.execute(['cat'])", stdin=data)
    assert done.stdout == 3 * data


def test_each_execution_reads_the_same_file_from_where_the_caller_stood(tmp_path: Path) -> None:
    path = tmp_path / "input"
    path.write_text("first\nsecond\n")
    code = "from crossperf.collect.process import Runner\nr = Runner()\nfor _ in range(2): r.execute(['cat'])"
    with path.open() as file:
        os.lseek(file.fileno(), len("first\n"), os.SEEK_SET)
        done = subprocess.run([sys.executable, "-c", code], stdin=file, capture_output=True, timeout=60, check=True)
    assert done.stdout == b"second\nsecond\n"


def test_a_pipe_that_stays_open_and_unread_keeps_nobody_waiting() -> None:
    reader, writer = os.pipe()
    try:
        code = "from crossperf.collect.process import Runner\nr = Runner()\n"
        code += "for _ in range(2): print(r.execute(['true']).status)"
        done = subprocess.run([sys.executable, "-c", code], stdin=reader, capture_output=True, timeout=20, check=True)
    finally:
        os.close(reader)
        os.close(writer)
    assert done.stdout == b"ok\nok\n"


def test_a_time_limit_ends_the_command_and_all_that_it_started() -> None:
    code = (
        "runner.time_limit_s = 0.5\n"
        "done = runner.execute(['sh', '-c', 'sleep 300 & echo $!; exec sleep 300'])\n"
        "print(done.status, done.exit_status)"
    )
    lines = script(code).stdout.decode().splitlines()
    assert lines[1] == "timeout after 0.5 s 124"
    assert not alive(int(lines[0]))


def test_a_command_that_ignores_the_polite_signal_is_killed() -> None:
    code = (
        "runner.time_limit_s = 0.3\n"
        "print(runner.execute(['sh', '-c', 'trap \"\" TERM; echo $$; sleep 300; sleep 300']).status)"
    )
    lines = script(code).stdout.decode().splitlines()
    assert lines[1].startswith("timeout")
    assert not alive(int(lines[0]))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_is_handed_on_and_leaves_no_orphan(number: signal.Signals) -> None:
    code = (
        "from crossperf.collect.process import Runner\nr = Runner()\n"
        "d = r.execute(['sh', '-c', 'sleep 300 & echo $!; wait'])\nprint(d.status, r.interrupted)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    assert process.stdout is not None
    sleeper = int(process.stdout.readline())
    time.sleep(0.2)
    process.send_signal(number)
    rest, _ = process.communicate(timeout=20)
    assert rest.decode().split() == ["killed", "by", number.name, "True"]
    assert not alive(sleeper)


def test_a_signal_that_the_command_handles_is_its_own_affair() -> None:
    code = (
        "from crossperf.collect.process import Runner\nr = Runner()\n"
        "print(r.execute(['sh', '-c', 'trap \"echo got it; exit 0\" USR1; echo up; sleep 0.1; sleep 2']).status)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    process.send_signal(signal.SIGUSR1)
    rest, _ = process.communicate(timeout=20)
    assert rest == b"got it\nok\n"


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ([], "no command was given"),
        (["no-such-command-here"], "no such command on PATH"),
        (["slep"], "did you mean 'sleep'"),
        (["./no/such/file"], "no such file"),
        (["/usr"], "found a folder"),
    ],
)
def test_a_command_that_is_not_there_is_named_in_one_sentence(command: list[str], sentence: str) -> None:
    with pytest.raises(CollectError, match=sentence):
        resolve(command)


def test_a_file_that_may_not_or_cannot_be_executed_is_named_with_what_to_do(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("no program")
    with pytest.raises(CollectError, match=r"chmod \+x"):
        resolve([str(text)])
    text.chmod(0o755)
    with pytest.raises(CollectError, match=r"cannot be started \(Exec format error\)"):
        Runner().execute([str(text)])
