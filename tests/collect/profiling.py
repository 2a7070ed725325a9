"""Profiles as a user takes them, and a back end that answers from a list."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from crossperf.collect.process import Runner
from crossperf.collect.profile import Profile
from crossperf.importers.measurement import Measurement

TRUE = Profile(("true",), "true", "", "p")


def crossperf(*arguments: object, cwd: Path, env: dict[str, str], **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command of crossperf in a folder."""
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
