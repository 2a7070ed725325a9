"""Every reader of a file, with a sound file for each that is made here; what is read is also used a little."""

from __future__ import annotations

import functools
import gzip
import importlib.util
import json
import math
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from crossperf import dataset, evaluation, model, records
from crossperf.adaptation.result import Transfer, TransferScore
from crossperf.dataset.cells import TableFacts
from crossperf.datasets import toy
from crossperf.importers import mapping
from crossperf.model import store
from crossperf.platforms import registry
from crossperf.platforms.compare import compare, describe
from crossperf.platforms.facts import CpuCache, Gpu, MachineFacts
from crossperf.platforms.nearest import nearest
from crossperf.records import Familiarity, Prediction, Run
from crossperf.runs import checking, events, jsonl, table
from tests.hostile.more_targets import PLACES, PROFILES
from tests.hostile.request_targets import REQUESTS
from tests.hostile.schedule_targets import SIMULATIONS
from tests.hostile.target import Target


def encoded(facts: Any) -> bytes:
    """Return facts as JSON."""
    return json.dumps(facts).encode()


def _evaluation() -> bytes:
    data = dataset.build(toy.make_table(apps=3, inputs=2, repeats=2, seed=1))
    result = evaluation.evaluate(data, ["median", "ridge"], n_folds=2)
    return encoded(result.to_json())


def _use_evaluation(path: Path) -> None:
    result = evaluation.read(path)
    repr(result), result._repr_html_(), result.scores.to_frame(), result.about
    encoded(result.to_json())
    for name in result.held_out.predictions if result.held_out else ():
        assert result.held_out is not None
        result.held_out.error_by_app(name)


def _transfer() -> bytes:
    scores = tuple(TransferScore("ridge", "3", way, "gpu-a", 1.5, 1.25) for way in ("adapted", "scratch"))
    made = Transfer(TableFacts("toy", "abc", 10), 2, 2, 0, 1, {"3": 3.0}, ("gpu-a",), 1.1, scores, ("few",))
    return encoded(made.to_json())


def _use_transfer(path: Path) -> None:
    from crossperf.cli.convert import _result

    repr(_result(path))


def _platforms() -> bytes:
    facts = MachineFacts(
        "AMD",
        cpu_model="EPYC",
        cores=2,
        base_ghz=2.5,
        memory_bytes=2**34,
        hypervisor=True,
        caches=(CpuCache(1, "data", 32768, 8, 64),),
        gpus=(Gpu("NVIDIA", "H200", 1.5e11),),
        more={"price_per_hour": 1.2, "threads": 2},
    )
    entries = [registry.Platform("epyc-2", "cpu", facts), registry.Platform("h200", "gpu")]
    return encoded({"format": 1, "platforms": [entry.to_json() for entry in entries]})


def _use_platforms(path: Path) -> None:
    entries = registry.read(path)
    here = MachineFacts(cpu_model="EPYC", memory_bytes=2**34, cores=4, caches=(CpuCache(1, "data", 49152),))
    registry.matching(entries, here)
    for entry in entries:
        nearest([entry], here, threads=3)
        describe(entry), compare(entry, entries[0])
    encoded([entry.to_json() for entry in entries])


def _prediction() -> Prediction:
    return Prediction(
        "lulesh",
        "30",
        "epyc-2",
        "source",
        {"epyc-2": 1.0, "h200": 0.2, "mi300": math.nan},
        {"epyc-2": 10.0, "h200": 2.0, "mi300": math.nan},
        ("a note",),
        0.8,
        {"epyc-2": 1.0, "h200": 0.1, "mi300": math.nan},
        {"epyc-2": 1.0, "h200": 0.4, "mi300": math.nan},
        {"epyc-2": 0.1, "h200": 0.9, "mi300": 0.0},
        {"epyc-2": {"h200": 0.1}, "h200": {"epyc-2": 0.9}},
        Familiarity("unusual", 1.5, ("threads",)),
        {"mi300": "cannot run"},
    )


def _predictions() -> bytes:
    return encoded({"format": 1, "notes": [], "predictions": [_prediction().to_json()]})


def _use_predictions(path: Path) -> None:
    for prediction in records.read_predictions(path):
        assert all(prediction.relative_time[name] > 0 for name in prediction.offered)
        encoded(prediction.to_json())


def _mapping() -> bytes:
    return b"""tool = "papi"
missing = [-1, "n/a"]
[columns]
app = "benchmark"
input = ["size", "ranks"]
platform = "node"
runtime_s = { column = "time_ms", factor = 0.001 }
[constants]
platform_class = "cpu"
threads = 4
[events]
PAPI_TOT_INS = "instr"
[counters]
page_faults = "faults"
"""


_TABLE = b"benchmark,size,ranks,node,time_ms,instr,faults\nlu,64,1,epyc,1250,3e9,12\nlu,128,2,epyc,2500,7e9,-1\n"


def _use_mapping(path: Path) -> None:
    _import_with(mapping.load(path), _TABLE, ".csv")


def _import_with(table_map: mapping.TableMap, content: bytes, ending: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        other = Path(folder) / f"table{ending}"
        other.write_bytes(content)
        mapping.read(other, table_map)


def _mapping_json() -> bytes:
    import tomllib

    return encoded(tomllib.loads(_mapping().decode()))


def _use_mapped_table(path: Path) -> None:
    made = mapping.TableMap(
        columns={name: mapping.Source((column,)) for name, column in (("app", "benchmark"), ("input", "size"))},
        events={"PAPI_TOT_INS": mapping.Source(("instr",))},
        missing=(-1, "n/a"),
    )
    mapping.read(path, made)


def _runs() -> list[Run]:
    counters = {"instructions": 3e9, "mem_ratio": 0.25, "page_faults": None}
    extra: dict[str, Any] = {"events": {"valgrind": {"Ir": 2557}}, "command": ["./a", "b"]}
    runs = [
        Run("lu", f"n={i}", platform, 1.0 + i, "cpu", repeat, counters=counters, metadata=extra)
        for i in range(2)
        for platform in ("epyc-2", "xeon-4")
        for repeat in range(2)
    ]
    return [*runs, replace(runs[0], repeat=2, status="timeout", runtime_s=None, runnable="cpu", run_id="r-1")]


def _jsonl() -> bytes:
    return "".join(map(jsonl.line, _runs())).encode()


def _written(ending: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"runs{ending}"
        table.from_runs(_runs()).write(path)
        return path.read_bytes()


def _use_table(path: Path) -> None:
    problems = table.check(path)
    encoded([problem.to_json() for problem in problems])
    read = table.read(path)
    repr(read), read.fingerprint, read.events, read.runs()
    read.write(path.with_name(f"again-{path.name}"))


def _use_few(path: Path) -> None:
    assert checking.few(path) is not None


def _use_learned(path: Path) -> None:
    for run in jsonl.read(path):
        jsonl.line(run)
        events.events_of(run.metadata.get("events"))
        if run.status == records.OK and run.runtime_s is not None:
            assert run.runtime_s > 0


@functools.cache
def folder_of(name: str) -> dict[str, bytes]:
    """Return the files of a model folder, trained once."""
    data = dataset.build(toy.make_table(apps=3, inputs=2, repeats=1, seed=1))
    few = {"trees": 4, "members": 3, "width": 8, "steps": 10, "latent_dim": 3, "vae_steps": 10, "prove": False}
    settings: dict[str, dict[str, Any]] = {"random-forest": {"n_estimators": 3}, "crossperf": {**few, "n_jobs": 1}}
    with tempfile.TemporaryDirectory() as place:
        target = Path(place) / "model"
        model.train(data, name, **settings.get(name, {})).save(target)
        return {path.name: path.read_bytes() for path in target.iterdir()}


def _use_model(name: str, file: str) -> Callable[[Path], None]:
    def use(path: Path) -> None:
        """Load a folder in which one file is as given and the digest is that of the whole."""
        folder = path.parent / "model"
        folder.mkdir(exist_ok=True)
        for other, content in folder_of(name).items():
            (folder / other).write_bytes(path.read_bytes() if other == file else content)
        seal(folder)
        made = store.load(folder)
        made.fitted.predict(made.features)

    return use


def seal(folder: Path) -> None:
    """Write the digest of what a folder holds now, as somebody would who wants his changes believed."""
    path = folder / "model.json"
    try:
        facts = json.loads(path.read_bytes().decode())
        digest = store.digest_of(facts, (folder / "arrays.npz").read_bytes())
        path.write_bytes(encoded({**facts, "digest": digest}))
    except (ValueError, TypeError, AttributeError, RecursionError):
        return  # it is no description, and is read as it is


FOREST = "random-forest"
TARGETS = [
    Target("evaluation", "evaluation.json", _evaluation, _use_evaluation),
    Target("transfer", "transfer.json", _transfer, _use_transfer),
    Target("platforms", "platforms.json", _platforms, _use_platforms),
    Target("predictions", "predictions.json", _predictions, _use_predictions),
    Target("mapping", "mapping.toml", _mapping, _use_mapping),
    Target("mapping-json", "mapping.json", _mapping_json, _use_mapping),
    Target("mapped-csv", "table.csv", lambda: _TABLE, _use_mapped_table),
    Target("learned", "runs.jsonl", _jsonl, _use_learned),
    Target("few", "runs.jsonl", _jsonl, _use_few),
    Target("jsonl", "runs.jsonl", _jsonl, _use_table),
    Target("jsonl.gz", "runs.jsonl.gz", lambda: gzip.compress(_jsonl()), _use_table),
    Target("csv", "runs.csv", functools.partial(_written, ".csv"), _use_table),
    Target("parquet", "runs.parquet", functools.partial(_written, ".parquet"), _use_table),
    Target("model", "model.json", lambda: folder_of("ridge")["model.json"], _use_model("ridge", "model.json")),
    Target("arrays", "arrays.npz", lambda: folder_of("ridge")["arrays.npz"], _use_model("ridge", "arrays.npz")),
    Target(
        "trees",
        "arrays.npz",
        lambda: folder_of("random-forest")["arrays.npz"],
        _use_model("random-forest", "arrays.npz"),
    ),
]
if importlib.util.find_spec("torch"):
    use = _use_model("crossperf", "arrays.npz")
    TARGETS.append(Target("blend", "arrays.npz", lambda: folder_of("crossperf")["arrays.npz"], use))
TARGETS += [*PROFILES, *PLACES, *SIMULATIONS, *REQUESTS]
BY_NAME = {target.name: target for target in TARGETS}
