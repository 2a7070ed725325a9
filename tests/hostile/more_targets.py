"""Readers of the files of other tools, of campaigns and of sites, with a sound file for each that is made here."""

from __future__ import annotations

import functools
import importlib.util
import json
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from crossperf import cluster, plain
from crossperf.campaign import ledger, log, merging, progress, spec, tasks
from crossperf.collect import unfinished
from crossperf.importers.detect import guess, import_runs
from crossperf.runs import jsonl
from crossperf.schedule.slurm import advise, history, shadow, site, table
from tests.hostile.target import DATA, Target
from tests.importers import (
    hpctoolkit_files,
    test_caliper,
    test_cross_modeling,
    test_likwid,
    test_nsys,
    test_nvprof,
    test_perf_printed,
    test_scorep,
    test_tau,
    test_vtune,
)
from tests.schedule.slurm.conftest import TABLE


def importing(format: str, file: str = "", beside: Callable[[], Mapping[str, bytes]] = dict) -> Callable[[Path], None]:  # noqa: A002
    """Return what imports a file; or a folder that holds it under a name, with others beside it."""

    def use(path: Path) -> None:
        if file:
            folder = path.parent / "profile"
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            for name, content in beside().items():
                (folder / name).write_bytes(content)
            path = Path(shutil.copy(path, folder / file)).parent
        for name in ("auto", format):
            if name == format or guess(path) == format:
                for run in import_runs(name, [path], app="a", input="1", platform="p").runs:
                    jsonl.line(run)

    return use


def recorded(*parts: str) -> Callable[[], bytes]:
    """Return what gives the bytes of a file that a real tool wrote."""
    return DATA.joinpath(*parts).read_bytes


def _written(write: Callable[[Path], object], name: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        write(path)
        return path.read_bytes()


def _google_benchmark() -> bytes:
    entry = {"name": "sort/64", "run_type": "iteration", "iterations": 9, "real_time": 2.5, "cpu_time": 2.4}
    facts = {"context": {"num_cpus": 2}, "benchmarks": [{**entry, "time_unit": "ms", "INSTRUCTIONS": 5e6}]}
    return json.dumps(facts).encode()


_THREADS = [(0, 0, {"REALTIME (sec)": 2.0, "PAPI_TOT_INS": 5e9}), (1, 0, {"REALTIME (sec)": 3.0, "PAPI_TOT_INS": 6e9})]
_METRICS = ["REALTIME (sec)", "PAPI_TOT_INS"]


@functools.cache
def _database(version: int) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "database"
        if version == 4:
            hpctoolkit_files.write_v4(folder, _THREADS, _METRICS, trace_ns=(10, 3_000_000_010))
        else:
            hpctoolkit_files.write_v3(folder, _THREADS, _METRICS)
        return {path.name: path.read_bytes() for path in folder.iterdir()}


def _of_database(version: int, name: str) -> Target:
    held = functools.partial(_database, version)
    use = importing("hpctoolkit", name, held)
    return Target(f"hpctoolkit-{version}-{name[-9:]}", "part", lambda: held()[name], use)


def _metric_db() -> str:
    return next(name for name in _database(3) if name.endswith(".metric-db"))


def _cali() -> bytes:
    metrics = {"inclusive#sum#time.duration": test_caliper.INCLUSIVE, "sum#papi.PAPI_TOT_INS": test_caliper.EXCLUSIVE}
    return _written(lambda path: test_caliper.cali(path, metrics), "a.cali")


def _cube() -> bytes:
    return _written(lambda path: test_scorep.written(path, test_scorep.members(packed=True)), "profile.cubex")


def _nsys() -> bytes:
    return _written(lambda path: test_nsys.written(path, test_nsys.SCHEMA, test_nsys.ROWS), "report.sqlite")


def _use_anchor(path: Path) -> None:
    """Import a CUBE file whose description is as given; archives find damage of their own before it is read."""
    other = test_scorep.written(path.with_name("p.cubex"), test_scorep.members() | {"anchor.xml": path.read_bytes()})
    importing("scorep")(other)


_NVPROF = test_nvprof.metric("step(float*, int)", 3, "inst_executed", "1000")
#: Formats of other profilers, by name: the name of a file, its bytes, and what reads it.
PROFILES = [
    Target("papi", "rank_000000.json", recorded("papi", "papi_hl_output", "rank_000000.json"), importing("papi")),
    Target("perf-json", "perf.json", recorded("perf", "software.json"), importing("perf")),
    Target("perf-csv", "perf.csv", recorded("perf", "software.csv"), importing("perf")),
    Target("perf-text", "perf.txt", test_perf_printed.ENGLISH.encode, importing("perf")),
    Target("ncu-csv", "ncu.csv", recorded("ncu", "gpu_known.csv"), importing("ncu")),
    Target("rocprof", "results.csv", recorded("rocprof", "results.csv"), importing("rocprof")),
    Target("google-benchmark", "bench.json", _google_benchmark, importing("google-benchmark")),
    Target("nvprof", "nvprof.csv", (test_nvprof.HEAD + _NVPROF).encode, importing("nvprof")),
    Target("likwid", "likwid.csv", (test_likwid.WHOLE + test_likwid.REGIONS).encode, importing("likwid")),
    Target("likwid-text", "likwid.txt", test_likwid.PRINTED.encode, importing("likwid")),
    Target("vtune", "report.csv", test_vtune.EVENTS.encode, importing("vtune")),
    Target("vtune-summary", "report.csv", test_vtune.SUMMARY.encode, importing("vtune")),
    Target("nsys", "report.sqlite", _nsys, importing("nsys")),
    Target("scorep", "profile.cubex", _cube, importing("scorep")),
    Target("scorep-anchor", "anchor.xml", test_scorep.ANCHOR.encode, _use_anchor),
    Target("tau", "part", lambda: test_tau.profile("TIME", 1e4).encode(), importing("tau", "profile.0.0.0")),
    Target(
        "cross-modeling",
        "results.json",
        lambda: json.dumps(test_cross_modeling.DESCRIBED | test_cross_modeling.COUNTED).encode(),
        importing("cross-modeling"),
    ),
    Target(
        "cross-modeling-csv",
        "all.csv",
        lambda: _written(lambda path: test_cross_modeling.combined(path, {}, {"args": "2"}), "all.csv"),
        importing("cross-modeling"),
    ),
    Target("caliper-json", "a.json", lambda: _written(test_caliper.split, "a.json"), importing("caliper")),
    *(_of_database(4, name) for name in ("meta.db", "profile.db", "trace.db")),
    *(_of_database(3, name) for name in ("experiment.xml", _metric_db())),
]
if importlib.util.find_spec("caliperreader"):
    PROFILES.append(Target("caliper", "a.cali", _cali, importing("caliper")))


_SPEC = b"""
inputs = ["inputs.toml"]
visits = 2
repeats = 3
seed = 1
limit_s = 5.5
calibration = ["quick n=1"]
start = "none"
[counts.here]
tool = "valgrind"
program = "program"
caches = "I1=32768,8,64 D1=32768,8,64 LL=1048576,16,64"
[platforms.first]
program = "program"
threads = 1
counts = "here"
[platforms.second]
class = "gpu"
command = ["./app", "{n}", "{input}", "{threads}"]
check = "stdout"
"""
_INPUTS = b'[quick]\nn = [1, 2, "3"]\nsize = [10]\n[whole]\ninputs = ["n=1 fast", "n=2"]\n'


def _use_spec(path: Path) -> None:
    path.with_name("inputs.toml").write_bytes(_INPUTS)
    _walk(spec.read(path))


def _use_inputs(path: Path) -> None:
    other = path.with_name("spec.toml")
    other.write_bytes(_SPEC)
    _walk(spec.read(other))


def _walk(read: spec.Spec) -> None:
    for mode in read.modes.values():
        for work in read.works[:20]:
            mode.line(work)


def _log() -> bytes:
    visit = {"platform": "first", "workload": "quick", "input": "n=1", "round": "r1", "seconds": [0.1, 0.2]}
    part = {"seconds": 0.5, "page_faults": 3}
    lines = [
        {"round": "r1", "platforms": ["first", "second"]},
        {"platform": "first", "round": "r1", "facts": {"cpu_model": "EPYC", "cores": 2}},
        {**visit, "passes": 2, "system": [{"maxrss": 5.0}], "set_up": part, "checksum": 1.5},
        {**visit, "error": "no such size", "seconds": []},
        {"platform": "first", "round": "r1", "start": True, "seconds": [0.01]},
    ]
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def _counted() -> bytes:
    copies = {"bytes_to_device": 1.0, "bytes_to_host": 2.0}
    facts = {"counts": "here", "workload": "quick", "input": "n=1", "events": {"Ir": 5.0}, "program": copies}
    return (json.dumps(facts) + "\n").encode()


def _use_log(path: Path) -> None:
    log.rounds(path.parent), log.starts(path.parent), log.machines(path.parent)
    for visit in log.timed(path.parent):
        visit.work, visit.spread  # noqa: B018


def _use_counted(path: Path) -> None:
    for counted in log.counted(path.parent):
        counted.work  # noqa: B018


_RUN = (
    b'{"runs_format": 1, "app": "a", "input": "1", "platform": "p", "runtime_s": 2.0, "run_id": "r1", "status": "ok"}\n'
)


def _use_unfinished(path: Path) -> None:
    """Add what a kill left behind, whatever it is; the file that it is for stays readable."""
    output = path.with_name("runs.jsonl")
    output.write_bytes(_RUN)
    unfinished.adopt_all(output)
    assert jsonl.read(output)[0].run_id == "r1"


def _site_json() -> bytes:
    return json.dumps(site.Site.of("cpu=epyc-2,gpu=h200:gres/gpu:1").to_json()).encode()


def _use_history(path: Path) -> None:
    reading = (history.from_jobcomp if path.suffix == ".log" else history.from_sacct_file)(path)
    mapped = site.Site.of("cpu=epyc-2,big=xeon")
    for job in reading.jobs:
        jsonl.line(history.run_of(job, "epyc-2", "cluster"))
    assert shadow.report(reading.jobs).lines is not None
    output = path.with_name("learned.jsonl")
    output.unlink(missing_ok=True)
    history.learn(reading.jobs, mapped, output)


_SCRIPT = b"#!/bin/bash\n#SBATCH -J lmp --time=1:00:00\n#SBATCH --comment 'crossperf=lmp'\nsrun ./lmp -in in.melt\n"


def _use_script(path: Path) -> None:
    submission = advise.parse([str(path), "more"], {})
    advise.parse(["-n", "2"], {}, path.read_bytes())
    submission.named("ada"), submission.nodes, submission.limit_s, submission.fixed


_SITE = b"""poll_s = 5
[defaults]
time = "1:00:00"
setup = ["module load gcc"]
[platforms.epyc-2]
partition = "cpu"
cpus = 16
exclusive = true
launcher = "srun -n 4"
[platforms.h200]
partition = "gpu"
gres = "gpu:1"
options = { reservation = "night" }
[workers]
partition = "cpu"
"""
_PROGRAMS = b"""visits = 2
[[programs]]
name = "gzip"
command = ["gzip", "-{level}", "{input}"]
inputs = ["level=1 a.txt", "level=9 b.txt"]
success = [0, 1]
[platforms.here]
threads = 2
"""
_JOBS = b"""{"format": 1, "array": "a-0", "platform": "p", "size": 2}
{"format": 1, "array": "a-0", "job": "17"}
{"format": 1, "array": "a-0", "element": 1, "outcome": "dead", "reason": "TIMEOUT", "cut_off": {"w 1": 2}, "round": "r"}
{"format": 1, "array": "a-1", "platform": "p", "size": 1}
{"format": 1, "array": "a-1", "lost": "refused"}
"""
_ELEMENT = b"""{"format": 1, "element": "a-0", "host": "n1", "clock": 1795003819.07, "version": "0.1.0", "job": "18"}
{"format": 1, "begun": "w 1"}
{"format": 1, "platform": "p", "round": "r", "workload": "w", "input": "1", "seconds": [1.0], "host": "n1"}
{"format": 1, "begun": "w 2"}
{"format": 1, "stopped": "time limit"}
"""


def _use_site(path: Path) -> None:
    for own in cluster.read(path).platforms.values():
        assert own.sbatch()["partition"] == own.partition
        assert own.warning_s >= 0


def _use_jobs(path: Path) -> None:
    known = ledger.Ledger(path.parent)
    assert all(own.array is None or own.array.id(0) for own in known.open)


def _tasks() -> bytes:
    works = (spec.Work("w", "1"), spec.Work("w", "2"))
    mode = spec.Mode("p", "cpu", Path("program"), 2)
    made = spec.Spec((), {"p": mode}, {}, 2, 1, programs={"w": spec.Program("w", ("true",), ("1",))})
    own = tasks.ArrayTasks(made, "p", 3, (tasks.ElementTask(works, "r", "", (0,), {"w 1": 1}),))
    return json.dumps({"format": 1, **plain.to_json(own)}).encode()


def _use_tasks(path: Path) -> None:
    (path.parent / "tasks").mkdir(exist_ok=True)
    path.replace(tasks.tasks_file(path.parent, "array"))
    for own in tasks.ArrayTasks.read(path.parent, "array").elements:
        assert len([work.line for work in own.works]) == len(own.works)


def _use_element(path: Path) -> None:
    """Merge what an element wrote, whatever it is."""
    own, output = tasks.element_folder(path.parent, "a", 0), path.parent / "merged"
    own.mkdir(parents=True, exist_ok=True)
    output.mkdir(exist_ok=True)
    (output / log.TIMES).unlink(missing_ok=True)
    path.replace(own / log.TIMES)
    merger = merging.Merger(output, path.parent)
    merger.merge("a", 0)
    tasks.cut_offs(merger.log("a", 0), dead=True)
    tasks.at_hand(merger.log("a", 0))


def _status() -> bytes:
    own = progress.SitePlatformProgress("p", 9, 3, 1, 2, 30.5, "Resources")
    return json.dumps({"format": 1, **plain.to_json(progress.SiteProgress((own,), 5.0))}).encode()


def _settings() -> bytes:
    own = ledger.SiteCampaign("0a1b", Path("jobs"), Path("spec.toml"), Path("site.toml"), ("p",), (), 3)
    return json.dumps({"format": 1, **plain.to_json(own)}).encode()


#: Files of campaigns and sites.
PLACES = [
    Target("site-toml", "site.toml", lambda: _SITE, _use_site),
    Target("spec-programs", "spec.toml", lambda: _PROGRAMS, _use_spec),
    Target("campaign-jobs", ledger.JOBS, lambda: _JOBS, _use_jobs),
    Target("campaign-tasks", "tasks.json", _tasks, _use_tasks),
    Target("campaign-element", "element.jsonl", lambda: _ELEMENT, _use_element),
    Target("campaign-status", progress.STATUS, _status, lambda path: str(progress.read_progress(path.parent))),
    Target("campaign-settings", ledger.SETTINGS, _settings, lambda path: ledger.read_settings(path.parent)),
    Target("spec", "spec.toml", lambda: _SPEC, _use_spec),
    Target("inputs", "inputs.toml", lambda: _INPUTS, _use_inputs),
    Target("campaign-log", log.TIMES, _log, _use_log),
    Target("campaign-counts", log.COUNTS, _counted, _use_counted),
    Target("unfinished", "runs.jsonl.unfinished-0", lambda: _RUN.replace(b"r1", b"r2") + _RUN, _use_unfinished),
    Target("site-json", "site.json", _site_json, site.read),
    Target("site-csv", "site.csv", lambda: b"partition,platform,gres\ncpu,epyc-2,\ngpu,h200,gpu:1\n", site.read),
    Target("slurm-table", "table", lambda: replace(TABLE, made=5).to_bytes(), table.read),
    Target("sacct", "sacct.txt", recorded("slurm", "sacct-22.05.txt"), _use_history),
    Target("jobcomp", "jobcomp.log", recorded("slurm", "jobcomp-22.05.log"), _use_history),
    Target("script", "job.sh", lambda: _SCRIPT, _use_script),
]
