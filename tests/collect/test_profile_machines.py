"""The name of this machine in its runs: registered, of a model, or new."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from crossperf import platforms
from crossperf.collect.profile import profile
from crossperf.runs import read_jsonl
from tests.collect.profiling import crossperf
from tests.collect.real import need


def test_a_registered_name_of_this_machine_is_taken_for_its_runs(tmp_path: Path) -> None:
    registry = tmp_path / "platforms.json"
    platforms.add(registry, platforms.Platform("mine", "cpu", platforms.facts_of_this_machine()))
    named = profile(["true"], repeats=1, backend="os", registry=registry)
    assert named.runs[0].platform == "mine"
    other = profile(["true"], repeats=1, backend="os", registry=registry, platform="other")
    assert other.runs[0].platform == "other"


def test_this_machine_becomes_a_platform_once_and_is_found_again(tmp_path: Path, environment: dict[str, str]) -> None:
    first = crossperf("profile", "--backend", "os", "true", cwd=tmp_path, env=environment)
    second = crossperf("profile", "--backend", "os", "true", cwd=tmp_path, env=environment)
    assert "added platform" in first.stderr
    assert "added platform" not in second.stderr
    (entry,) = platforms.read(tmp_path / "settings" / "crossperf" / "platforms.json")
    assert {run.platform for run in read_jsonl(tmp_path / "runs.jsonl")} == {entry.name}
    listed = crossperf("platforms", cwd=tmp_path, env=environment)
    assert listed.stdout.split()[0] == entry.name
    crossperf("platforms", "add", "other", "--set", "price_per_hour=2.5", cwd=tmp_path, env=environment)
    same = crossperf("platforms", "compare", entry.name, "other", "--json", "both.json", cwd=tmp_path, env=environment)
    facts = {row["fact"]: row for row in json.loads((tmp_path / "both.json").read_text())["facts"]}
    assert facts["price_per_hour"]["b"] == 2.5
    assert facts["cores"]["ratio"] == 1.0
    assert "cores" in same.stdout


def model_folder(folder: Path, *names: str) -> Path:
    folder.mkdir()
    (folder / "model.json").write_text(json.dumps({"format": 3, "platforms": names}))
    return folder


def test_this_machine_takes_the_name_that_the_model_has_for_it(tmp_path: Path, environment: dict[str, str]) -> None:
    registry = tmp_path / "settings" / "crossperf" / "platforms.json"
    facts = platforms.facts_of_this_machine()
    platforms.add(registry, platforms.Platform("old-name", "cpu", facts))
    platforms.add(registry, platforms.Platform("cluster-a", "cpu", facts))
    quick = ("profile", "--backend", "os", "--repeats", "1")
    # The registry's first match is the name without a model.
    assert "on old-name" in crossperf(*quick, "true", cwd=tmp_path, env=environment).stderr
    model_folder(tmp_path / "model", "cluster-a", "cluster-b")
    default = crossperf(*quick, "true", cwd=tmp_path, env=environment)
    assert "this machine is cluster-a to model" in default.stderr
    assert read_jsonl(tmp_path / "runs.jsonl")[-1].platform == "cluster-a"
    other = model_folder(tmp_path / "other", "cluster-b", "cluster-c")
    unknown = crossperf(*quick, "--model", other, "true", cwd=tmp_path, env=environment)
    assert "does not know this machine, old-name; it knows cluster-b, cluster-c. If it is one" in unknown.stderr
    named = crossperf(*quick, "--platform", "mine", "true", cwd=tmp_path, env=environment)
    assert "on mine: " in named.stderr
    assert "cluster-a" not in named.stderr


def test_a_machine_that_is_several_platforms_is_told_apart_by_its_threads(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    registry = tmp_path / "settings" / "crossperf" / "platforms.json"
    facts = platforms.facts_of_this_machine()
    for threads in (1, 2):
        entry = platforms.Platform(f"here-{threads}t", "cpu", replace(facts, more={"threads": threads}))
        platforms.add(registry, entry)
    model_folder(tmp_path / "model", "here-1t", "here-2t")
    environment = {name: text for name, text in environment.items() if name != "OMP_NUM_THREADS"}
    quick = ("profile", "--backend", "os", "--repeats", "1")
    assert crossperf(*quick, "--threads", "2", "true", cwd=tmp_path, env=environment).returncode == 0
    assert read_jsonl(tmp_path / "runs.jsonl")[-1].platform == "here-2t"
    unclear = crossperf(*quick, "true", cwd=tmp_path, env=environment)
    assert "this machine is here-1t or here-2t to model; choose with --threads or --platform" in unclear.stderr


def test_a_gpu_that_is_not_here_is_not_added_as_this_machine(tmp_path: Path, environment: dict[str, str]) -> None:
    if platforms.facts_of_this_machine().gpus:
        pytest.skip("this machine has a GPU")
    refused = crossperf("platforms", "add", "h200", "--class", "gpu", cwd=tmp_path, env=environment)
    assert refused.returncode == 1
    assert "h200: this machine shows no GPU" in refused.stderr
    given = ("--set", "gpu_model=NVIDIA H200", "--set", "price_per_hour=4")
    added = crossperf("platforms", "add", "h200", "--class", "gpu", *given, cwd=tmp_path, env=environment)
    assert added.returncode == 0
    (entry,) = platforms.read(tmp_path / "settings" / "crossperf" / "platforms.json")
    assert entry.facts.to_json() == {"gpu_model": "NVIDIA H200", "price_per_hour": 4}
    arguments = ("--backend", "os", "--platform", "a100", "--platform-class", "gpu", "true")
    profiled = crossperf("profile", *arguments, cwd=tmp_path, env=environment)
    assert "platform a100 was not added: this machine shows no GPU" in profiled.stderr


def test_the_ranks_of_a_launcher_and_the_name_of_its_program_are_recorded(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    need("mpirun")
    environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    command = ("mpirun", "--oversubscribe", "-n", "2", "sleep", "0.1")
    crossperf("profile", "--backend", "os", "--repeats", "1", "--", *command, cwd=tmp_path, env=environment)
    (run,) = read_jsonl(tmp_path / "runs.jsonl")
    assert (run.app, run.input, run.ranks) == ("sleep", "0.1 ranks=2", 2)
    assert "io_bytes_read" not in run.counters
    assert run.metadata["missing"]["io_bytes_read"]
