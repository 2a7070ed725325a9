"""A platform may be a plain command: executed as a whole for each repeat, without a shell."""

from __future__ import annotations

import hashlib
import json
import signal
import sys
from pathlib import Path

import pytest

from crossperf import campaign
from crossperf.errors import CollectError
from tests.campaign.stand_in import alive, children_of, start, visit, wait_for

SPEC = """
inputs = ["inputs.toml"]
visits = 2
repeats = 2
limit_s = {limit_s}

[platforms.here]
command = {command}
threads = 2
check = "stdout"
"""


def prepare(folder: Path, inputs: str, command: list[str], script: str = "", limit_s: float = 60.0) -> Path:
    (folder / "inputs.toml").write_text(inputs)
    program = folder / "app"
    program.write_text(f"#!{sys.executable}\nimport json, os, subprocess, sys, time\n{script}\n")
    program.chmod(0o755)
    path = folder / "spec.toml"
    path.write_text(SPEC.format(command=json.dumps(command), limit_s=limit_s))
    return path


def test_placeholders_are_filled_in_and_no_shell_sees_the_command(tmp_path: Path) -> None:
    script = f"print(json.dumps(sys.argv[1:] + sys.stdin.readlines()), file=open({str(tmp_path / 'asked')!r}, 'a'))"
    words = ["./{workload}", "--size={size}", "-j{threads}", "{file}", "$HOME; {{{size}}}"]
    spec = campaign.read(prepare(tmp_path, '[app]\nsize = [10]\nfile = ["a b"]\n', words, script))
    visit(spec, tmp_path)
    expected = ["--size=10", "-j2", "a b", "$HOME; {10}"]
    assert list(map(json.loads, (tmp_path / "asked").read_text().splitlines())) == [expected] * 2 * 2
    runs = campaign.assemble(spec, tmp_path)
    assert [(run.app, run.input, run.repeat, run.threads) for run in runs] == [
        ("app", "size=10 file=a b", repeat, 2) for repeat in range(4)
    ]
    assert len({run.measured_in for run in runs}) == 2


def test_the_whole_process_is_timed_and_counted_as_profile_counts_it(tmp_path: Path) -> None:
    script = "time.sleep(float(sys.argv[2])); os.write(1, bytes(int(sys.argv[1])))"
    path = prepare(tmp_path, "[app]\nn = [5000]\ns = [0.2]\n", ["./app", "{n}", "{s}"], script)
    spec = campaign.read(path)
    visit(spec, tmp_path)
    for run in campaign.assemble(spec, tmp_path):
        assert run.runtime_s is not None
        assert 0.2 < run.runtime_s < 10
        assert run.counters["io_bytes_written"] == 5000
        assert (run.counters["page_faults"] or 0) > 100
        assert run.metadata["checksum"] == hashlib.sha256(bytes(5000)).hexdigest()[:16]
        assert str(run.source_tool).startswith("os Linux")


def test_a_command_that_fails_or_takes_too_long_is_a_failed_run_and_the_rest_goes_on(tmp_path: Path) -> None:
    told = tmp_path / "child"
    script = f"""
if sys.argv[1] == "3":
    sys.exit(3)
if sys.argv[1] == "9":
    print(subprocess.Popen(["sleep", "60"]).pid, file=open({str(told)!r}, "w"), flush=True)
    time.sleep(60)
"""
    spec = campaign.read(prepare(tmp_path, "[app]\nn = [1, 3, 9]\n", ["./app", "{n}"], script, limit_s=3.0))
    heard: list[str] = []
    visit(spec, tmp_path, say=heard.append)
    status = {run.input: run.status for run in campaign.assemble(spec, tmp_path)}
    assert status == {"n=1": "ok", "n=3": "exit status 3", "n=9": "timeout after 3 s"}
    assert any(f"app n=3: exit status 3 ({tmp_path}/./app 3)" in text for text in heard)
    assert not alive(int(told.read_text()))
    assert len(campaign.assemble(spec, tmp_path)) == 2 * 2 + 1 + 1


def test_a_command_that_is_not_there_is_named_before_anything_runs(tmp_path: Path) -> None:
    spec = campaign.read(prepare(tmp_path, "[app]\nn = [1]\n", ["./ap", "{n}"]))
    with pytest.raises(CollectError, match=r"/\./ap: no such file"):
        visit(spec, tmp_path)
    assert not (tmp_path / "times.jsonl").exists()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_no_process_is_left_and_a_resume_goes_on_where_it_was(tmp_path: Path, number: signal.Signals) -> None:
    script = """
if sys.argv[1] == "2" and not os.path.exists("again"):
    subprocess.run(["sleep", "60"])
"""
    inputs = "[app]\nn = [1, 2, 3, 4, 5]\n"
    spec_file = prepare(tmp_path, inputs, ["./app", "{n}"], script)
    out = tmp_path / "out"
    process = start(spec_file, out, cwd=tmp_path)
    family: list[int] = []

    def at_the_second() -> bool:
        family[:] = children_of(process.pid)
        return any(Path(f"/proc/{pid}/comm").read_text() == "sleep\n" for pid in family if alive(pid))

    wait_for(at_the_second)
    process.send_signal(number)
    process.communicate(timeout=30)
    assert process.returncode == (-9 if number == signal.SIGKILL else 130)
    wait_for(lambda: not any(map(alive, family)))
    (tmp_path / "again").touch()
    resumed = start(spec_file, out, "--resume", "--visits", "3", cwd=tmp_path)
    printed, errors = resumed.communicate(timeout=60)
    assert resumed.returncode == 0, errors
    assert "5 cells of 5, 30 runs, 0 failed" in printed
