"""The array programs of the testbed on tiny inputs: against numpy by another road, between threads, as a process."""

from __future__ import annotations

import importlib
import itertools
import json
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the array programs are written in PyTorch")

ARRAYS = Path(__file__).parents[2] / "testbed" / "arrays"
SPEC = tomllib.loads((ARRAYS / "arrays.toml").read_text(encoding="utf-8"))
TINY = {
    "cholesky_solve": "systems=3 size=20",
    "cnn_training": "images=64 side=16 epochs=2",
    "conjugate_gradient": "side=6 rounds=36",
    "fft2d": "side=16 steps=5",
    "group_by": "rows=1000 groups=10 columns=3",
    "heat": "side=16 steps=5",
    "image_filter": "images=2 side=24",
    "kmeans": "points=200 features=4 clusters=3 rounds=4",
    "matmul_chain": "size=16 products=4",
    "mlp_training": "samples=512 hidden=8 epochs=3",
    "nbody": "bodies=20 steps=3",
    "option_pricing": "paths=200 steps=5",
    "pagerank": "nodes=50 degree=4 rounds=10",
    "prefix_sums": "series=3 length=100 rounds=2",
    "recommender": "items=100 users=30",
    "sorting": "rows=5 columns=40",
    "time_warping": "pairs=3 length=12",
    "transformer_inference": "sequences=3 length=10 width=64 layers=2",
}


@pytest.fixture(scope="module")
def harness() -> Iterator[Any]:
    """The frame of the programs; they are modules beside it."""
    threads = torch.get_num_threads()
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ARRAYS))
        yield importlib.import_module("harness")
    torch.set_num_threads(threads)


def measure(harness: Any, name: str, line: str, threads: int = 1) -> float:
    module = importlib.import_module(name)
    program = harness.Program(name, module.set_up, module.work)
    values = harness.parameters(line.split(), program.parameters)
    return float(program.measure(values, "cpu", threads)["checksum"])


def checksum(*parts: np.ndarray) -> float:
    """The checksum by its definition: weights 1 to 7 in turn, positive values count three times as much as negative."""
    flat = np.concatenate([np.asarray(part, dtype=np.float64).ravel() for part in parts])
    weight = np.resize(np.arange(1, 8), flat.size)
    return float(np.average(np.where(flat > 0, 1.5 * flat, -0.5 * flat), weights=weight))


def command(name: str, *words: str) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, str(ARRAYS / f"{name}.py"), *words]
    return subprocess.run(program, capture_output=True, text=True, timeout=120, check=False)


def cholesky_solve(root: np.ndarray, right: np.ndarray) -> float:
    size = root.shape[-1]
    matrix = np.stack([own @ own.T / size + np.eye(size) for own in root])
    return checksum(np.linalg.solve(matrix, right), np.linalg.slogdet(matrix)[1] / 2 / size)


def conjugate_gradient(right: np.ndarray, rounds: int) -> float:
    """The exact solution, which conjugate gradients reach after as many rounds as there are unknowns."""
    side = len(right)
    assert rounds == side**2
    line = 2 * np.eye(side) - np.eye(side, k=1) - np.eye(side, k=-1)
    matrix = np.kron(line, np.eye(side)) + np.kron(np.eye(side), line)
    return checksum(np.linalg.solve(matrix, right.ravel()))


def fft2d(state: np.ndarray, force: np.ndarray, damping: np.ndarray, steps: int) -> float:
    """Full complex transforms in double precision, with the damping mirrored to the other half."""
    side = len(state)
    mirrored = damping[:, np.minimum(np.arange(side), side - np.arange(side))]
    for _ in range(steps):
        state = np.fft.ifft2(np.fft.fft2(state + 0.1 * (force - state**3)) * mirrored).real
    return checksum(state)


def group_by(group: np.ndarray, value: np.ndarray, groups: int, columns: int) -> float:
    table = np.zeros((1 + 2 * columns, groups))
    np.add.at(table[0], group, 1)
    for column in range(columns):
        shifted = (group + column) % groups
        np.add.at(table[1 + 2 * column], shifted, value * (column + 1) / columns)
        np.maximum.at(table[2 + 2 * column], shifted, value * (column + 1) / columns)
    return checksum(table)


def heat(plate: np.ndarray, steps: int) -> float:
    """Each step as products with a matrix of second differences; the edge keeps its values."""
    side = len(plate)
    second = np.eye(side, k=1) + np.eye(side, k=-1) - 2 * np.eye(side)
    for _ in range(steps):
        change = 0.2 * (second @ plate + plate @ second)
        plate = plate + np.pad(change[1:-1, 1:-1], 1)
    return checksum(plate)


def kmeans(point: np.ndarray, centre: np.ndarray, rounds: int) -> float:
    inertia = []
    for _ in range(rounds):
        distance = ((point[:, None, :].astype(np.float64) - centre) ** 2).sum(axis=2)
        nearest = distance.argmin(axis=1)
        inertia.append(distance.min(axis=1).mean())
        centre = np.stack([point[nearest == own].mean(axis=0) for own in range(len(centre))])
    return checksum(np.array(inertia))


def matmul_chain(factor: np.ndarray, state: np.ndarray, products: int) -> float:
    """The scaling commutes with the products, so that it can be done once at the end."""
    result = np.linalg.matrix_power(factor.astype(np.float64), products) @ state
    return checksum(result / np.abs(result).mean())


def mlp_training(x: np.ndarray, y: np.ndarray, *weights: np.ndarray, epochs: int) -> float:
    """Back-propagation written out."""
    first, second, last = (weight.astype(np.float64) for weight in weights)
    velocity = [np.zeros_like(weight) for weight in (first, second, last)]
    losses = []
    for _ in range(epochs):
        for start in range(0, len(x), 256):
            inputs, targets = x[start : start + 256], y[start : start + 256]
            low = np.tanh(inputs @ first.T)
            high = np.tanh(low @ second.T)
            error = high @ last.T - targets
            losses.append((error**2).mean())
            slope = 2 * error / error.size
            to_high = slope @ last * (1 - high**2)
            to_low = to_high @ second * (1 - low**2)
            slopes = (to_low.T @ inputs, to_high.T @ low, slope.T @ high)
            velocity = [0.9 * old + new for old, new in zip(velocity, slopes, strict=True)]
            first, second, last = (
                weight - 0.02 * own for weight, own in zip((first, second, last), velocity, strict=True)
            )
    return checksum(np.array(losses))


def nbody(mass: np.ndarray, place: np.ndarray, speed: np.ndarray, steps: int) -> float:
    def pull(place: np.ndarray) -> np.ndarray:
        total = np.zeros_like(place, dtype=np.float64)
        for this in range(place.shape[1]):
            for other in range(place.shape[1]):
                apart = place[:, other] - place[:, this]
                total[:, this] += mass[other] * apart / (apart @ apart + 0.05**2) ** 1.5
        return total

    for _ in range(steps):
        speed = speed + 0.0005 * pull(place)
        place = place + 0.001 * speed
        speed = speed + 0.0005 * pull(place)
    return checksum(place, speed)


def option_pricing(random: np.ndarray, steps: int) -> float:
    asian, lookback = [], []
    for state in (int(own) for own in random):
        prices = [1.0]
        for _ in range(steps):
            state = (1664525 * state + 1013904223) % 2**32
            normal = NormalDist().inv_cdf((state // 512 + 0.5) / 2**23)
            prices.append(prices[-1] * np.exp((0.03 - 0.25**2 / 2) / steps + 0.25 / steps**0.5 * normal))
        asian.append(max(np.mean(prices[1:]) - 1, 0))
        lookback.append(max(prices) - 1)
    return checksum(np.array([np.mean(asian), np.mean(lookback)]))


def pagerank(starts: np.ndarray, sources: np.ndarray, share: np.ndarray, rounds: int) -> float:
    nodes = len(starts) - 1
    matrix = np.zeros((nodes, nodes))
    np.add.at(matrix, (np.repeat(np.arange(nodes), np.diff(starts)), sources), share)
    rank = np.ones(nodes)
    for _ in range(rounds):
        rank = 0.15 + 0.85 * matrix @ rank
    return checksum(rank)


def sorting(value: np.ndarray, key: np.ndarray) -> float:
    columns = value.shape[1]
    by_key = np.array([own for _, own in sorted(zip(key, value.ravel(), strict=True), key=lambda pair: pair[0])])
    edges = (value[:, None, :] < by_key[None, :columns, None]).sum(axis=2) / columns
    return checksum(np.sort(value), by_key, edges)


def time_warping(left: np.ndarray, right: np.ndarray) -> float:
    """The table filled cell by cell."""
    distances = []
    for x, y in zip(left.astype(np.float64), right.astype(np.float64), strict=True):
        table = np.full((len(x) + 1, len(y) + 1), np.inf)
        table[0, 0] = 0
        for i in range(len(x)):
            for j in range(len(y)):
                nearest = min(table[i, j], table[i, j + 1], table[i + 1, j])
                table[i + 1, j + 1] = abs(x[i] - y[j]) + nearest
        distances.append(table[-1, -1])
    return checksum(np.array(distances))


def recommender(table: np.ndarray, history: np.ndarray, first: np.ndarray, last: np.ndarray) -> float:
    taste = table.astype(np.float64)[history].mean(axis=1)
    return checksum(np.maximum(taste @ first.T, 0) @ last.T)


REFERENCES: dict[str, Callable[..., float]] = {
    function.__name__: function
    for function in (
        cholesky_solve,
        conjugate_gradient,
        fft2d,
        group_by,
        heat,
        kmeans,
        matmul_chain,
        mlp_training,
        nbody,
        option_pricing,
        pagerank,
        recommender,
        sorting,
        time_warping,
    )
}


def test_the_table_names_every_program() -> None:
    programs = {path.stem for path in ARRAYS.glob("*.py")} - {"harness", "descent", "forks", "batch", "batch_cuda"}
    assert programs == set(SPEC) == set(TINY)
    assert len(programs) >= 12


@pytest.mark.parametrize("name", SPEC)
def test_a_program_has_six_inputs_in_steps_of_at_most_three(name: str) -> None:
    inputs = [dict(word.split("=") for word in line.split()) for line in SPEC[name]["inputs"]]
    assert len({tuple(sorted(values.items())) for values in inputs}) == len(inputs) >= 6
    for key in inputs[0]:
        values = sorted({int(own[key]) for own in inputs})
        assert all(larger <= 3 * smaller for smaller, larger in itertools.pairwise(values)), (key, values)


@pytest.mark.parametrize("name", TINY)
def test_one_and_two_threads_compute_the_same(harness: Any, name: str) -> None:
    alone, together = (measure(harness, name, TINY[name], threads) for threads in (1, 2))
    assert np.isfinite(alone)
    assert together == pytest.approx(alone, rel=SPEC[name]["tolerance"])


@pytest.mark.parametrize("name", REFERENCES)
def test_a_program_computes_what_numpy_does_by_another_road(harness: Any, name: str) -> None:
    module = importlib.import_module(name)
    program = harness.Program(name, module.set_up, module.work)
    values = harness.parameters(TINY[name].split(), program.parameters)
    work = {key: values[key] for key in harness.keywords(module.work)}
    expected = REFERENCES[name](*program.arrays(values), **work)
    assert measure(harness, name, TINY[name]) == pytest.approx(expected, rel=SPEC[name]["tolerance"])


@pytest.mark.parametrize("name", ["mlp_training", "cnn_training"])
def test_training_lowers_the_loss(harness: Any, name: str) -> None:
    module = importlib.import_module(name)
    program = harness.Program(name, module.set_up, module.work)
    line = TINY[name].split()[:-1]
    values = harness.parameters([*line, "epochs=40"], program.parameters)
    losses = module.work(*(torch.from_numpy(array) for array in program.arrays(values)), epochs=40)
    assert losses[-2:].mean() < 0.7 * losses[:2].mean()


@pytest.mark.parametrize("name", TINY)
def test_the_inputs_of_the_table_are_understood(harness: Any, name: str) -> None:
    module = importlib.import_module(name)
    names = harness.Program(name, module.set_up, module.work).parameters
    for line in SPEC[name]["inputs"]:
        assert harness.parameters(line.split(), names)


def test_a_process_prints_its_parts_as_one_line_of_json() -> None:
    done = command("heat", "--device", "cpu", "--threads", "2", *TINY["heat"].split())
    facts = json.loads(done.stdout.splitlines()[-1])
    assert facts["workload"] == "heat"
    assert facts["input"] == TINY["heat"]
    assert (facts["device"], facts["threads"]) == ("cpu", 2)
    assert 0.1 < facts["start_up_s"] < 60
    assert 0 < facts["set_up_s"] < 1
    assert 0 < facts["work_s"] < 1
    assert done.stderr == ""


def test_a_batch_answers_as_each_program_does_and_its_times_begin_with_the_process(tmp_path: Path) -> None:
    batch = tmp_path / "batch.txt"
    batch.write_text("sorting rows=5 columns=40\nsorting rows=5\nsorting rows=5 columns=40\n")
    line = [sys.executable, str(ARRAYS / "batch.py"), "--batch", str(batch), "--threads", "1", "--repeats", "2"]
    done = subprocess.run(line, capture_output=True, text=True, check=True, timeout=120)
    first, wrong, second = map(json.loads, done.stdout.splitlines())
    alone = json.loads(command("sorting", "rows=5", "columns=40").stdout)
    assert first["checksum"] == second["checksum"] == alone["checksum"]
    assert wrong["error"] == "exit status 2"
    assert len(first["seconds"]) == 2
    # Loading torch is the larger part of each.
    assert min(first["seconds"]) > 0.5 * alone["start_up_s"]
    assert first["page_faults"] > 10_000


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_cuda_where_there_is_none_is_refused_in_a_sentence() -> None:
    done = command("heat", "--device", "cuda", *TINY["heat"].split())
    assert done.returncode == 2
    assert "sees no CUDA device here; use --device cpu" in done.stderr


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("side=16", "the input has no steps, expected: side=NUMBER steps=NUMBER"),
        ("side=16 step=5", "the input has 'step=5', expected whole numbers above 0"),
        ("side=16 steps=0", "the input has 'steps=0', expected whole numbers above 0"),
    ],
)
def test_a_wrong_input_is_refused_in_a_sentence(harness: Any, line: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        harness.parameters(line.split(), ["side", "steps"])


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("name", TINY)
def test_the_gpu_computes_what_the_cpu_does(harness: Any, name: str) -> None:
    module = importlib.import_module(name)
    program = harness.Program(name, module.set_up, module.work)
    values = harness.parameters(TINY[name].split(), program.parameters)
    totals = [program.measure(values, device, 1)["checksum"] for device in ("cpu", "cuda")]
    assert totals[1] == pytest.approx(totals[0], rel=SPEC[name]["tolerance"])
