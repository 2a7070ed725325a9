"""The names of the package: each is loaded when first used, and declared to type checkers."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import crossperf
from crossperf.datasets import toy
from crossperf.runs.jsonl import line


def test_the_names_that_type_checkers_see_are_those_that_the_package_loads() -> None:
    stub = ast.parse(Path(crossperf.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    declared = {name.name: node.module for node in imports for name in node.names}
    assert sorted(crossperf.__all__) == sorted([*declared, "__version__"])
    for name, module in declared.items():
        assert getattr(crossperf, name) is getattr(importlib.import_module(module or ""), name)
    exported = next(node.value for node in stub.body if isinstance(node, ast.Assign))
    assert sorted(ast.literal_eval(exported)) == sorted(crossperf.__all__)


def test_loading_a_model_and_predicting_lines_of_json_needs_no_polars(tmp_path: Path) -> None:
    runs = toy.make_table(apps=3, inputs=2, seed=1)
    crossperf.train(runs, "ridge").save(tmp_path / "model")
    (tmp_path / "new.jsonl").write_text(line(runs.runs()[0]), encoding="utf-8")
    code = (
        "import sys, crossperf; answer = crossperf.load('model').predict('new.jsonl'); "
        "print(len(answer.predictions), [name for name in ('polars', 'sklearn', 'torch') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "1 []\n"
