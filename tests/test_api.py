"""The names of the package: each is loaded when first used, and declared to type checkers."""

import ast
import importlib
from pathlib import Path

import crossperf


def test_the_names_that_type_checkers_see_are_those_that_the_package_loads() -> None:
    stub = ast.parse(Path(crossperf.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    declared = {name.name: node.module for node in imports for name in node.names}
    assert sorted(crossperf.__all__) == sorted([*declared, "__version__"])
    for name, module in declared.items():
        assert getattr(crossperf, name) is getattr(importlib.import_module(module or ""), name)
    exported = next(node.value for node in stub.body if isinstance(node, ast.Assign))
    assert sorted(ast.literal_eval(exported)) == sorted(crossperf.__all__)
