"""What measuring costs: the native pass beside the bare command, each counting tool, and sorting a real profile.

    python benchmarks/overhead.py [--write]

Each ratio is taken in one run, bare and measured executions in turn, so that noise disturbs both the same way.
Needs gcc; qemu, valgrind, perf, strace, LAMMPS (Debian: lammps) and the built testbed are used where they are.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from crossperf import platforms
from crossperf.collect import callgrind, instructions
from crossperf.collect.backends import backends
from crossperf.collect.process import Runner

PROGRAMS = Path(__file__).resolve().parent.parent / "tests" / "collect" / "programs"
PAIRS = 7
MELT = """units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 {cells} 0 {cells} 0 {cells}
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 3.0 87287 loop geom
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
fix 1 all nve
run {steps}
"""


def commands(folder: Path) -> dict[str, list[str]]:
    """Return the programs by name, sized to more than a second each."""
    programs: dict[str, list[str]] = {}
    for name in ("dgemm", "chase", "files", "threads"):
        program = folder / name
        source = PROGRAMS / f"{name}.c"
        subprocess.run(["gcc", "-O2", "-pthread", "-o", str(program), str(source)], check=True)
        programs[name] = [str(program)]
    (folder / "in").write_bytes(b"x" * (64 << 20))
    programs["dgemm"] += ["1100"]
    programs["chase"] += ["20000000"]
    programs["files"] += [str(folder / "in"), str(folder / "out"), "16"]
    programs["threads"] += ["6"]
    programs["python"] = [sys.executable, "-c", "s = 0\nfor i in range(20_000_000): s += i * i"]
    if shutil.which("lmp"):
        (folder / "in.melt").write_text(MELT.format(cells=12, steps=200))
        programs["lammps"] = ["lmp", "-in", str(folder / "in.melt"), "-log", "none", "-screen", "none"]
    return programs


def smaller(folder: Path, name: str, command: list[str]) -> list[str]:
    """Return a program sized for emulation."""
    sizes = {"dgemm": ["200"], "chase": ["1000000"], "threads": ["6"]}
    if name in sizes:
        return [command[0], *sizes[name]]
    if name == "files":
        return [*command[:-1], "2"]
    if name == "python":
        return [*command[:-1], command[-1].replace("20_000_000", "300_000")]
    (folder / "in.small").write_text(MELT.format(cells=8, steps=50))
    return ["lmp", "-in", str(folder / "in.small"), "-log", "none", "-screen", "none"]


def bare_s(command: list[str]) -> float:
    """Return the wall time of a command that nothing watches."""
    nowhere = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    start = time.perf_counter()
    pid = os.posix_spawnp(command[0], command, os.environ, file_actions=nowhere)
    _, status = os.waitpid(pid, 0)
    if status != 0:
        raise SystemExit(f"{command[0]} failed")
    return time.perf_counter() - start


def native(programs: dict[str, list[str]]) -> list[str]:
    runner = Runner()
    rows = ["| program | bare, s | native pass / bare | lowest to highest |", "|---|---|---|---|"]
    for name, command in programs.items():
        bare_s(command)
        pairs = []
        for number in range(PAIRS):
            # Who goes first takes turns: the machine's clock drifts within a pair too.
            if number % 2:
                measured = runner.execute(command, quiet=True).wall_s
                alone = bare_s(command)
            else:
                alone = bare_s(command)
                measured = runner.execute(command, quiet=True).wall_s
            pairs.append((alone, measured / alone))
        ratios = sorted(ratio for _, ratio in pairs)
        alone = statistics.median(alone for alone, _ in pairs)
        rows.append(f"| {name} | {alone:.2f} | {statistics.median(ratios):.3f} | {ratios[0]:.3f} to {ratios[-1]:.3f} |")
    return rows


def tools(folder: Path, programs: dict[str, list[str]]) -> list[str]:
    runner = Runner()
    known = [
        tool
        for tool in backends(platforms.facts_of_this_machine())
        if tool.name in ("perf", "strace", "qemu", "valgrind")
    ]
    usable = [tool for tool in known if tool.why_not() is None]
    rows = [
        f"| program | native, s | {' | '.join(f'{tool.name}, times' for tool in usable)} |",
        "|---" * (2 + len(usable)) + "|",
    ]
    for name, command in programs.items():
        small = smaller(folder, name, command)
        alone = statistics.median(runner.execute(small, quiet=True).wall_s for _ in range(3))
        times = [tool.count(small, runner).runtime_s or 0.0 for tool in usable]
        rows.append(f"| {name} | {alone:.2f} | {' | '.join(f'{t / alone:.3g}' for t in times)} |")
    return rows


#: Inputs of the testbed that take some tenths of a second, of different kinds.
TESTBED = (
    "triad size=4000000 sweeps=10 precision=double",
    "bfs size=300000 degree=16 kind=random",
    "nbody size=1408 steps=3 precision=double",
    "merge_sort size=400000 presorted=0.0",
    "spmv_csr size=250000 nonzeros=20 spread=1.0 sweeps=4",
)
BUILT = Path(__file__).resolve().parent.parent / "testbed" / "build" / "testbed-cpu"


def emulators(programs: dict[str, list[str]]) -> list[str]:
    """Return processor time under qemu and valgrind over that without them, which a busy machine disturbs less."""
    known = [tool for tool in backends(platforms.facts_of_this_machine()) if tool.name in ("qemu", "valgrind")]
    usable = [tool for tool in known if tool.why_not() is None]
    heads = " | ".join(f"{tool.name}, times" for tool in usable)
    rows = [f"| program | native, CPU s | {heads} |", "|---" * (2 + len(usable)) + "|"]
    for name, command in programs.items():
        alone = min(cpu_s(lambda command=command: Runner().execute(command, quiet=True)) for _ in range(3))
        times = [cpu_s(lambda tool=tool, command=command: tool.count(command, Runner())) for tool in usable]
        rows.append(f"| {name} | {alone:.3f} | {' | '.join(f'{t / alone:.3g}' for t in times)} |")
    return rows


def cpu_s(execute: Callable[[], object]) -> float:
    """Return the processor time of the children that a call starts and waits for."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    execute()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def to_emulate(folder: Path, programs: dict[str, list[str]]) -> dict[str, list[str]]:
    """Return programs of one to several tenths of a second: everyday ones, and inputs of the testbed."""
    data = folder / "text"
    data.write_text("\n".join(str(number * number % 1_000_003) for number in range(200_000)))
    small = {"dgemm": [*programs["dgemm"][:1], "300"]}
    small["python"] = [*programs["python"][:-1], programs["python"][-1].replace("20_000_000", "300_000")]
    small["gzip"] = ["gzip", "-kc", str(data)]
    if BUILT.exists():
        small |= {f"testbed {line}": [str(BUILT), *line.split(), "--count", "--threads", "1"] for line in TESTBED}
    return small


def sorting(folder: Path) -> list[str]:
    """Time reading and sorting a LAMMPS profile, as the valgrind back end does."""
    if not shutil.which("lmp") or not shutil.which("valgrind"):
        return ["LAMMPS or valgrind is not installed; the sorting of instructions was not timed."]
    (folder / "in.small").write_text(MELT.format(cells=8, steps=50))
    command = ["valgrind", "--tool=callgrind", "--dump-instr=yes", "--cache-sim=yes", "--branch-sim=yes"]
    command += [f"--callgrind-out-file={folder}/out.%p", "lmp", "-in", str(folder / "in.small"), "-log", "none"]
    subprocess.run(command, check=True, capture_output=True)
    path = max(folder.glob("out.*"), key=lambda file: file.stat().st_size)
    rows = ["| step | s |", "|---|---|"]
    reading, classifying = [], []
    for _ in range(5):
        start = time.perf_counter()
        profile = callgrind.read(path)
        reading.append(time.perf_counter() - start)
        instructions.decoder.cache_clear()
        start = time.perf_counter()
        mix = instructions.mix(profile.executions)
        classifying.append(time.perf_counter() - start)
    addresses = sum(map(len, profile.executions.values()))
    rows.append(f"| read {path.stat().st_size / 1e6:.1f} MB of callgrind | {statistics.median(reading):.2f} |")
    what = f"sort {addresses:,} instructions, executed {mix.classified:,} times"
    rows.append(f"| {what} | {statistics.median(classifying):.2f} |")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="write overhead.md beside this file")
    options = parser.parse_args()
    os.environ.setdefault("OMPI_ALLOW_RUN_AS_ROOT", "1")
    os.environ.setdefault("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        programs = commands(folder)
        page = [
            "# What measuring costs",
            "",
            "`python benchmarks/overhead.py --write`; medians, each ratio from executions in turn in one run.",
            "",
            f"## The native pass: at most 1.15 ({PAIRS} pairs)",
            "",
            *native(programs),
            "",
            "## Under a tool that counts (wall time over native; smaller inputs)",
            "",
            *tools(folder, programs),
            "",
            "perf takes about 0.2 s to set its tracepoints up and down, whatever the program.",
            "",
            "## Executing every instruction: qemu beside valgrind (processor time over native)",
            "",
            *emulators(to_emulate(folder, programs)),
            "",
            "With what qemu needs for page faults before main: one more native execution.",
            "",
            "## Sorting the instructions of a LAMMPS profile: under 2 s",
            "",
            *sorting(folder),
            "",
        ]
    text = "\n".join(page)
    print(text)
    if options.write:
        (Path(__file__).parent / "overhead.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
