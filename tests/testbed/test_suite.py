from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from crossperf import campaign
from crossperf.collect.ncu import why_no_gpu
from tests.collect.real import need
from tests.testbed import data_reference, linear_reference, physics_reference

TESTBED = Path(__file__).parents[2] / "testbed"
SPEC = campaign.read(TESTBED / "campaign.toml")
REFERENCES = {
    name: function
    for module in (linear_reference, physics_reference, data_reference)
    for name, function in vars(module).items()
    if callable(function) and name in {work.workload for work in SPEC.works}
}
#: The first input of each workload is its smallest.
SMALLEST = {work.workload: work for work in reversed(SPEC.works)}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def program() -> Path:
    """The CPU suite, built by the command that the docs name."""
    need("g++", "make")
    subprocess.run(["make", "-s", "-j2", "-C", str(TESTBED), "cpu"], check=True)
    return TESTBED / "build" / "testbed-cpu"


def answer(program: Path, work: campaign.Work, *options: str) -> dict[str, Any]:
    command = [str(program), *work.line.split(), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    facts: dict[str, Any] = json.loads(done.stdout)
    assert "error" not in facts, facts
    return facts


def parameters(work: campaign.Work) -> dict[str, Any]:
    def value(text: str) -> Any:
        for kind in (int, float):
            try:
                return kind(text)
            except ValueError:
                continue
        return text

    return {name: value(text) for name, text in (word.split("=") for word in work.input.split())}


def test_there_are_at_least_forty_workloads_with_sixteen_inputs_each() -> None:
    inputs = {name: [work for work in SPEC.works if work.workload == name] for name in SMALLEST}
    assert len(inputs) >= 40
    assert all(len(works) >= 16 for works in inputs.values())
    assert len(SPEC.works) >= 640
    assert len(set(SPEC.works)) == len(SPEC.works)


def test_the_program_knows_every_workload_of_the_campaign_and_no_other(program: Path) -> None:
    listed = subprocess.run([str(program), "--list"], capture_output=True, text=True, check=True).stdout
    assert {line.split("\t")[0] for line in listed.splitlines()} == {*SMALLEST, "nothing"}


@pytest.mark.parametrize("name", sorted(SMALLEST))
def test_the_smallest_input_has_the_answer_of_an_independent_reference(program: Path, name: str) -> None:
    work = SMALLEST[name]
    found = answer(program, work, "--passes", "1", "--repeats", "1")["checksum"]
    single = parameters(work).get("precision") == "float"
    assert found == pytest.approx(REFERENCES[name](parameters(work)), rel=2e-4 if single else 1e-8, abs=1e-12)


@pytest.mark.parametrize("name", sorted(SMALLEST))
def test_threads_and_repeated_passes_change_no_answer(program: Path, name: str) -> None:
    work = SMALLEST[name]
    once = answer(program, work, "--passes", "1", "--repeats", "1")["checksum"]
    often = answer(program, work, "--passes", "3", "--repeats", "2", "--threads", "2")["checksum"]
    single = parameters(work).get("precision") == "float"
    assert often == pytest.approx(once, rel=2e-4 if single else 1e-8, abs=1e-12)


def test_a_batch_of_passes_takes_at_least_five_milliseconds(program: Path) -> None:
    """On a busy machine a pass may be interrupted for long, and then fewer passes or repeats are made: try again."""

    def as_asked() -> bool:
        facts = answer(program, SMALLEST["triad"], "--repeats", "5")
        return len(facts["seconds"]) == 5 and min(facts["seconds"]) * facts["passes"] >= 5e-3

    assert any(as_asked() for _ in range(10))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nobody"], "no workload is called 'nobody'"),
        (["triad", "size=many"], "size: found 'many', expected a number"),
        (["triad", "size=-3"], "expected a whole number of at least 1"),
        (["triad", "sise=3"], "'sise' is no parameter of this workload"),
        (["triad", "precision=half"], "expected float or double"),
    ],
)
def test_a_bad_input_is_one_line_with_an_error(program: Path, words: list[str], sentence: str) -> None:
    done = subprocess.run([str(program), *words], capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 1
    assert sentence in json.loads(done.stdout)["error"]


def counts(inputs: str, name: str, folder: Path) -> list[dict[str, float]]:
    """Return the events of a pass of inputs, counted as the campaign counts them."""
    need("qemu-x86_64", "gcc")
    pytest.importorskip("capstone")
    (folder / "inputs.toml").write_text(inputs)
    spec_file = folder / "spec.toml"
    text = (TESTBED / "campaign.toml").read_text()
    start, end = text.index("inputs ="), text.index("\nrepeats")
    spec_file.write_text(text[:start] + 'inputs = ["inputs.toml"]' + text[end:].replace("build/", f"{TESTBED}/build/"))
    spec = campaign.read(spec_file)
    campaign.count(spec, spec.counts[name], folder, jobs=2)
    lines = map(json.loads, (folder / "counts.jsonl").read_text().splitlines())
    return [line["events"] for line in lines if line["counts"] == name]


@pytest.mark.usefixtures("program")
def test_counting_sees_one_pass_and_nothing_around_it(tmp_path: Path) -> None:
    one, two = counts('[triad]\nsize = [10000]\nsweeps = [1, 2]\nprecision = ["double"]\n', "epyc", tmp_path)
    # AVX2 does four elements an instruction: a multiplication with addition, or two, for each.
    more = two["qemu.mix.float"] - one["qemu.mix.float"]
    assert more in (pytest.approx(2500, abs=20), pytest.approx(5000, abs=20))
    assert one["qemu.instructions"] < 30_000
    assert (one["qemu.parallel_regions"], two["qemu.parallel_regions"]) == (1, 2)


@pytest.mark.usefixtures("program")
def test_caches_are_as_hot_when_counted_as_when_timed(tmp_path: Path) -> None:
    """Lines of 134 MB fit the last cache of the one machine, where every sweep finds them, and not the other's."""
    inputs = "[daxpy]\nsize = [700000]\nstride = [12]\nsweeps = [1, 3]\n"
    size = 700_000
    one, three = counts(inputs, "xeon", tmp_path)
    assert one["qemu.d1_misses"] == pytest.approx(3 * size, rel=0.01)
    assert max(one["qemu.ll_misses"], three["qemu.ll_misses"]) < 0.01 * size
    (tmp_path / "counts.jsonl").unlink()
    one, three = counts(inputs, "epyc", tmp_path)
    # The first sweep reads two arrays and writes a third; the others read it in place of the first.
    assert one["qemu.ll_misses"] == pytest.approx(3 * size, rel=0.03)
    assert three["qemu.ll_misses"] == pytest.approx((3 + 2 + 2) * size, rel=0.03)


def test_the_cuda_build_compiles() -> None:
    need("nvcc", "make")
    subprocess.run(["make", "-s", "-j2", "-C", str(TESTBED), "gpu"], check=True)
    assert (TESTBED / "build" / "testbed-gpu").exists()


@pytest.mark.gpu
@pytest.mark.parametrize("name", sorted(SMALLEST))
def test_a_gpu_has_the_answer_of_the_reference(name: str) -> None:
    """On a machine with a GPU: pytest -m gpu tests/testbed."""
    if no_gpu := why_no_gpu():
        pytest.skip(no_gpu)
    subprocess.run(["make", "-s", "-j", "-C", str(TESTBED), "gpu"], check=True)
    work = SMALLEST[name]
    facts = answer(TESTBED / "build" / "testbed-gpu", work, "--passes", "2", "--repeats", "1")
    single = parameters(work).get("precision") == "float"
    assert facts["device"] == "gpu"
    assert facts["checksum"] == pytest.approx(
        REFERENCES[name](parameters(work)), rel=2e-4 if single else 1e-8, abs=1e-12
    )
