"""The rules of CONVENTIONS.md that a program can check: names, words, docstrings, capabilities.

A room is a package or module of `src/crossperf`.
"""

from __future__ import annotations

import ast
import functools
import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "crossperf"
#: Every package and module of the library.
CLEAN = sorted(path.name for path in SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists())
#: Texts for people whose words are checked as well.
CLEAN_TEXTS = [
    "benchmarks/accasim_runner.py",
    "benchmarks/familiarity.md",
    "benchmarks/familiarity.py",
    "benchmarks/strangers.py",
    "benchmarks/missing.md",
    "benchmarks/missing.py",
    "benchmarks/report.py",
    "benchmarks/scheduling.md",
    "benchmarks/scheduling.py",
    "benchmarks/scheduling_speed.md",
    "benchmarks/scheduling_speed.py",
    "benchmarks/slurm.md",
    "benchmarks/slurm.py",
    "benchmarks/sources.md",
    "benchmarks/sources.py",
    "benchmarks/overhead.md",
    "benchmarks/overhead.py",
    "docs/counters.md",
    "docs/import.md",
    "docs/profile.md",
    "docs/testbed.md",
    "testbed/publish.py",
    "docs/metrics.md",
    "docs/report.md",
    "docs/schedule.md",
    "docs/slurm.md",
    "examples/placing.py",
]

#: No names of variables, arguments or functions, nor with the letters of their axes: `found`, `there_n`.
BANNED_NAMES = re.compile(r"_?(found|one|told|said|there)(_[a-z]{1,3})?")
BANNED_WORDS = re.compile(
    r"\b(so many|(fore)?told|mend(s|ed|ing)?|alike|said|(models?|predictions?) says?)\b", re.IGNORECASE
)
LONGEST_SENTENCE = 25
#: Readers of older files, which use the words of those files.
OLD_FORMATS = {"format2.py"}
#: A comment between blank lines at the left margin, in front of code: the mark of a second subject in a file.
BANNER = re.compile(r"\n\n\n# [^\n]+\n\n\n", re.MULTILINE)


def files(room: str) -> list[Path]:
    path = SOURCE / room
    return [path] if path.is_file() else sorted(own for own in path.rglob("*.py") if own.name not in OLD_FORMATS)


def names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield every name that code gives to something, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.lineno, node.name


def words(text: str) -> Iterator[tuple[int, str]]:
    """Yield the texts of a file with their lines: strings, docstrings among them, and comments."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def docstrings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield getattr(node, "lineno", 1), text


def first_sentence(docstring: str) -> str:
    return re.split(r"(?<=\.)\s|\n\s*\n|::\n", docstring, maxsplit=1)[0]


def offences(text: str) -> list[str]:
    """Return what breaks the rules within one file, each as ``line: what``."""
    tree = ast.parse(text)
    problems = [(line, f"the name {name!r}") for line, name in names(tree) if BANNED_NAMES.fullmatch(name)]
    for line, words_there in words(text):
        problems += [(line, f"the word {match[0]!r}") for match in BANNED_WORDS.finditer(words_there)]
    for line, docstring in docstrings(tree):
        count = len(first_sentence(docstring).split())
        if count > LONGEST_SENTENCE:
            problems.append((line, f"a first sentence of {count} words"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "hasattr":
            problems.append((node.lineno, "hasattr"))
    problems += [(text[: match.start()].count("\n") + 4, "a section banner") for match in BANNER.finditer(text)]
    return [f"{line}: {problem}" for line, problem in sorted(set(problems))]


def classes(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ClassDef):
            yield node.name


@functools.cache
def places() -> dict[str, list[str]]:
    """Return the files in which each class name of the package is defined."""
    by_name: dict[str, list[str]] = defaultdict(list)
    for path in SOURCE.rglob("*.py"):
        for name in classes(path):
            by_name[name].append(str(path.relative_to(SOURCE)))
    return by_name


@pytest.mark.parametrize("room", CLEAN)
def test_a_clean_room_keeps_the_rules(room: str) -> None:
    assert files(room), f"{room} is no package or module of src/crossperf"
    problems = [
        f"{path.relative_to(ROOT)}:{problem}"
        for path in files(room)
        for problem in offences(path.read_text(encoding="utf-8"))
    ]
    assert not problems, "\n".join(["CONVENTIONS.md is not kept:", *problems])


@pytest.mark.parametrize("room", CLEAN)
def test_a_class_name_of_a_clean_room_has_one_meaning_in_the_whole_package(room: str) -> None:
    ours = {name for path in files(room) for name in classes(path)}
    assert {name: places()[name] for name in ours if len(places()[name]) > 1} == {}


@pytest.mark.parametrize("name", CLEAN_TEXTS)
def test_a_text_for_people_uses_the_words_of_the_field(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert [(text[: match.start()].count("\n") + 1, match[0]) for match in BANNED_WORDS.finditer(text)] == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("found = 1", "the name 'found'"),
        ("for there_n in []: pass", "the name 'there_n'"),
        ("def told(): pass", "the name 'told'"),
        ("x = [one for one in []]", "the name 'one'"),
        ("def f(said): pass", "the name 'said'"),
        ("x = f'so many {x}'", "the word 'so many'"),
        ("# all alike", "the word 'alike'"),
        ("'''Mend it.'''", "the word 'Mend'"),
        ("def f():\n    '''" + "word " * 26 + "end. Short.'''", "a first sentence of 27 words"),
        ("x = hasattr(1, 'y')", "hasattr"),
        ("x = 1\n\n\n# Readers\n\n\ny = 2", "a section banner"),
    ],
)
def test_an_offence_is_seen(text: str, problem: str) -> None:
    assert any(problem in offence for offence in offences(text)), offences(text)


def test_ordinary_code_breaks_no_rule() -> None:
    text = '"""Return one of them, as found there."""\n\nanyone = foundry = {"found": 1}  # recommended\n'
    assert offences(text) == []
