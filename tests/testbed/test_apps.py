"""The real applications of the testbed: their table, their inputs, and one of them from start to end."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from crossperf.campaign import spec
from crossperf.collect.process import Runner

APPS = Path(__file__).parents[2] / "testbed" / "apps"
sys.path.insert(0, str(APPS))

import apps  # noqa: E402
import bundle  # noqa: E402
import inputs  # noqa: E402
import run  # noqa: E402

TABLE = apps.read()
#: The input of gzip that is run from start to end.
INPUT = "text-3000.txt,level=1"


def needs(program: str) -> None:
    if shutil.which(program) is None:
        if os.environ.get("CI") == "true":
            pytest.fail(f"{program} is not installed")
        pytest.skip(f"{program} is not installed")


def test_there_are_enough_applications_of_enough_fields() -> None:
    assert len(TABLE) >= 25
    assert len({app.field for app in TABLE.values()}) >= 12
    assert sum(app.parallel for app in TABLE.values()) >= 10


@pytest.mark.parametrize("name", TABLE)
def test_an_application_has_six_inputs_with_names_of_their_own(name: str) -> None:
    labels = [apps.name_of(case) for case in TABLE[name].cases]
    assert len(labels) == len(set(labels)) >= 6
    assert not any("\t" in label for label in labels)


@pytest.mark.parametrize("name", TABLE)
def test_every_placeholder_has_values_and_every_value_a_place(name: str) -> None:
    app = TABLE[name]
    used = {key for word in app.templates for key in apps.PLACEHOLDER.findall(word)}
    for case in app.cases:
        assert used - apps.OWN == set(case)


@pytest.mark.parametrize("name", TABLE)
def test_every_input_file_can_be_made(name: str) -> None:
    for case in TABLE[name].cases:
        for file in TABLE[name].files(case):
            kind, *sizes = file.partition(".")[0].split("-")
            assert len(sizes) == len(inspect.signature(inputs.MAKERS[kind]).parameters) - 1


def test_random_draws_are_those_of_splitmix64() -> None:
    draws = inputs.Draws("")
    draws.next = 1
    # The first output of splitmix64 with the state 0 is e220a8397b1dcdaf; its upper 31 bits are taken.
    assert draws.below(2**31, 1).tolist() == [0xE220A8397B1DCDAF >> 33]


def test_small_inputs_have_known_digests() -> None:
    names = SMALL.split()
    assert {name.split("-")[0] for name in names} == set(inputs.MAKERS)
    whole = hashlib.sha256(b"".join(inputs.content(name) for name in names)).hexdigest()
    assert whole[:16] == "2bd165312e549156"


SMALL = """text-2.txt log-20.txt table-20.csv records-2.bin genome-9.fa reads-9-5-50.fq amplicons-9-5-50.fa sam-9-5.sam
proteins-2-2-40.fa ppm-32-24.ppm png-32-24.png y4m-32-24-3.y4m wav-1.wav sql-50.sql digraph-20-30.gv metis-5.graph
linear-5-6.lp whole-5-6.lp cnf-9-20.cnf pigeons-3.cnf csource-3.c asm-40.asm points-3-9.txt node-9.node
netlist-3-2.cir verilog-3-5.v solid-2-2-2.inp svm-5-40.txt pdf-2-3.pdf go-9-3.gtp digits-1-5.bc composites-40-2.txt"""


def test_products_of_two_primes_are_what_they_say() -> None:
    number = int(inputs.content("composites-12-1.txt"))
    factors = [n for n in range(2, number) if number % n == 0]
    assert len(factors) == 2 or number == factors[0] ** 2


def test_a_picture_without_compression_is_a_sound_png() -> None:
    zlib = pytest.importorskip("zlib")
    data = inputs.content("png-32-24.png")
    at = data.index(b"IDAT")
    size = int.from_bytes(data[at - 4 : at], "big")
    assert len(zlib.decompress(data[at + 4 : at + 4 + size])) == 24 * (1 + 3 * 32)


def test_serial_programs_are_listed_once() -> None:
    some = {"gzip": TABLE["gzip"], "pigz": TABLE["pigz"]}
    lines = run.runs(some, [1, 4], seed=3)
    assert len(lines) == len(TABLE["gzip"].cases) + 2 * len(TABLE["pigz"].cases)
    assert lines == run.runs(some, [1, 4], seed=3) != run.runs(some, [1, 4], seed=None)


def test_a_broken_last_line_is_run_again(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_bytes(b'{"a": 1}\n{"a":')
    assert run.complete(path) == 1
    assert path.read_bytes() == b'{"a": 1}\n'


def test_results_that_differ_between_threads_are_refused(tmp_path: Path) -> None:
    line = {"workload": "zstd", "input": "x", "threads": 1, "digest": "a", "status": "unchecked"}
    path = tmp_path / "results.jsonl"
    path.write_text(json.dumps(line) + "\n" + json.dumps(line | {"threads": 2, "digest": "b"}) + "\n")
    with pytest.raises(ValueError, match="zstd x: the outputs a and b differ"):
        run.accept(TABLE, [path])


def gzip_line(folder: Path, *more: str) -> dict[str, object]:
    command = [sys.executable, str(APPS / "run.py"), "gzip", INPUT, "1", "--inputs", str(folder / "inputs"), *more]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    line: dict[str, object] = json.loads(result.stdout)
    return line


def test_gzip_runs_from_start_to_end_here_and_from_a_bundle(tmp_path: Path) -> None:
    needs("gzip")
    needs("strip")
    line = gzip_line(tmp_path)
    by_hand = subprocess.run(["gzip", "-n1c", tmp_path / "inputs" / "text-3000.txt"], capture_output=True, check=True)
    assert line["digest"] == hashlib.sha256(by_hand.stdout).hexdigest()[:16]
    assert line["status"] == "ok"
    assert 0 < float(str(line["user_s"])) < float(str(line["seconds"])) + 0.1
    bundle.gather(TABLE["gzip"], tmp_path / "bundle")
    bundle.strip((tmp_path / "bundle").rglob("*"))
    assert gzip_line(tmp_path, "--bundle", str(tmp_path / "bundle"))["digest"] == line["digest"]


def test_a_program_that_fails_says_so(tmp_path: Path) -> None:
    needs("gzip")
    app = apps.App("bad", "test", [], ["/usr/bin/gzip"], ["gzip", "{x}"], [{"x": ["nothing"]}])
    line = run.measure(app, app.cases[0], 1, run.Place(tmp_path, None), {})
    assert line["status"] == "failed"
    assert "nothing" in str(line["message"])


def test_a_campaign_times_a_batch_of_whole_processes(tmp_path: Path) -> None:
    (tmp_path / "batch").write_text("gzip text-3000.txt,level=1\ngzip no-such-input\n")
    line = [sys.executable, str(APPS / "batch.py"), "--batch", str(tmp_path / "batch"), "--threads", "2"]
    environment = {**os.environ, "APPS_INPUTS": str(tmp_path / "inputs")}
    done = subprocess.run([*line, "--repeats", "2"], env=environment, capture_output=True, text=True, check=True)
    first, second = map(json.loads, done.stdout.splitlines())
    assert (first["workload"], first["input"], len(first["seconds"])) == ("gzip", "text-3000.txt,level=1", 2)
    assert min(first["seconds"]) > 0
    assert first["threads"] == 1
    assert first["page_faults"] > 50
    assert 3_000_000 < first["bytes_read"] < 3_010_000
    packed = subprocess.run(["gzip", "-n1c", tmp_path / "inputs" / "text-3000.txt"], capture_output=True, check=True)
    assert first["bytes_written"] == len(packed.stdout)
    assert "no input 'no-such-input'" in second["error"]


def test_a_process_is_counted_by_the_system_as_profiling_it_would_be(tmp_path: Path) -> None:
    needs("gzip")
    (tmp_path / "data").write_bytes(bytes(200_000))
    line = ["gzip", "-nc", str(tmp_path / "data")]
    program, variables = str(shutil.which("gzip")), {"PATH": "/usr/bin:/bin"}
    outcome = run.timed(run.Process(program, line, variables, tmp_path, "", run.all_cpus()))
    execution = Runner().execute(line, quiet=True)
    assert execution.io is not None
    assert outcome.code == execution.returncode == 0
    assert (outcome.bytes_read, outcome.bytes_written) == (execution.io["rchar"], execution.io["wchar"])
    assert outcome.page_faults == pytest.approx(int(execution.minor_faults or 0), rel=0.1)


def test_a_process_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    program = str(shutil.which("sleep"))
    outcome = run.timed(run.Process(program, ["sleep", "60"], {}, tmp_path, "", run.all_cpus()), limit_s=0.2)
    assert outcome.code is None
    assert outcome.seconds < 10


def test_the_chosen_inputs_are_six_of_each_program_and_can_be_visited_and_counted() -> None:
    campaign = spec.read(APPS / "campaign.toml")
    chosen: dict[str, list[str]] = {}
    for work in campaign.works:
        chosen.setdefault(work.workload, []).append(work.input)
        TABLE[work.workload].case(work.input)
    assert len(chosen) >= 36
    assert {len(set(labels)) for labels in chosen.values()} == {6}
    assert {TABLE[name].field for name in chosen} == {app.field for app in TABLE.values()}
    assert {mode.counts for mode in campaign.modes.values()} == {("epyc",), ("xeon",)}


def test_the_files_of_a_list_of_inputs_are_those_of_its_programs(tmp_path: Path) -> None:
    path = tmp_path / "list.toml"
    path.write_text('[gzip]\ninputs = ["text-3000.txt,level=1", "text-3000.txt,level=6"]\n')
    line = [sys.executable, str(APPS / "batch.py"), "--files", str(path)]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    assert done.stdout == "text-3000.txt\n"


def test_the_inputs_of_the_campaign_are_those_of_the_applications() -> None:
    line = [sys.executable, str(APPS / "batch.py"), "--inputs-file"]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == (APPS / "inputs.toml").read_text().strip()
