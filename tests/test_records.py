from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest

import crossperf
from crossperf.records import COLUMNS, Prediction, Run

RUN = Run(
    "lulesh",
    "30",
    "epyc-2",
    12.5,
    platform_class="cpu",
    repeat=0,
    run_id="r1",
    threads=8,
    counters={"instructions": 3e9, "page_faults": None, "ipc_change": -0.5, "io_bytes_read": 0.0},
    metadata={"job": 7},
)
PREDICTION = Prediction("lulesh", "30", "cpu-a", "source", {"cpu-a": 1.0, "gpu-a": 0.25}, {"cpu-a": 8.0, "gpu-a": 2.0})


def test_a_run_comes_back_from_json_text_as_it_was() -> None:
    assert Run.from_json(json.loads(json.dumps(RUN.to_json()))) == RUN


def test_json_leaves_out_what_is_not_known_and_keeps_missing_zero_and_negative_counters_apart() -> None:
    facts = RUN.to_json()
    assert "host" not in facts
    assert facts["repeat"] == 0
    assert facts["counters"] == {"instructions": 3e9, "page_faults": None, "ipc_change": -0.5, "io_bytes_read": 0.0}
    assert facts["job"] == 7


def test_an_unknown_key_becomes_metadata() -> None:
    run = Run.from_json({"app": "a", "input": "1", "platform": "p", "colour": "red"})
    assert run.metadata == {"colour": "red"}
    assert run.status == "ok"
    assert run.runtime_s is None


def test_the_columns_of_a_table_start_with_the_required_ones() -> None:
    assert COLUMNS[:4] == ("app", "input", "platform", "runtime_s")
    assert "counters" not in COLUMNS


def test_a_run_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        RUN.app = "other"  # type: ignore[misc]


def test_a_prediction_comes_back_from_json_text_and_names_its_fastest_platform() -> None:
    facts = json.loads(json.dumps(PREDICTION.to_json()))
    assert facts["fastest"] == PREDICTION.fastest == "gpu-a"
    assert Prediction.from_json(facts) == PREDICTION


def test_what_a_collector_needs_imports_on_a_bare_python(tmp_path: Path) -> None:
    src = str(Path(crossperf.__file__).parent.parent)
    script = f"""
import sys
sys.path[:] = [path for path in sys.path if "site-packages" not in path] + [{src!r}]
from crossperf import errors, catalog, records, files, runs
from crossperf.runs import rules, jsonl
runs.append({str(tmp_path / "runs.jsonl")!r}, [records.Run("a", "1", "p", 2.0)])
assert runs.read_jsonl({str(tmp_path / "runs.jsonl")!r})[0].runtime_s == 2.0
print(sorted({{"numpy", "polars", "sklearn", "click", "rich", "torch"}} & set(sys.modules)))
try:
    import numpy
except ImportError:
    print("bare")
"""
    done = subprocess.run([sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[]\nbare\n", "")
