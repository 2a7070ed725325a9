"""Real processes killed at random moments: what was measured is kept, and nothing goes on running.

``CROSSPERF_KILLS=100`` kills each as often; the default is a few.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from crossperf.datasets import toy
from crossperf.model import store
from crossperf.runs import read_jsonl
from tests.campaign import stand_in
from tests.campaign.stand_in import alive, wait_for

pytestmark = pytest.mark.slow
KILLS = int(os.environ.get("CROSSPERF_KILLS", "3"))


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return os.environ | {"XDG_CONFIG_HOME": str(tmp_path / "settings"), "OMP_NUM_THREADS": "1"}


def started(folder: Path, environment: dict[str, str], *arguments: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "crossperf", *map(str, arguments)]
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command, cwd=folder, env=environment, stdout=quiet, stderr=quiet, start_new_session=True)


def kill_at_random(process: subprocess.Popen[bytes], within_s: float, seed: int) -> None:
    time.sleep(random.Random(seed).uniform(0.0, within_s))  # noqa: S311
    process.kill()
    process.wait()


def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


@pytest.mark.parametrize("number", range(KILLS))
def test_a_profile_that_is_killed_keeps_the_repeats_that_ended_and_leaves_no_process(
    tmp_path: Path, environment: dict[str, str], number: int
) -> None:
    # A shell that starts a child and notes both, so that the child outlives a kill of the shell alone.
    script = "sleep 0.15 & echo $$ $! >> pids; wait; echo x >> ended"
    process = started(
        tmp_path,
        environment,
        "profile",
        "--backend",
        "os",
        "--repeats",
        "200",
        "--app",
        "nap",
        "--",
        "sh",
        "-c",
        script,
    )
    wait_for(lambda: len(lines_of(tmp_path / "ended")) >= 2)
    kill_at_random(process, 0.4, number)
    pids = [int(word) for line in lines_of(tmp_path / "pids") for word in line.split()]
    wait_for(lambda: not any(map(alive, pids)) and not list(tmp_path.glob("*.unfinished-*")))
    ended, kept = len(lines_of(tmp_path / "ended")), read_jsonl(tmp_path / "runs.jsonl")
    # The last may have ended in the moment of the kill, before anybody saw it.
    assert ended - 1 <= len(kept) <= ended
    assert [run.repeat for run in kept] == list(range(len(kept)))
    assert {run.status for run in kept} == {"ok"}


def test_what_a_kill_of_everything_left_behind_is_added_by_the_next_profile(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    """The guard is killed too, as with a node that fails."""
    script = "sleep 0.05; echo x >> ended"
    settings = ("--backend", "os", "--repeats", "200", "--app", "nap")
    process = started(tmp_path, environment, "profile", *settings, "--", "sh", "-c", script)
    wait_for(lambda: len(lines_of(tmp_path / "ended")) >= 3)
    children = stand_in.children_of(process.pid)
    process.send_signal(signal.SIGSTOP)
    for pid in (*children, process.pid):
        os.kill(pid, signal.SIGKILL)
    process.wait()
    wait_for(lambda: not any(map(alive, children)))
    assert not (tmp_path / "runs.jsonl").exists()
    ended = len(lines_of(tmp_path / "ended"))
    command = [sys.executable, "-m", "crossperf", "profile", "--backend", "os", "--repeats", "1", "true"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    kept = [run for run in read_jsonl(tmp_path / "runs.jsonl") if run.app == "nap"]
    assert ended - 1 <= len(kept) <= ended
    assert f"added {len(kept)} runs to runs.jsonl that a profiling before was killed over" in done.stderr
    assert not list(tmp_path.glob("*.unfinished-*"))


@pytest.mark.parametrize("number", range(KILLS))
def test_a_campaign_that_is_killed_goes_on_where_it_was(
    tmp_path: Path, environment: dict[str, str], number: int
) -> None:
    stand_in.prepare(tmp_path, "[slow]\nn = [1, 2, 3]\n")
    arguments = ("campaign", "spec.toml", "-o", "out", "--platform", "one")
    process = started(tmp_path, environment, *arguments)
    wait_for(lambda: lines_of(tmp_path / "asked"))
    kill_at_random(process, 0.9, number)
    pids = [pid for _, _, pid in stand_in.asked(tmp_path)]
    wait_for(lambda: not any(map(alive, pids)))
    visited = {(facts["input"]) for facts in stand_in.timed(tmp_path / "out", "slow")}
    before = len(stand_in.asked(tmp_path))
    assert started(tmp_path, environment, *arguments, "--resume").wait(timeout=60) == 0
    again = [text for text, _, _ in stand_in.asked(tmp_path)[before:] if text.startswith("slow")]
    assert not {text.partition(" ")[2] for text in again} & visited
    assert len(read_jsonl(tmp_path / "out" / "runs.jsonl")) == 3 * 3


TRAIN = ("train", "runs.jsonl", "-o", "model", "--model", "ridge", "--overwrite")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float]:
    """A folder with a model, and how many seconds its training took."""
    folder = tmp_path_factory.mktemp("trained")
    toy.make_table(apps=3, inputs=2, repeats=1, seed=1).write(folder / "runs.jsonl")
    begin = time.monotonic()
    assert started(folder, dict(os.environ), *TRAIN).wait(timeout=120) == 0
    return folder, time.monotonic() - begin


@pytest.mark.parametrize("number", range(KILLS))
def test_a_training_that_is_killed_leaves_the_model_before(
    trained: tuple[Path, float], environment: dict[str, str], number: int
) -> None:
    folder, seconds = trained
    kill_at_random(started(folder, environment, *TRAIN), seconds, number)
    assert store.load(folder / "model").name == "ridge"


def together(folder: Path, environment: dict[str, str], commands: list[tuple[object, ...]]) -> list[int]:
    """Run commands at the same time, and return how they ended."""
    processes = [started(folder, environment, *arguments) for arguments in commands]
    return [process.wait(timeout=120) for process in processes]


def test_platforms_that_are_added_at_the_same_time_are_all_kept(tmp_path: Path, environment: dict[str, str]) -> None:
    names = [f"machine-{number}" for number in range(8)]
    commands = [("platforms", "--file", "platforms.json", "add", name) for name in names]
    assert together(tmp_path, environment, commands) == [0] * 8
    entries = json.loads((tmp_path / "platforms.json").read_text())["platforms"]
    assert sorted(entry["name"] for entry in entries) == names


def test_profiles_that_share_a_file_have_repeats_of_their_own(tmp_path: Path, environment: dict[str, str]) -> None:
    command = ("profile", "--backend", "os", "--repeats", "3", "--app", "same", "--input", "1", "true")
    assert together(tmp_path, environment, [command] * 4) == [0] * 4
    runs = read_jsonl(tmp_path / "runs.jsonl")
    assert sorted(run.repeat or 0 for run in runs) == list(range(12))
    assert len({run.run_id for run in runs}) == 12


def test_imports_that_share_a_file_lose_no_run(tmp_path: Path, environment: dict[str, str]) -> None:
    data = Path(__file__).parents[1] / "data" / "perf" / "software.csv"
    commands = [
        ("import", "perf", data, "--app", f"app{number}", "--input", "1", "--platform", "p") for number in range(6)
    ]
    assert together(tmp_path, environment, commands) == [0] * 6
    assert sorted(run.app for run in read_jsonl(tmp_path / "runs.jsonl")) == [f"app{number}" for number in range(6)]


def test_trainings_of_the_same_folder_leave_one_model_whole(tmp_path: Path, environment: dict[str, str]) -> None:
    toy.make_table(apps=3, inputs=2, repeats=1, seed=1).write(tmp_path / "runs.jsonl")
    commands: list[tuple[object, ...]] = [
        ("train", "runs.jsonl", "-o", "model", "--model", name, "--overwrite") for name in ("ridge", "median") * 2
    ]
    assert 0 in together(tmp_path, environment, commands)
    assert store.load(tmp_path / "model").name in ("ridge", "median")
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize("delay_ms", [1, 20, 50, 90, 150, 300, 700])
def test_ctrl_c_while_a_command_starts_is_no_traceback(
    tmp_path: Path, environment: dict[str, str], delay_ms: int
) -> None:
    toy.make_table(apps=3, inputs=2, repeats=1, seed=1).write(tmp_path / "runs.jsonl")
    # As the installed command does; what Python itself prints about an interrupt before that is not ours.
    code = "from crossperf.__main__ import main; open('started', 'w').close(); main()"
    command = [sys.executable, "-c", code, "train", "runs.jsonl", "-o", "model", "--model", "ridge"]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=pipe, stdout=pipe, text=True)
    wait_for((tmp_path / "started").exists)
    time.sleep(delay_ms / 1000)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert "Traceback" not in stderr
    assert process.returncode in (-signal.SIGINT, 130, 0)
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".part"] == []
