"""Slurm's own commands: what one prints, whether the controller answers, when a job would start."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from crossperf.errors import CrossperfError
from crossperf.plain import whole

#: A controller that does not answer within this time counts as unreachable.
_PATIENCE_S = 10.0
_PING_PATIENCE_S = 3.0


class ControllerError(CrossperfError):
    """The controller cannot be reached, or one of Slurm's commands is not there."""


@dataclass(frozen=True)
class Start:
    """When a job would start in a partition, or the reason why it cannot run there."""

    wait_s: float = 0.0
    refused: str | None = None


def ask(*command: str, env: Mapping[str, str] | None = None, patience_s: float = _PATIENCE_S) -> str:
    """Return what one of Slurm's commands prints; raise where it fails."""
    done = _run(command, env=env, patience_s=patience_s)
    if done.returncode:
        reason = _last_line(done.stderr or done.stdout)
        raise ControllerError(f"{command[0]} failed ({reason}).", command=command, status=done.returncode)
    return done.stdout.decode(errors="backslashreplace")


def _run(
    command: Sequence[str], stdin: bytes = b"", env: Mapping[str, str] | None = None, patience_s: float = _PATIENCE_S
) -> subprocess.CompletedProcess[bytes]:
    whole_env = {**os.environ, **(env or {})}
    try:
        return subprocess.run(command, input=stdin, env=whole_env, capture_output=True, check=False, timeout=patience_s)
    except OSError as error:
        problem = f"{command[0]} cannot be run ({error.strerror}). Install Slurm's commands, or add them to PATH."
        raise ControllerError(problem, command=command) from error
    except subprocess.TimeoutExpired as error:
        raise ControllerError(f"{command[0]} gave no answer within {patience_s:g} s.", command=command) from error


def _last_line(text: bytes) -> str:
    lines = text.decode(errors="replace").strip().splitlines()
    return lines[-1].strip().rstrip(".") if lines else "it printed nothing"


def refuse_unless_up() -> None:
    """Raise where the controller cannot be reached."""
    # ping alone answers at once: every other command tries again for half a minute before it gives up.
    done = _run(("scontrol", "ping"), patience_s=_PING_PATIENCE_S)
    if b" UP" not in done.stdout:
        lines = (done.stderr.strip() or done.stdout.strip() or b"no answer").decode(errors="replace").splitlines()
        reason = lines[-1 if done.stderr.strip() else 0].strip().rstrip(".")
        raise ControllerError(f"the Slurm controller cannot be reached ({reason}).")


def gres_of(text: str) -> dict[str, int]:
    """Return the generic resources of a node, under their name and under name and type.

    >>> gres_of("gpu:a100:4(S:0-1),nvme:1")
    {'gpu': 4, 'gpu:a100': 4, 'nvme': 1}
    """
    counts: Counter[str] = Counter()
    for resource in listed(re.sub(r"\([^)]*\)", "", text) if text != "(null)" else ""):
        *names, count = resource.split(":")
        number = whole(count)
        if number is None:
            names, number = [*names, count], 1
        counts[names[0]] += number
        if len(names) > 1:
            counts[":".join(names[:2])] += number
    return dict(counts)


def seconds_of(limit: str) -> float | None:
    """Return a time limit as Slurm writes it, in seconds; ``None`` where there is none, or no number that is a time.

    >>> seconds_of("90"), seconds_of("1:30"), seconds_of("1-12"), seconds_of("2-00:30:00"), seconds_of("UNLIMITED")
    (5400.0, 90.0, 129600.0, 174600.0, None)
    """
    match = re.fullmatch(r"(?:(\d{1,10})-)?(\d{1,10})(?::(\d{1,10}))?(?::(\d{1,10}))?", limit.strip())
    if match is None:
        return None
    days, *rest = match.groups()
    numbers = [int(part) for part in rest if part is not None]
    # Without days the words end in seconds, unless there is only one: 5 is five minutes, 5:00 too.
    first = 0 if days is not None or len(numbers) == 3 else 1
    units = (3600, 60, 1)[first:]
    return float(int(days or 0) * 86400 + sum(n * unit for n, unit in zip(numbers, units, strict=False)))


def start(partition: str, arguments: Sequence[str], stdin: bytes | None = None, sbatch: str = "sbatch") -> Start:
    """Return when the controller would start a submission in a partition; nothing is submitted."""
    command = (sbatch, "--test-only", f"--partition={partition}", *arguments)
    done = _run(command, stdin or b"", {"SLURM_TIME_FORMAT": "%s"})
    estimate = re.search(rb"to start at (\d+)", done.stderr)
    if done.returncode or estimate is None:
        return Start(refused=_last_line(done.stderr).removeprefix("sbatch: error: "))
    return Start(max(0.0, int(estimate[1]) - time.time()))


def listed(text: str) -> list[str]:
    """Return the words of a list as Slurm prints it; ``(null)`` has none."""
    return [] if text in ("", "(null)") else text.split(",")


def array_limit() -> int:
    """Return how many elements an array may have on this cluster."""
    match = re.search(r"^MaxArraySize\s*=\s*(\d+)", ask("scontrol", "show", "config"), re.MULTILINE)
    # Slurm bounds the highest number, which is below this.
    return max(1, int(match[1])) if match else 1001
