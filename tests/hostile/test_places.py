"""Whatever stands in the place of a file that a command reads: one sentence, soon, and nothing is written.

A pipe that nobody writes to, a link to itself, 40 GB of nothing, a device that never ends, a folder, noise, a line
without an end, brackets without an end; and numbers and names that no command was made for.
"""

from __future__ import annotations

import contextlib
import io
import os
import resource
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from crossperf import cli
from crossperf.datasets import toy
from tests.hostile.targets import BY_NAME, folder_of

DATA = Path(__file__).parents[1] / "data"
NAMES = ("--app", "a", "--input", "1", "--platform", "p")
SITE = ("--partitions", "a=cpu-a,b=gpu-a")
SIMULATE = ("schedule", "simulate", "--truth", "times.csv", "--machines", "machines.csv", "--jobs", "10")
#: A second is enough on a quiet machine.
SOON_S = 60


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(40 << 30)


#: What stands in the place of the file, by name.
KINDS: dict[str, Callable[[Path], object]] = {
    "a pipe": os.mkfifo,
    "a link to itself": lambda path: path.symlink_to(path.name),
    "40 GB of nothing": _sparse,
    "a device without an end": lambda path: path.symlink_to("/dev/zero"),
    "the memory of a process": lambda path: path.symlink_to("/proc/self/mem"),
    "a folder": Path.mkdir,
    "noise": lambda path: path.write_bytes(bytes((i * 7919 + i // 3) % 256 for i in range(5000))),
    "a row without an end": lambda path: path.write_bytes(b"a," * 60_000),
    "brackets without an end": lambda path: path.write_bytes(b'{"format":1,"partitions":' + b"[" * 200_000),
    "Latin-1": lambda path: path.write_bytes("app,input,platform,runtime_s\ncafé,1,p,1\n".encode("latin-1")),
}
#: The commands that read a file, with its name; ``{}`` stands for the file.
READERS: dict[str, tuple[tuple[str, ...], str]] = {
    **{f"info {end}": (("runs", "info", "{}"), end) for end in (".jsonl", ".csv", ".parquet", ".jsonl.gz", ".csv.gz")},
    "check": (("runs", "check", "{}"), ".jsonl"),
    "rename": (("runs", "rename", "{}", "--app", "a=b", "-o", "new.jsonl"), ".jsonl"),
    "compare": (("runs", "compare", "runs.jsonl", "{}"), ".csv"),
    "train": (("train", "{}", "-o", "new", "--model", "ridge"), ".jsonl"),
    "evaluate": (("evaluate", "{}", "--models", "median"), ".csv"),
    "predict": (("predict", "model", "{}"), ".jsonl"),
    "a model": (("predict", "{}", "runs.jsonl"), ""),
    "report": (("report", "{}", "-o", "new"), ".json"),
    "plot": (("plot", "order", "{}", "-o", "new.svg"), ".json"),
    "convert": (("convert", "{}", "-o", "new"), ".json"),
    "adapt": (("adapt", "model", "{}", "-o", "new"), ".jsonl"),
    "ask": (("ask", "--from", "{}"), ".jsonl"),
    "platforms": (("platforms", "--file", "{}"), ".json"),
    "platforms add": (("platforms", "--file", "{}", "add", "x"), ".json"),
    "campaign": (("campaign", "{}", "-o", "new"), ".toml"),
    **{f"import auto {end}": (("import", "auto", "{}", *NAMES), end) for end in (".csv", ".json", ".txt", "")},
    **{
        f"import {name}": (("import", name, "{}", *NAMES), end)
        for name, end in (
            *(("perf", ".txt"), ("papi", ".json"), ("ncu", ".csv"), ("rocprof", ".csv"), ("nvprof", ".csv")),
            *(("nsys", ".sqlite"), ("likwid", ".csv"), ("tau", ".0.0.0"), ("perf-data", ".data"), ("scorep", ".cubex")),
            *(("vtune", ".csv"), ("google-benchmark", ".json"), ("caliper", ".json"), ("hpctoolkit", "")),
            ("cross-modeling", ".csv"),
        )
    },
    "import table": (("import", "table", "runs.csv", "--map", "{}"), ".toml"),
    "import a table": (("import", "table", "{}", "--map", "map.toml"), ".csv"),
    **{f"truth {end}": (("schedule", "simulate", "--truth", "{}", *SIMULATE[4:]), end) for end in (".csv", ".json")},
    "machines": ((*SIMULATE[:4], "--machines", "{}", "--jobs", "10"), ".csv"),
    "a trace": ((*SIMULATE[:6], "--jobs", "{}"), ".swf"),
    **{
        f"a trace {name}": ((*SIMULATE[:6], "--jobs", "{}"), end)
        for name, end in (("as CSV", ".csv"), ("of Philly", ""), ("packed", ".swf.gz"))
    },
    "a trace of Gavel": ((*SIMULATE[:6], "--jobs", "{}"), ".trace"),
    "a map of jobs": ((*SIMULATE[:6], "--jobs", "trace.swf", "--map", "{}"), ".csv"),
    "outages": ((*SIMULATE, "--maintenance", "{}"), ".csv"),
    "predictions": ((*SIMULATE, "--predictions", "{}"), ".json"),
    "slurm table": (("slurm", "table", "--predictions", "{}", *SITE, "-o", "new"), ".json"),
    "slurm times": (("slurm", "table", "--times", "{}", *SITE, "-o", "new"), ".csv"),
    "learned": (("slurm", "table", "--times", "times.csv", "--learned", "{}", *SITE, "-o", "new"), ".jsonl"),
    "a site": (("slurm", "setup", "--partitions", "{}", "-o", "new"), ".json"),
    "a site as TOML": (("slurm", "setup", "--partitions", "{}", "-o", "new"), ".toml"),
    "a site of a campaign": (("campaign", "spec.toml", "-o", "new", "--site", "{}"), ".toml"),
    "a folder of a campaign": (("campaign", "status", "{}"), ""),
    "a folder to cancel": (("campaign", "cancel", "{}"), ""),
    "a site as CSV": (("slurm", "setup", "--partitions", "{}", "-o", "new"), ".csv"),
    "sacct": (("slurm", "learn", "--sacct-file", "{}", *SITE, "-o", "new.jsonl"), ".txt"),
    "shadow": (("slurm", "report", "--sacct-file", "{}"), ".txt"),
    "profile": (("profile", "--backend", "os", "--repeats", "1", "-o", "{}", "true"), ".jsonl"),
}
#: What is a table of its own kind, or a log that lines may be added to.
SOUND = {("profile", "brackets without an end"), ("learned", "a folder")}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a sound file of each kind."""
    folder = tmp_path_factory.mktemp("world")
    table = toy.make_table(apps=3, inputs=2, repeats=1, seed=1)
    for end in ("jsonl", "csv"):
        table.write(folder / f"runs.{end}")
    (folder / "model").mkdir()
    for name, content in folder_of("ridge").items():
        (folder / "model" / name).write_bytes(content)
    (folder / "times.csv").write_bytes(b"app,input,cpu-a,gpu-a\nlu,1,1.0,2.0\nlu,2,3.0,1.0\n")
    (folder / "machines.csv").write_bytes(b"machine,size\ncpu-a,4\ngpu-a,4\n")
    (folder / "trace.swf").write_bytes(BY_NAME["swf"].sound())
    (folder / "map.toml").write_bytes(BY_NAME["mapping"].sound())
    (folder / "spec.toml").write_bytes(BY_NAME["spec-programs"].sound())
    return folder


@contextlib.contextmanager
def bounded() -> Iterator[None]:
    """Let nothing take longer, or more memory, than a person and a machine have."""

    def late(*_: Any) -> None:
        raise TimeoutError(f"no answer within {SOON_S} s")

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(SOON_S)
    resource.setrlimit(resource.RLIMIT_AS, (used + (4 << 30), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def answer(arguments: tuple[str, ...]) -> tuple[int, str, str]:
    """Return the exit status of a command, what it printed, and what it said; what is a traceback is raised."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), bounded():
        try:
            cli.main(arguments)
        except SystemExit as end:
            return int(end.code or 0), out.getvalue(), err.getvalue()
    raise AssertionError(arguments)


def refused(arguments: tuple[str, ...]) -> str:
    """Return the one sentence that a command ends with."""
    status, _, said = answer(arguments)
    lines = [line for line in said.splitlines() if line.startswith("error: ")]
    assert status != 0, said
    assert len(lines) == 1, said
    return lines[0]


@pytest.fixture
def here(world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = Path(shutil.copytree(world, tmp_path / "here"))
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("reader", READERS)
def test_what_stands_in_the_place_of_a_file_is_refused_in_one_sentence(reader: str, here: Path) -> None:
    arguments, end = READERS[reader]
    for kind, make in KINDS.items():
        if (reader, kind) in SOUND:
            continue
        path = here / f"bad{end}"
        make(path)
        before = sorted(other.name for other in here.iterdir())
        own = tuple(f"bad{end}" if word == "{}" else word.replace("{}", f"bad{end}") for word in arguments)
        if reader == "check":  # problems are its result
            assert answer(own)[0] == 1, kind
        else:
            assert "bad" in refused(own), kind
        assert sorted(other.name for other in here.iterdir() if other.suffix != ".lock") == before, kind
        shutil.rmtree(path) if kind == "a folder" else path.unlink()


#: Numbers, names and files that no command was made for, each with a part of its sentence.
ODD: dict[str, tuple[tuple[str, ...], str]] = {
    "a table of 10 ** 20 applications": (("toy", "-o", "t.csv", "--apps", "9" * 20), "10,000,000 runs at most"),
    "endless noise": (("toy", "-o", "t.csv", "--noise", "inf"), "noise of 0 or more"),
    "no noise": (("toy", "-o", "t.csv", "--noise", "nan"), "noise of 0 or more"),
    "10 ** 20 repeats": (("profile", "--backend", "os", "--repeats", "9" * 20, "true"), "at most 100,000"),
    "10 ** 20 trees": (
        ("train", "runs.jsonl", "-o", "m", "--model", "extra-trees", "--set", f"n_estimators={'9' * 20}"),
        "a number of at most 64 bits",
    ),
    "10 ** 20 jobs": ((*SIMULATE[:6], "--jobs", "9" * 20), "expected 1 to 100,000,000"),
    "hardly a load": ((*SIMULATE, "--utilisation", "1e-320"), "a share above 0 and up to 10"),
    "no half-life": (
        ("slurm", "table", "--times", "times.csv", *SITE, "-o", "t", "--half-life", "nan"),
        "'nan' is no finite number",
    ),
    "no minutes": (("campaign", "spec.toml", "-o", "c", "--minutes", "nan"), "'nan' is no finite number"),
    "no sample": (("train", "runs.jsonl", "-o", "m", "--sample", "0"), "0 is not in the range"),
}


@pytest.mark.parametrize("what", ODD)
def test_an_odd_number_is_refused_in_one_sentence(what: str, here: Path) -> None:
    arguments, sentence = ODD[what]
    before = len(list(here.iterdir()))
    assert sentence in refused(arguments)
    assert len(list(here.iterdir())) == before


_PLATFORM = '\n[platforms.first]\ncommand = ["true", "{n}"]\n'
#: Specs of campaigns, and inputs of them, that cannot be measured.
SPECS: dict[str, tuple[str, str, str]] = {
    "too many visits": ('visits = 9999999999\ninputs = ["i.toml"]' + _PLATFORM, "[w]\nn = [1]", "visits is 9999999999"),
    "a zero in a command": (
        'inputs = ["i.toml"]\n[platforms.a]\ncommand = ["true", "a\\u0000"]',
        "",
        "a zero character",
    ),
    "a zero in an input": ('inputs = ["i.toml"]' + _PLATFORM, '[w]\nn = ["a\\u0000"]', "a zero character"),
    "a million million inputs": (
        'inputs = ["i.toml"]' + _PLATFORM,
        "[w]\n" + "".join(f"p{i} = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]\n" for i in range(12)),
        "1,000,000,000,000 inputs, expected 1,000,000 at most",
    ),
    "deep lists": ("a = " + "[" * 3000, "", "nested more than 50 deep"),
    "a number for inputs": ("inputs = 5" + _PLATFORM, "", "inputs is 5, expected a list of files"),
    "no placeholder": (
        'inputs = ["i.toml"]\n[platforms.a]\ncommand = ["true", "{m}"]',
        "[w]\nn = [1]",
        "{m} in its command",
    ),
    "a device for inputs": ('inputs = ["/dev/zero"]' + _PLATFORM, "", "it is no regular file"),
}


@pytest.mark.parametrize("what", SPECS)
def test_a_campaign_that_cannot_be_measured_is_refused_in_one_sentence(what: str, here: Path) -> None:
    spec, inputs, sentence = SPECS[what]
    (here / "spec.toml").write_text(spec)
    (here / "i.toml").write_text(inputs)
    assert sentence in refused(("campaign", "spec.toml", "-o", "new"))
    assert not (here / "new").exists()


#: Sites, times and traces that are none.
FILES: dict[str, tuple[str, bytes, tuple[str, ...], str]] = {
    "a site of format 99": (
        "s.json",
        b'{"format": 99, "partitions": [{"partition": "a", "platform": "b"}]}',
        ("slurm", "setup", "--partitions", "s.json", "-o", "new"),
        "found format 99, expected 1. Upgrade crossperf",
    ),
    "a site with half a character": (
        "s.json",
        b'{"format": 1, "partitions": [{"partition": "\\ud800", "platform": "b"}]}',
        ("slurm", "setup", "--partitions", "s.json", "-o", "new"),
        "half a character",
    ),
    "a site with a long cell": (
        "s.csv",
        b"partition,platform\n" + b"a" * 200_000 + b",b\n",
        ("slurm", "setup", "--partitions", "s.csv", "-o", "new"),
        "does not read as CSV",
    ),
    "a trace with a header of 5,000 digits": (
        "t.swf",
        b"; MaxProcs: " + b"9" * 5000 + b"\nhello\n",
        (*SIMULATE[:6], "--jobs", "t.swf"),
        "found 1 columns, expected 18",
    ),
    "times of 5,000 digits": (
        "t.json",
        b'{"modes": ["a"], "workloads": [{"app": "a", "input": "1", "times": {"a": ' + b"9" * 5000 + b"}}]}",
        ("schedule", "simulate", "--truth", "t.json", *SIMULATE[4:]),
        "too many digits",
    ),
}


@pytest.mark.parametrize("what", FILES)
def test_a_file_of_a_site_or_a_simulation_that_is_none_is_refused(what: str, here: Path) -> None:
    name, data, arguments, sentence = FILES[what]
    (here / name).write_bytes(data)
    assert sentence in refused(arguments)
