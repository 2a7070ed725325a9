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
from crossperf.campaign import log
from crossperf.collect.process import Runner
from crossperf.errors import SettingsError
from tests.collect.real import need

SPEC = """
visits = 2
repeats = 2

[[programs]]
name = "count"
command = ["./count", "{n}", "{input}", "{threads}"]
inputs = ["n=3", "n=4 fast"]
backend = "os"

[platforms.here]
threads = 2
"""
COUNT = """#!/bin/sh
echo "$@" >> {asked}
[ "$1" = 4 ] && echo "too fast" >&2 && exit 9
exit 0
"""


def prepare(folder: Path, spec: str = SPEC) -> campaign.Spec:
    script = folder / "count"
    script.write_text(COUNT.format(asked=folder / "asked"))
    script.chmod(0o755)
    (folder / "spec.toml").write_text(spec)
    return campaign.read(folder / "spec.toml")


def test_programs_are_measured_here_too_and_a_failure_has_its_last_words(tmp_path: Path) -> None:
    spec = prepare(tmp_path)
    campaign.visit(spec, [spec.mode("here")], tmp_path)
    runs = campaign.assemble(spec, tmp_path)
    assert [(run.app, run.input, run.status, run.repeat) for run in runs] == [
        *(("count", "n=3", "ok", number) for number in range(4)),
        ("count", "n=4 fast", "exit status 9 (too fast)", 0),
    ]
    # What never ended is tried once a start; each word of an input is a word of the command.
    lines = (tmp_path / "asked").read_text().splitlines()
    assert sorted(lines) == ["3 n=3 2"] * 4 + ["4 n=4 fast 2"]
    assert {run.threads for run in runs} == {2}


def test_programs_are_counted_in_their_first_visit_alone(tmp_path: Path) -> None:
    need("valgrind")
    pytest.importorskip("capstone")
    spec = prepare(tmp_path, SPEC.replace('"os"', '"valgrind"').replace(', "n=4 fast"', ""))
    campaign.visit(spec, [spec.mode("here")], tmp_path)
    visits = log.timed(tmp_path)
    assert [[own.tool for own in visit.measurements] for visit in visits] == [["valgrind"], []]
    runs = campaign.assemble(spec, tmp_path)
    assert len(runs) == 4
    assert len({run.counters["instructions"] for run in runs}) == 1
    assert "counted in one visit" in json.dumps(runs[-1].metadata["tools"])
    assert runs[-1].source_tool.startswith("valgrind")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (('command = ["./count", "{n}", "{input}", "{threads}"]', ""), r"program 1 \(count\) found no 'command'"),
        (('inputs = ["n=3", "n=4 fast"]', "inputs = []"), "no command, no inputs or no time to count"),
        (('inputs = ["n=3", "n=4 fast"]', 'inputs = ["n=3", "n=3"]'), "has an input twice"),
        (('inputs = ["n=3", "n=4 fast"]', 'inputs = ["m=3"]'), r"\{n\} in its command, which its input 'm=3' has no"),
        (('backend = "os"', 'back_end = "os"'), r"'back_end', which is no setting \(did you mean 'backend'\?\)"),
        (('name = "count"', 'name = " "'), "has the name ' ', expected one of its own"),
        (("visits = 2", 'inputs = ["x.toml"]'), r"both inputs and \[\[programs\]\]"),
        (("visits = 2", 'calibration = ["count n=3"]'), "a calibration or start, which are inputs of a platform"),
        (("threads = 2", 'program = "count"'), r"platform here names a program or a command, which \[\[programs\]\]"),
        (("[[programs]]", "[programs]"), r"programs is an object, expected tables \[\[programs\]\]"),
        (('name = "count"', "name = 3"), "at name: found 3, expected a text"),
    ],
)
def test_bad_programs_are_refused_with_what_is_wrong(tmp_path: Path, change: tuple[str, str], sentence: str) -> None:
    assert change[0] in SPEC
    with pytest.raises(SettingsError, match=sentence):
        prepare(tmp_path, SPEC.replace(*change))


def test_two_programs_have_two_names(tmp_path: Path) -> None:
    block = SPEC[SPEC.index("[[") : SPEC.index("[platforms")]
    with pytest.raises(SettingsError, match=r"program 2 .* expected one of its own"):
        prepare(tmp_path, SPEC.replace("[platforms", f"{block}[platforms"))


def test_a_warning_of_the_time_limit_ends_the_command_and_reaches_whoever_waits_for_it() -> None:
    """A batch system's signal goes to all of a job; the caller's handler is called when the command has ended."""
    script = """
import os, signal, sys, time
from crossperf.collect.process import Runner
def handler(number, frame):
    print("handled", flush=True)
    sys.exit(3)
signal.signal(signal.SIGUSR2, handler)
print("ready", flush=True)
deaf = "import signal, time; signal.signal(signal.SIGUSR2, signal.SIG_IGN); time.sleep(60)"
Runner().execute([sys.executable, "-c", deaf], quiet=True)
print("not reached")
"""
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.7)
    start = time.monotonic()
    process.send_signal(signal.SIGUSR2)
    output, _ = process.communicate(timeout=30)
    assert (process.returncode, output) == (3, "handled\n")
    assert time.monotonic() - start < 10


def test_without_a_handler_such_a_signal_is_handed_on_and_nothing_else() -> None:
    import threading

    script = "import signal, time; signal.signal(signal.SIGUSR2, lambda *_: exit(5)); time.sleep(60)"
    threading.Timer(0.7, os.kill, (os.getpid(), signal.SIGUSR2)).start()
    runner = Runner()
    execution = runner.execute([sys.executable, "-c", script], quiet=True)
    assert execution.returncode == 5
    assert not runner.interrupted
