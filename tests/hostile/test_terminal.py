"""Names and files from elsewhere hold what a terminal obeys; nothing of it reaches the terminal."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from crossperf import dataset, model, platforms
from crossperf.cli.completion import completing
from crossperf.datasets import toy
from crossperf.runs import read_jsonl
from crossperf.runs.table import from_frame
from crossperf.text import as_utf8, is_safe, safe

SOURCE = Path(__file__).parents[2] / "src" / "crossperf"
#: Renames the window, rings, clears the screen, moves up, turns the order of letters, starts a line of its own.
EVIL = "a\x1b]0;owned\x07\x1b[2J\x9b1A\u202egpj.\rb\nerror: forged"
#: Where text may be printed: each of these makes it safe first.
PRINTERS = {"cli/output.py", "cli/__init__.py", "report/terminal.py", "campaign/element.py"}


def crossperf(folder: Path, *arguments: str | Path | bytes) -> subprocess.CompletedProcess[bytes]:
    env = os.environ | {"XDG_CONFIG_HOME": str(folder / "settings"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable.encode(), b"-m", b"crossperf", *map(os.fsencode, arguments)]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, timeout=120, check=False)


def assert_clean(done: subprocess.CompletedProcess[bytes]) -> str:
    """Assert that what was printed is text of whole lines, and return it."""
    text = (done.stdout + done.stderr).decode("utf-8")
    assert [line for line in text.split("\n") if not is_safe(line)] == []
    assert "\nerror: forged" not in text
    assert "Traceback" not in text
    return text


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table, a model, an evaluation and platforms, all under such names."""
    folder = tmp_path_factory.mktemp("hostile")
    frame = toy.make_table(apps=4, inputs=2, platforms=3, repeats=2, seed=1).frame
    renamed = [pl.col(name).replace({frame[name][0]: EVIL}) for name in ("app", "input", "platform")]
    table = from_frame(frame.with_columns(renamed))
    table.write(folder / "runs.jsonl")
    model.train(dataset.build(table), "ridge").save(folder / "model")
    entry = platforms.Platform(EVIL, "cpu", platforms.MachineFacts(cpu_model=EVIL, cores=2))
    platforms.add(folder / "platforms.json", entry)
    (folder / EVIL.replace("/", "")).write_text("app,input\n")
    return folder


COMMANDS: dict[str, tuple[str, ...]] = {
    "check": ("runs", "check", "runs.jsonl"),
    "info": ("runs", "info", "runs.jsonl"),
    "compare": ("runs", "compare", "runs.jsonl", "runs.jsonl"),
    "evaluate": ("evaluate", "runs.jsonl", "--models", "median", "--folds", "2"),
    "train": ("train", "runs.jsonl", "-o", EVIL + "model", "--model", "median"),
    "predict": ("predict", "model", "runs.jsonl", "--explain"),
    "ask": ("ask", "--model", "model", "--from", "runs.jsonl"),
    "platforms": ("platforms", "--file", "platforms.json"),
    "show": ("platforms", "--file", "platforms.json", "show", EVIL),
    "unknown platform": ("platforms", "--file", "platforms.json", "show", EVIL + "x"),
    "bad file": ("runs", "check", EVIL),
    "no file": ("runs", "info", EVIL + "gone.csv"),
    "no command": (EVIL,),
    "no option": ("runs", "info", "--" + EVIL),
    "profile": ("profile", "--backend", "os", "--repeats", "1", "-o", "new.jsonl", "--app", EVIL, "--", "true", EVIL),
    "no program": ("profile", "--", EVIL),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_whatever_the_names_a_terminal_only_shows_what_is_printed(hostile: Path, name: str) -> None:
    assert_clean(crossperf(hostile, *COMMANDS[name]))


def test_the_names_are_still_readable(hostile: Path) -> None:
    assert r"a\x1b]0;owned\x07" in assert_clean(crossperf(hostile, "platforms", "--file", "platforms.json"))


def test_a_shell_is_offered_no_such_name() -> None:
    complete: Callable[..., list[object]] = completing(lambda _: ["epyc", EVIL])
    assert [item.value for item in complete(None, None, "")] == ["epyc"]  # type: ignore[attr-defined]


def test_only_the_places_that_make_text_safe_print() -> None:
    """Others would be forgotten: whoever prints goes through `tell`, `say` or `show`."""
    offenders = []
    for path in sorted(SOURCE.rglob("*.py")):
        name = str(path.relative_to(SOURCE))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and name not in PRINTERS:
                called = ast.unparse(node.func)
                if re.fullmatch(
                    r"print|click\.(secho|echo)|.*(console|out|screen)\(?\)?\.print|sys\.std\w+\.write", called
                ):
                    offenders.append(f"{name}:{node.lineno} {called}")
    # The page of counters is a tool of ours, and writes what the package holds.
    assert [text for text in offenders if not text.startswith("catalog/page.py")] == []


def test_every_character_that_a_terminal_obeys_is_written_out() -> None:
    for number in range(0x110000):
        character = chr(number)
        if character.isprintable() and not 0x200E <= number <= 0x200F:
            assert safe(character) == character
    assert all(not is_safe(chr(number)) for number in (*range(32), *range(0x7F, 0xA0), *range(0xD800, 0xE000)))
    assert safe(EVIL).isprintable()


def test_an_argument_that_is_no_utf8_is_measured_kept_and_read_again(tmp_path: Path) -> None:
    settings = ("profile", "--backend", "os", "--repeats", "2")
    done = crossperf(tmp_path, *settings, "--", "printf", "%s", b"caf\xe9 \xff")
    assert done.returncode == 0, done.stderr
    assert done.stdout == b"caf\xe9 \xff"  # the program gets its argument as it is
    assert_clean(subprocess.CompletedProcess([], 0, b"", done.stderr))
    runs = read_jsonl(tmp_path / "runs.jsonl")
    assert len(runs) == 2
    assert all(r"caf\xe9 \xff" in run.input for run in runs)
    assert runs[0].metadata["command"][-1] == r"caf\xe9 \xff"
    assert crossperf(tmp_path, "runs", "info", "runs.jsonl").returncode == 0
    assert json.loads((tmp_path / "runs.jsonl").read_text(encoding="utf-8").splitlines()[0])
    named = crossperf(tmp_path, *settings, "--app", b"\xff", "--input", b"\xfe", "--platform", b"\xfd", "--", "true")
    assert named.returncode == 0, named.stderr
    perf = Path(__file__).parents[1] / "data" / "perf" / "software.csv"
    imported = crossperf(tmp_path, "import", "perf", perf, "--app", b"\xff", "--input", b"\xfe", "--platform", b"\xfd")
    assert imported.returncode == 0, imported.stderr
    assert {run.app for run in read_jsonl(tmp_path / "runs.jsonl")} == {"printf", r"\xff"}
    assert crossperf(tmp_path, "platforms", "--file", "p.json", "add", b"\xfd").returncode == 0
    assert crossperf(tmp_path, "runs", "info", "runs.jsonl").returncode == 0


def test_text_of_files_has_no_halves_of_pairs() -> None:
    assert as_utf8(os.fsdecode(b"\xff")) == r"\xff"
    assert as_utf8("\ud800") == r"\ud800"
    as_utf8("".join(map(chr, range(0xD800, 0xE000)))).encode()


@pytest.mark.parametrize("size", ["9" * 5000, "\u00b2", "wide"])
def test_a_size_of_the_terminal_that_is_none_is_passed_over(
    hostile: Path, monkeypatch: pytest.MonkeyPatch, size: str
) -> None:
    monkeypatch.setenv("COLUMNS", size)
    monkeypatch.setenv("LINES", size)
    done = crossperf(hostile, "runs", "info", "runs.jsonl")
    assert_clean(done)
    assert done.returncode == 0
