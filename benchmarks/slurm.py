"""What the plugin costs a Slurm controller: sbatch with and without it in one run, and its lookup alone.

Brings two real controllers up on loopback, with and without the plugin, which take turns, so that a busy machine
disturbs both equally; jobs end in the same partition of both. Then how soon others are answered while scripts of 64 kB
that were made to keep the plugin busy are submitted, and what becomes of 1,000 jobs of an ordinary user while tables
are rewritten, missing and blocked, and the controller is configured anew. Needs Slurm, munge and Lua (Debian:
slurm-wlm slurm-wlm-basic-plugins munge lua5.1 lua5.4).
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.schedule.slurm import hostile
from tests.schedule.slurm.cluster import PROGRAMS, Cluster

from crossperf.schedule.slurm import setup
from crossperf.schedule.slurm.site import Site
from crossperf.schedule.slurm.table import KeyRow, PartitionChoice, PartitionFacts, PlacementTable

KEYS = (10, 1_000, 10_000)
MORE_KEYS = (*KEYS, 100_000)
SUBMISSIONS = 200
ANSWERS, TURNS, LOOP = 100, 5, 1_000
CONTROLLERS = 5
SITE = Site.of("cpu=epyc-2,big=genoa,gpu=h200")
LUAS = ("lua5.1", "lua5.3", "lua5.4")
LOOKUP = """
slurm = { SUCCESS = 0, log_user = function() end, log_info = function(_, text) error(text) end }
local parts = {}
for _, name in ipairs({ "cpu", "big", "gpu" }) do
  parts[name] = { flag_default = name == "cpu" and 1 or 0, state_up = 3, total_nodes = 4, max_nodes = 4294967295 }
end
local crossperf = dofile(FOLDER .. "/crossperf.lua")
local remarks = ("# a remark in the script\\n"):rep(50)
local script = "#!/bin/bash\\n#SBATCH -N 1\\n" .. remarks .. "srun -n 4 ./app" .. LAST .. " in\\n"
local function once()
  local job = { name = "run.sh", user_name = "nobody", script = script, min_nodes = 1, min_cpus = 1, time_limit = 9 }
  local start = os.clock()
  crossperf.place(job, parts)
  local took = os.clock() - start
  assert(job.partition == "big")
  return took * 1e3
end
local first, rest = once(), {}
for i = 1, 500 do rest[i] = once() end
table.sort(rest)
print(first, rest[250], rest[495])
"""


def table(keys: int) -> PlacementTable:
    """Return a table of `keys` keys, all of which send jobs to the same partition."""
    times = (("big", 0.5, 0.4, 0.6), ("gpu", 0.7, 0.5, 0.9), ("cpu", 1.0, 1.0, 1.0))
    row = KeyRow(tuple(PartitionChoice(*choice) for choice in times), 600.0)
    facts = tuple(PartitionFacts(place.partition, place.platform, 2, 2, 4000, ("x86",), {}) for place in SITE.places)
    return PlacementTable("cpu", "fastest", facts, {(f"app{number}", "", ""): row for number in range(keys)})


def installer(keys: int) -> Callable[[Path], None]:
    def install(folder: Path) -> None:
        setup.write(folder, setup.files(folder, SITE))
        table(keys).write(folder / setup.TABLE)

    return install


def submissions(keys: int | None) -> tuple[list[float], list[float]]:
    """Return the milliseconds of each sbatch with the plugin and without, taken in turns; ``None``: both without."""
    ours: list[float] = []
    theirs: list[float] = []
    plugin = None if keys is None else installer(keys)
    name = "app0" if keys is None else f"app{keys - 1}"
    with Cluster(plugin, nodes=()) as advised, Cluster(nodes=()) as bare:
        for number in range(SUBMISSIONS):
            pair = [(advised, ours), (bare, theirs)]
            for cluster, times in pair if number % 2 else reversed(pair):
                place = [] if cluster is advised and plugin else ["-pbig"]
                start = time.perf_counter()
                cluster.submit("--hold", f"-J{name}", "-t5", *place)
                times.append(1e3 * (time.perf_counter() - start))
        placed = advised.output("squeue", "-h", "-o%P").split()
        assert placed == ["big"] * SUBMISSIONS, "a job was lost, or not placed"
    return ours, theirs


def sbatch_rows() -> list[str]:
    rows = ["| keys | with, ms | without, ms | added in a pair of submissions, ms: each pair of controllers |"]
    rows.append("|---|---|---|---|")
    for keys in (None, *KEYS):
        ours: list[float] = []
        theirs: list[float] = []
        added = []
        # A controller may be lucky with where it lies in memory and on which core, so there are several.
        for _ in range(CONTROLLERS):
            with_it, without = submissions(keys)
            added.append(statistics.median(mine - other for mine, other in zip(with_it, without, strict=True)))
            ours += with_it
            theirs += without
        each = ", ".join(f"{value:+.2f}" for value in sorted(added))
        what = "both without" if keys is None else f"{keys:,}"
        rows.append(f"| {what} | {statistics.median(ours):.2f} | {statistics.median(theirs):.2f} | {each} |")
    return rows


def answer_rows() -> list[str]:
    """Return how soon sinfo is answered while scripts made to keep the plugin busy are submitted in a loop.

    Controllers with the plugin and without take turns, so that other work on the machine disturbs both equally.
    """
    rows = ["| | scripts of 64 kB | sinfo: median, ms | 99th percentile, ms | longest, ms | of that it waited for a"]
    rows[0] += " processor, ms | submission, in the controller, ms |"
    rows.append("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        scripts = []
        for number, text in enumerate(hostile.SCRIPTS.values()):
            path = Path(name) / f"{number}.sh"
            path.write_text("#!/bin/bash\n" + text.replace("\0", "x"))
            scripts.append(str(path))
        with Cluster(installer(1_000), nodes=()) as advised, Cluster(nodes=()) as bare:
            clusters = {"with the plugin": advised, "without": bare}
            quiet = {what: _answers(cluster) for what, cluster in clusters.items()}
            busy: dict[str, list[Answered]] = {what: [] for what in clusters}
            submitted = Counter[str]()
            for _ in range(TURNS):
                for what, cluster in clusters.items():
                    with _submitting(cluster, scripts) as count:
                        busy[what] += _answers(cluster)
                    submitted[what] += count[0]
            for what, cluster in clusters.items():
                average = re.search(r"REQUEST_SUBMIT_BATCH_JOB.*?ave_time:(\d+)", cluster.output("sdiag"))
                assert average
                rows.append(_answer_row(f"{what}, alone", 0, quiet[what], "-"))
                took = f"{int(average[1]) / 1e3:.2f}"
                rows.append(_answer_row(f"{what}, meanwhile", submitted[what], busy[what], took))
    return rows


class Answered(NamedTuple):
    """How long a command took, and how long of that it was ready to run and had no processor, in ms."""

    wall: float
    waited: float


def _answer_row(what: str, submitted: int, answers: list[Answered], took: str) -> str:
    times = sorted(answers)
    end = times[int(0.99 * len(times))].wall
    middle = statistics.median(answer.wall for answer in times)
    last = times[-1]
    return f"| {what} | {submitted:,} | {middle:.1f} | {end:.1f} | {last.wall:.1f} | {last.waited:.1f} | {took} |"


@contextmanager
def _submitting(cluster: Cluster, scripts: Sequence[str]) -> Iterator[list[int]]:
    """Submit scripts one after the other until the block ends; yield how many."""
    done, count = threading.Event(), [0]

    def submit() -> None:
        for script in itertools.cycle(scripts):
            if done.is_set():
                return
            cluster.output("sbatch", "--hold", "-o/dev/null", script)
            count[0] += 1

    thread = threading.Thread(target=submit)
    thread.start()
    try:
        yield count
    finally:
        done.set()
        thread.join()


def _answers(cluster: Cluster) -> list[Answered]:
    """Return how long each of some calls of sinfo took."""
    answers = []
    for _ in range(ANSWERS):
        start = time.perf_counter()
        process = subprocess.Popen(["sinfo"], env=cluster.environment, stdout=subprocess.DEVNULL)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and the kernel still knows of it
        wall = 1e3 * (time.perf_counter() - start)
        waited = int(Path(f"/proc/{process.pid}/schedstat").read_text().split()[1]) / 1e6
        assert process.wait() == 0
        answers.append(Answered(wall, waited))
    return answers


TIMED = """
local submit = slurm_job_submit
function slurm_job_submit(job_desc, part_list, submit_uid)
  local start = os.clock()
  local status = submit(job_desc, part_list, submit_uid)
  slurm.log_info("%s", ("crossperf took %.6f s"):format(os.clock() - start))
  return status
end
return slurm.SUCCESS
"""


def promise_rows() -> list[str]:
    """Return what became of jobs of an ordinary user while the table and the configuration changed under them."""

    def install(folder: Path) -> None:
        installer(1_000)(folder)
        plugin = folder / setup.PLUGIN
        text = plugin.read_text().rstrip()
        plugin.write_text(text.removesuffix("return slurm.SUCCESS") + TIMED)

    statuses: list[int] = []
    times: list[float] = []
    with Cluster(install, nodes=()) as cluster:
        path = cluster.etc / setup.TABLE
        for number in range(LOOP):
            if number % 50 == 0:
                cluster.output("scontrol", "reconfigure")
            if number % 10 == 0:
                path.unlink(missing_ok=True)
                if number % 30 == 0:
                    table(1_000 + number).write(path)
                elif number % 30 == 10:
                    os.mkfifo(path)
            start = time.perf_counter()
            options = ("--hold", "-o/dev/null", f"-Japp{number % 1_000}", "-t5")
            statuses.append(cluster.run("sbatch", *options, "--wrap=true", user="nobody").returncode)
            times.append(1e3 * (time.perf_counter() - start))
        kept = len(cluster.output("squeue", "-h").splitlines())
        where = Counter(cluster.output("squeue", "-h", "-o%P").split())
        log = (cluster.folder / "slurmctld.log").read_text()
    took = sorted(1e3 * float(text) for text in re.findall(r"crossperf took ([0-9.]+) s", log))
    refused = sum(status != 0 for status in statuses)
    p99 = int(0.99 * len(times))
    times.sort()
    return [
        f"Of {LOOP:,} submissions {refused} were refused and {LOOP - kept} lost; they went to "
        f"{', '.join(f'{name} {count:,}' for name, count in where.most_common())}.",
        f"sbatch took {statistics.median(times):.1f} ms in the median, {times[p99]:.1f} ms at the 99th percentile;",
        f"the plugin took {statistics.median(took):.2f} ms of the controller's processor time in the median, "
        f"{took[int(0.99 * len(took))]:.2f} ms at the 99th percentile, {took[-1]:.2f} ms at most.",
    ]


def lookup_rows(luas: Sequence[str]) -> list[str]:
    rows = ["| keys | table, kB | Lua | first, ms | median, ms | 99th percentile, ms |", "|---|---|---|---|---|---|"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for keys in MORE_KEYS:
            installer(keys)(folder)
            size = (folder / setup.TABLE).stat().st_size / 1e3
            for lua in luas:
                values = setup.lua(str(folder)), setup.lua(str(keys - 1))
                program = f"local FOLDER, LAST = {values[0]}, {values[1]}\n{LOOKUP}"
                done = subprocess.run([lua, "-"], input=program, text=True, capture_output=True, check=True)
                first, median, end = map(float, done.stdout.split())
                rows.append(f"| {keys:,} | {size:,.0f} | {lua[3:]} | {first:.3f} | {median:.3f} | {end:.3f} |")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="write slurm.md beside this file")
    options = parser.parse_args()
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    luas = [lua for lua in LUAS if shutil.which(lua)]
    if missing or not luas:
        raise SystemExit(f"not installed: {', '.join(missing) or 'lua5.1'}; the docstring names the packages")
    version = subprocess.run(["slurmctld", "-V"], text=True, capture_output=True, check=True).stdout.strip()
    page = [
        "# What the plugin costs a Slurm controller",
        "",
        f"`python benchmarks/slurm.py --write` on {datetime.now(UTC):%Y-%m-%d}: {version}, {os.cpu_count()} cores, "
        f"load {os.getloadavg()[0]:.1f} when it began, priority {os.nice(0)} (`nice`; below 0 other work waits).",
        "",
        f"## sbatch: {CONTROLLERS} pairs of controllers, {SUBMISSIONS} submissions to each in turns (goal: under 10 ms "
        "added)",
        "",
        *sbatch_rows(),
        "",
        "## The lookup alone, outside of the controller (goal: under 5 ms)",
        "",
        "A job that is known by the program of its script, so two keys are sought in vain before. Debian's",
        "Slurm runs Lua 5.1.",
        "",
        *lookup_rows(luas),
        "",
        "## Others are answered while scripts made to keep the plugin busy are submitted (goal: sinfo within 100 ms)",
        "",
        *answer_rows(),
        "",
        f"## {LOOP:,} jobs of an ordinary user while tables are rewritten, missing and blocked (goal: none lost, 5 ms)",
        "",
        *promise_rows(),
        "",
    ]
    text = "\n".join(page)
    print(text)
    if options.write:
        (Path(__file__).parent / "slurm.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
