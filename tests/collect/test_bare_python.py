from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"
MODULES = sorted(
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
    for folder in ("catalog", "collect", "platforms")
    for path in (SOURCE / "crossperf" / folder).rglob("*.py")
)


def bare(code: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run code on a Python without any installed package, as on a compute node."""
    command = [sys.executable, "-S", "-c", code]
    env = {"PYTHONPATH": str(SOURCE), "PATH": "/usr/bin:/bin"}
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=60, check=False)


def test_every_collector_can_be_imported_on_a_bare_python(tmp_path: Path) -> None:
    done = bare("\n".join(f"import {name}" for name in MODULES), tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_command_is_profiled_and_its_runs_appended_on_a_bare_python(tmp_path: Path) -> None:
    """The example of docs/profile.md."""
    code = """
from crossperf.collect.profile import profile
from crossperf.runs import append, read_jsonl

result = profile(["ls", "/"], platform="here", backend="os")
append("runs.jsonl", result.runs)
print(len(read_jsonl("runs.jsonl")))
"""
    done = bare(code, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "3"


def test_without_capstone_valgrind_is_left_out_with_the_pip_command(tmp_path: Path) -> None:
    code = """
from crossperf.collect.valgrind import ValgrindBackend
backend = ValgrindBackend({})
backend._valgrind = "valgrind"
print(backend.why_not())
"""
    assert "pip install 'crossperf[valgrind]'" in bare(code, tmp_path).stdout
