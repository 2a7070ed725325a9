from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from crossperf.collect.family import descendants
from crossperf.collect.process import Runner, resolve
from crossperf.errors import CollectError

MEGABYTE = 1 << 20
_PR_SET_DUMPABLE = 4


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


def test_threads_started_are_exact_or_unknown(programs: dict[str, Path]) -> None:
    """On a machine where others start processes too, nobody but a tracer knows."""
    for command, threads in ((["threads", "5", "together"], 6), (["threads", "3"], 4), (["threads", "0"], 1)):
        started = Runner().execute([str(programs[command[0]]), *command[1:]]).threads_started
        assert started in (None, threads)


def test_threads_started_are_unknown_where_something_else_started_meanwhile(programs: dict[str, Path]) -> None:
    other = subprocess.Popen(["sh", "-c", "for i in 1 2 3 4 5 6; do sleep 0.05; done"])
    done = Runner().execute([str(programs["threads"]), "1"])
    other.wait()
    assert done.threads_started is None


def test_page_faults_of_what_only_starts_the_program_are_left_out(programs: dict[str, Path]) -> None:
    pages = MEGABYTE // os.sysconf("SC_PAGE_SIZE")
    bare = Runner().execute([str(programs["children"]), "2"])
    behind = Runner().execute(["timeout", "20", str(programs["children"]), "2"])
    nested = Runner().execute(["sh", "-c", f"timeout 20 {programs['threads']} 1; :"])
    assert bare.minor_faults is not None
    assert bare.minor_faults > 2 * pages
    assert behind.minor_faults == pytest.approx(bare.minor_faults, rel=0.05)
    assert (bare.launchers, behind.launchers, nested.launchers) == ((), ("timeout",), ("timeout",))
    assert (behind.io, nested.io, nested.minor_faults) == (None, None, None)


def test_an_ordinary_user_knows_the_bytes_that_were_read_and_written(programs: dict[str, Path]) -> None:
    """The kernel tells them of a process that ended to root alone; a test that is root gives up its rights first."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o777)
        (folder / "in").write_bytes(b"x" * MEGABYTE)
        # What the test's own folders hide from other users is copied.
        program = shutil.copy(programs["files"], folder)
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                if os.geteuid() == 0:
                    os.setgroups([])
                    os.setresgid(65534, 65534, 65534)
                    os.setresuid(65534, 65534, 65534)
                    # Having been root hides a process from its user, until it executes another file or asks not to be.
                    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)
                done = Runner().execute([str(program), str(folder / "in"), str(folder / "out"), "3"])
                os.write(writer, json.dumps([os.geteuid(), done.status, done.io]).encode())
            finally:
                os._exit(0)
        os.close(writer)
        os.waitpid(child, 0)
        with os.fdopen(reader) as answer:
            user, status, io = json.loads(answer.read())
    assert user != 0
    assert status == "ok"
    assert 0 <= io["wchar"] - 3 * MEGABYTE < 1000
    assert 0 <= io["rchar"] - 3 * MEGABYTE < 20_000


def test_the_last_words_of_a_tool_are_kept_and_a_long_talk_does_not_stop_it() -> None:
    talk = "import sys; sys.stderr.write('x' * 1000000 + '\\nperf: it is over\\n'); sys.exit(3)"
    with pytest.raises(CollectError, match=r"failed under perf: exit status 3 \(perf: it is over\)"):
        Runner().count([sys.executable, "-c", talk], "perf")


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


def test_a_time_limit_ends_what_the_command_started_and_no_other_child_of_the_caller() -> None:
    with subprocess.Popen(["sleep", "60"]) as other:
        done = Runner(0.3).execute(["sh", "-c", "sleep 61 & sleep 61"], quiet=True)
        assert done.status == "timeout after 0.3 s"
        assert other.poll() is None
        names = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in descendants(os.getpid())]
        assert not [name for name in names if b"61" in name]
        other.kill()
        assert other.wait() == -signal.SIGKILL
