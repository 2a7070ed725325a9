from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from crossperf import plugins
from crossperf.errors import SettingsError


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An installed package, as pip leaves it: its module, and the entry points in its metadata."""
    (tmp_path / "their_package.py").write_text("def emptiest(ask, options, rng):\n    return 0\n")
    (tmp_path / "their_broken_package.py").write_text("import no_such_module_anywhere\n")
    info = tmp_path / "their_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[crossperf.policies]\nemptiest = their_package:emptiest\nbroken = their_broken_package:anything\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop("their_package", None)


def test_an_object_of_a_file_is_found_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import math\n\ndef make():\n    return math.pi\n")
    make = plugins.load(f"{tmp_path / 'mine.py'}:make", "model")
    assert callable(make)
    assert make() == pytest.approx(3.141592653589793)


def test_a_file_may_define_dataclasses_with_postponed_annotations(tmp_path: Path) -> None:
    text = (
        "from __future__ import annotations\nfrom dataclasses import dataclass\n@dataclass\nclass Mine:\n    a: int\n"
    )
    (tmp_path / "mine.py").write_text(text)
    mine = plugins.load(f"{tmp_path / 'mine.py'}:Mine", "model")
    assert isinstance(mine, type)
    assert mine(3) == mine(3)


def test_a_file_named_as_a_module_does_not_hide_that_module(tmp_path: Path) -> None:
    import json

    (tmp_path / "json.py").write_text("make = 1\n")
    assert plugins.load(f"{tmp_path / 'json.py'}:make", "model") == 1
    assert sys.modules["json"] is json


@pytest.mark.parametrize(
    ("text", "name", "words"),
    [
        (None, "make", ["no such file", "FILE.py:NAME"]),
        ("def make():\n    pass\n", "mkae", ["defines no 'mkae'", "did you mean 'make'?"]),
        ("import no_such_module_anywhere\n", "make", ["cannot be imported", "ModuleNotFoundError"]),
        ("this is no Python\n", "make", ["cannot be imported", "SyntaxError"]),
        ("raise SystemExit(3)\n", "make", ["cannot be imported", "SystemExit: 3"]),
    ],
)
def test_each_failure_is_one_sentence_that_names_the_argument(
    tmp_path: Path, text: str | None, name: str, words: list[str]
) -> None:
    path = tmp_path / "mine.py"
    if text is not None:
        path.write_text(text)
    with pytest.raises(SettingsError) as refused:
        plugins.load(f"{path}:{name}", "model", argument="models")
    message = str(refused.value)
    assert message.startswith("models: ")
    assert refused.value.facts["argument"] == "models"
    assert str(path) in message
    assert "\n" not in message
    assert all(word in message for word in words), message


@pytest.mark.usefixtures("package")
def test_an_installed_package_offers_objects_by_entry_points() -> None:
    assert plugins.names("policy") == ["broken", "emptiest"]
    emptiest = plugins.load("emptiest", "policy")
    assert callable(emptiest)
    assert emptiest(None, None, None) == 0
    assert "emptiest" not in plugins.names("model")


@pytest.mark.usefixtures("package")
def test_an_entry_point_that_cannot_be_imported_is_named_with_its_cause() -> None:
    with pytest.raises(SettingsError, match=r"'broken' \(their_broken_package:anything\) cannot be imported \(Module"):
        plugins.load("broken", "policy")


@pytest.mark.usefixtures("package")
def test_a_name_nobody_knows_lists_what_is_known_and_what_is_installed() -> None:
    with pytest.raises(SettingsError, match=r"did you mean 'emptiest'\?.*fastest, broken, emptiest"):
        plugins.load("emptyest", "policy", known=["fastest"])
