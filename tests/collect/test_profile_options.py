"""What a profile is asked for: bad input is one sentence, and an option of the command is its own."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.collect.profiling import crossperf


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
        (["profile", "-o", ".", "true"], "found a folder, expected a regular file"),
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
    assert "cannot be written (Permission denied)" in done.stderr
    assert not (tmp_path / "ran").exists()


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
