"""Runs applications of apps.toml as whole processes; each run prints one line of JSON with its time and its digest.

    python testbed/apps/run.py APP INPUT THREADS --inputs DIR [--bundle DIR]
    python testbed/apps/run.py --list --threads 1 4 16 [--seed N] > list.txt
    python testbed/apps/run.py --batch list.txt --inputs DIR [--bundle DIR] [-o FILE] [--minutes N]
    python testbed/apps/run.py --accept FILE ...

The clock runs from just before the fork until the process has ended. A process may use as many processors as it has
threads, so that a serial program is pinned to one. `max_rss` is in bytes and never below that of this small Python.
With `-o` lines are appended, and a second start goes on after the last complete line.
"""

from __future__ import annotations

import argparse
import fcntl
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from apps import HERE, App, Case, name_of, read

sys.path.append(str(HERE.parents[1] / "src"))
from crossperf.collect.own_io import OwnIo, io_since

#: A run that takes longer is ended.
LIMIT_S = 120


@dataclass(frozen=True)
class Place:
    """Where the files are: inputs, bundle (None: the programs of this machine) and the folder for outputs."""

    inputs: Path
    bundle: Path | None
    work: Path | None = None

    def program(self, app: App, name: str) -> str:
        """Return the path of a program of an application."""
        path = next((path for path in app.programs if Path(path).name == name), name)
        return str(self.bundle / "bin" / name) if self.bundle else path

    def environment(self) -> dict[str, str]:
        """Return the variables of every run; nothing of the caller's comes in."""
        base = {"LC_ALL": "C", "TZ": "UTC", "HOME": "/nonexistent"}
        if self.bundle is None:
            return base | {"PATH": "/usr/bin:/bin:/usr/games"}
        return base | {"PATH": str(self.bundle / "bin"), "LD_LIBRARY_PATH": str(self.bundle / "lib")}

    def values(self, case: Case, threads: int) -> dict[str, str]:
        """Return the values of all placeholders."""
        own = {"inputs": str(self.inputs), "programs": str(HERE / "programs"), "bundle": str(self.bundle or "")}
        return {**case, **own, "threads": str(threads), "helpers": str(threads - 1)}


@dataclass(frozen=True)
class Process:
    """What is started: a program with its words and variables, in a folder with its output, on some processors."""

    program: str
    words: list[str]
    variables: dict[str, str]
    folder: Path
    stdin: str
    cpus: set[int]

    def start(self) -> subprocess.Popen[bytes]:
        """Start it, at the head of a process group; nothing runs between the fork and the program itself."""
        own = all_cpus()
        with (
            (self.folder / (self.stdin or os.devnull)).open("rb") as stdin,
            (self.folder / "stdout").open("wb") as stdout,
            (self.folder / "stderr").open("wb") as stderr,
        ):
            os.sched_setaffinity(0, self.cpus)  # the child has it from its parent
            try:
                return subprocess.Popen(
                    self.words, executable=self.program, env=self.variables, cwd=self.folder,
                    stdin=stdin, stdout=stdout, stderr=stderr, start_new_session=True,
                )  # fmt: skip
            finally:
                os.sched_setaffinity(0, own)


@dataclass(frozen=True)
class Outcome:
    """What the operating system tells of a process that has ended; `code` is None when it was ended by the limit.

    Page faults and bytes are those that `crossperf profile` has: of the process and of all that it waited for.
    """

    seconds: float
    user_s: float
    system_s: float
    max_rss: int
    page_faults: int
    bytes_read: int | None
    bytes_written: int | None
    code: int | None


def timed(process: Process, limit_s: float = LIMIT_S) -> Outcome:
    """Run a process to its end and return its time."""
    begin = time.perf_counter()
    child = process.start()
    late = threading.Timer(limit_s, os.killpg, (child.pid, signal.SIGKILL))
    late.start()
    try:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    except BaseException:
        os.killpg(child.pid, signal.SIGKILL)
        raise
    finally:
        seconds = time.perf_counter() - begin
        late.cancel()
    # What a process read and wrote is counted for its parent when it is reaped.
    before = OwnIo.now()
    _, status, usage = os.wait4(child.pid, 0)
    io = io_since(before) or {}
    child.returncode = os.waitstatus_to_exitcode(status)
    return Outcome(
        seconds=seconds,
        user_s=usage.ru_utime,
        system_s=usage.ru_stime,
        max_rss=usage.ru_maxrss * 1024,
        page_faults=usage.ru_minflt + usage.ru_majflt,
        bytes_read=io.get("rchar"),
        bytes_written=io.get("wchar"),
        code=None if seconds >= limit_s else child.returncode,
    )


def prepare(app: App, case: Case, place: Place) -> None:
    """Make the files that an input needs, unless they are there."""
    missing = [name for name in app.files(case) if not (place.inputs / name).exists()]
    if missing:
        from inputs import make  # loads numpy, which would make this process larger than those it measures

        for name in missing:
            make(name, place.inputs)
    if not app.prepare:
        return
    place.inputs.mkdir(parents=True, exist_ok=True)
    with (place.inputs / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        values = place.values(case, 1)
        if not Path(app.prepared.format_map(values)).exists():
            derive(app, [word.format_map(values) for word in app.prepare], place)


def derive(app: App, words: list[str], place: Place) -> None:
    """Run the command that makes a file out of inputs, such as an index."""
    with tempfile.TemporaryDirectory(dir=place.work) as folder:
        program = place.program(app, words[0])
        outcome = timed(Process(program, words, place.environment(), Path(folder), "", all_cpus()))
        if outcome.code != 0:
            note = (Path(folder) / "stderr").read_text(errors="replace")[-300:]
            raise RuntimeError(f"{app.name}: {words} ended with {outcome.code}, expected 0: {note}")


def all_cpus() -> set[int]:
    return os.sched_getaffinity(0)


def process_of(app: App, case: Case, threads: int, place: Place, folder: Path) -> Process:
    """Return the process of an input, its files made and linked; it works in a folder."""
    prepare(app, case, place)
    values = place.values(case, threads)
    words = [word.format_map(values) for word in app.command]
    # What points into a bundle has its own place where the program is installed.
    own = {key: value for key, value in app.environment.items() if place.bundle or "{bundle}" not in value}
    variables = place.environment() | {key: value.format_map(values) for key, value in own.items()}
    for link in app.here:
        (folder / link.format_map(values)).symlink_to(place.inputs / link.format_map(values))
    program = place.program(app, words[0])
    cpus = set(sorted(all_cpus())[:threads])
    return Process(program, words, variables, folder, app.stdin.format_map(values), cpus)


def result_of(app: App, case: Case, threads: int, place: Place, folder: Path) -> tuple[str, str]:
    """Return the digest of what was made in a folder, and the last words that were printed."""
    result = folder / app.output.format_map(place.values(case, threads))
    digest = app.digest(result.read_bytes()) if result.exists() else "missing"
    printed = ((folder / name).read_text(errors="replace")[-300:] for name in ("stderr", "stdout"))
    return digest, next(filter(None, printed), "")


def measure(app: App, case: Case, threads: int, place: Place, expected: dict[str, str]) -> dict[str, object]:
    """Run one input once and return the line about it."""
    with tempfile.TemporaryDirectory(dir=place.work, prefix="app-") as name:
        process = process_of(app, case, threads, place, Path(name))
        started = time.time()
        outcome = timed(process)
        digest, note = result_of(app, case, threads, place, Path(name))
    key = expected_key(app, name_of(case), threads)
    status = judge(app, outcome, digest, expected.get(key))
    line: dict[str, object] = {"workload": app.name, "input": name_of(case), "threads": threads}
    line |= {
        "seconds": round(outcome.seconds, 6),
        "user_s": round(outcome.user_s, 6),
        "system_s": round(outcome.system_s, 6),
    }
    line |= {name: getattr(outcome, name) for name in ("max_rss", "page_faults", "bytes_read", "bytes_written")}
    line |= {"digest": digest, "status": status, "started": round(started, 1)}
    return line | ({"message": note} if status in ("failed", "timeout") else {})


def expected_key(app: App, label: str, threads: int) -> str:
    return f"{app.name} {label}" + ("" if app.same_for_all_threads else f" {threads}")


def judge(app: App, outcome: Outcome, digest: str, expected: str | None) -> str:
    """Return the status of a run: ok, unchecked (no digest is known), different, timeout or failed."""
    if outcome.code is None:
        return "timeout"
    if outcome.code not in app.exit_codes or digest in ("missing", "empty"):
        return "failed"
    if expected is None:
        return "unchecked"
    return "ok" if digest == expected else "different"


def runs(apps: dict[str, App], threads: list[int], seed: int | None) -> list[str]:
    """Return the lines of a batch: every input with every number of threads, serial programs with one only."""
    lines = [
        f"{app.name}\t{name_of(case)}\t{number}"
        for app in apps.values()
        for case in app.cases
        for number in (threads if app.parallel else [1])
    ]
    if seed is not None:
        random.Random(seed).shuffle(lines)  # noqa: S311
    return lines


def complete(path: Path) -> int:
    """Return how many complete lines a file has, after cutting off a last one that is not."""
    data = path.read_bytes() if path.exists() else b""
    whole = data[: data.rfind(b"\n") + 1]
    if len(whole) < len(data):
        path.write_bytes(whole)
    return whole.count(b"\n")


def batch(
    apps: dict[str, App], lines: list[str], place: Place, minutes: float, expected: dict[str, str]
) -> Iterator[dict[str, object]]:
    """Yield one line about each run, until the time is over."""
    until = time.monotonic() + 60 * minutes
    for line in lines:
        if time.monotonic() > until:
            return
        name, label, threads = line.split("\t")
        yield measure(apps[name], apps[name].case(label), int(threads), place, expected)


def accept(apps: dict[str, App], results: list[Path]) -> dict[str, str]:
    """Return the digests of results by input, after checking that all runs of an input agree."""
    digests: dict[str, str] = {}
    for line in itertools.chain.from_iterable(path.read_text(encoding="utf-8").splitlines() for path in results):
        facts = json.loads(line)
        key = expected_key(apps[facts["workload"]], facts["input"], facts["threads"])
        if facts["status"] in ("failed", "timeout"):
            continue
        if digests.setdefault(key, facts["digest"]) != facts["digest"]:
            raise ValueError(f"{key}: the outputs {digests[key]} and {facts['digest']} differ; expected them equal")
    return dict(sorted(digests.items()))


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("run", nargs="*", metavar="APP INPUT THREADS")
    parser.add_argument("--batch", type=Path, help="a file with one APP, INPUT, THREADS a line, tabs between")
    parser.add_argument("--list", action="store_true", help="print the lines of a batch")
    parser.add_argument("--accept", type=Path, nargs="+", help="take the digests of these results as the expected ones")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--seed", type=int, help="with --list: random order")
    parser.add_argument("--only", nargs="+", help="with --list: these applications")
    parser.add_argument("--inputs", type=Path, default=Path("inputs"))
    parser.add_argument("--bundle", type=Path)
    parser.add_argument("--work", type=Path, help="folder for outputs (default: that of temporary files)")
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--minutes", type=float, default=1e6)
    return parser.parse_args()


def main() -> int:
    given = options()
    apps = read()
    if given.only:
        apps = {name: apps[name] for name in given.only}
    if given.list:
        print("\n".join(runs(apps, given.threads, given.seed)))
        return 0
    if given.accept:
        (HERE / "digests.json").write_text(json.dumps(accept(apps, given.accept), indent=0) + "\n", encoding="utf-8")
        return 0
    place = Place(given.inputs.resolve(), given.bundle.resolve() if given.bundle else None, given.work)
    known = HERE / "digests.json"
    expected = json.loads(known.read_text(encoding="utf-8")) if known.exists() else {}
    lines = given.batch.read_text(encoding="utf-8").splitlines() if given.batch else ["\t".join(given.run)]
    if given.output:
        lines = lines[complete(given.output) :]
    with given.output.open("a", encoding="utf-8") if given.output else os.fdopen(os.dup(1), "w") as file:
        for line in batch(apps, lines, place, given.minutes, expected):
            file.write(json.dumps(line) + "\n")
            file.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
