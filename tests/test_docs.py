"""Every name, command, path and link of the documentation exists, and its Python runs."""

from __future__ import annotations

import ast
import importlib
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import click
import pytest

from crossperf import platforms
from crossperf.cli import commands
from crossperf.cli.group import GroupWithDefault
from crossperf.datasets import testbed, toy
from crossperf.plugins import GROUPS
from crossperf.runs import append
from tests.documents import ROOT, Document, Piece, pages

PAGES = pages()
ROOMS = {path.stem for path in (ROOT / "src" / "crossperf").iterdir() if path.stem.isidentifier()} - {"__pycache__"}
MODULES_SPOKEN_OF = {"toy": "datasets.toy", "testbed": "datasets.testbed"}
#: Endings of file names, which look like attributes of a module: `runs.jsonl`, `crossperf.table`.
FILE_ENDINGS = {
    "jsonl",
    "json",
    "csv",
    "parquet",
    "md",
    "py",
    "html",
    "gz",
    "lua",
    "table",
    "toml",
    "npz",
    "txt",
    "pdf",
    "svg",
    "png",
}
#: Groups of entry points are named like modules.
ENTRY_POINTS = tuple(GROUPS.values())
#: What a user's own files and folders are called in the pages.
USERS_FILES = ("demo/", "model/", "report/index.html", "dist/", "site/", "experimental/")
OPTION = re.compile(r"--[a-z][a-z-]*")


def every(pieces: Iterable[Iterable[Piece]]) -> list[Piece]:
    return [piece for group in pieces for piece in group]


def complaints(problems: Iterator[str]) -> None:
    listed = list(problems)
    assert not listed, "\n" + "\n".join(listed)


def test_links_lead_to_files_and_headings_that_exist() -> None:
    def problems() -> Iterator[str]:
        for link in every(page.links() for page in [*PAGES, Document(ROOT / "CHANGELOG.md")]):
            name, _, anchor = link.text.partition("#")
            if "://" in name or name.startswith("mailto:"):
                continue
            target = (link.page.parent / name).resolve() if name else link.page
            if not target.exists():
                yield f"{link}: no such file"
            elif anchor and target.suffix == ".md" and anchor not in Document(target).anchors():
                yield f"{link}: no such heading"

    complaints(problems())


def resolve(dotted: str) -> None:
    """Import the module of a dotted name, and look the rest up as attributes."""
    parts = dotted.split(".")
    value = importlib.import_module(parts[0])
    for depth, part in enumerate(parts[1:], start=2):
        try:
            value = getattr(value, part)
        except AttributeError:
            value = importlib.import_module(".".join(parts[:depth]))


def names() -> Iterator[tuple[Piece, str]]:
    """Yield the dotted names between backticks that lead into the package."""
    for span in every(page.spans() for page in PAGES):
        match = re.match(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+)(?:\(|$)", span.text)
        if match is None or match[1].rpartition(".")[2] in FILE_ENDINGS - {"table"}:
            continue
        head, _, rest = match[1].partition(".")
        if head in ("crossperf", "xp") and match[1] not in ("crossperf.table", *ENTRY_POINTS):
            yield span, f"crossperf.{rest}"
        elif head in ROOMS | set(MODULES_SPOKEN_OF) and rest != "table":
            yield span, f"crossperf.{MODULES_SPOKEN_OF.get(head, head)}.{rest}"


def test_names_of_the_package_exist() -> None:
    def problems() -> Iterator[str]:
        for span, dotted in names():
            try:
                resolve(dotted)
            except ImportError as error:
                yield f"{span}: {error}"

    assert sum(1 for _ in names()) > 10
    complaints(problems())


def test_imports_in_code_blocks_exist() -> None:
    """Those of blocks that are not run too."""

    def problems() -> Iterator[str]:
        for block in every(page.blocks("python") for page in PAGES):
            for node in ast.walk(ast.parse(block.text)):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("crossperf"):
                    for alias in node.names:
                        try:
                            resolve(f"{node.module}.{alias.name}")
                        except ImportError as error:
                            yield f"{block.page.name}, line {block.line}: {error}"

    complaints(problems())


def parsed(words: list[str]) -> str | None:
    """Return what is wrong with the arguments of `crossperf`, by the parser that the command line uses."""
    command: click.Command = commands
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        if words[0] in ("COMMAND", "...", "…"):
            return None
        words = command.named(words) if isinstance(command, GroupWithDefault) else words
        following = command.get_command(click.Context(command), words[0])
        if following is None:
            return f"no command {words[0]!r}"
        command, words = following, words[1:]
    context = click.Context(command)
    try:
        values, _, _ = command.make_parser(context).parse_args([word for word in words if word not in ("...", "…")])
        for option in command.params:
            given = values.get(option.name or "")
            if isinstance(option.type, click.Choice) and isinstance(given, str) and not given.isupper():
                option.type.convert(given, option, context)
    except click.BadOptionUsage as error:
        return None if "requires an argument" in error.message else error.format_message()
    except click.UsageError as error:
        return error.format_message()
    return None


def wrong_with(line: str) -> str | None:
    """Return what is wrong with a command line, if it is one of ours."""
    line = re.split(r"\s[|>&;]\s?|\s{2,}\(", line)[0]
    words = shlex.split(line, comments=True)
    while words and "=" in words[0]:
        words = words[1:]
    if words[:1] == ["make"]:
        folder, asked = (ROOT / words[2], words[3:]) if words[1] == "-C" else (ROOT, words[1:])
        targets = re.findall(r"^([\w-]+):", (folder / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
        return next((f"no target {word!r}" for word in asked if "=" not in word and word not in targets), None)
    if words[:2] == ["python", "-m"] and words[2].startswith("crossperf."):
        resolve(words[2])
    elif words[:1] == ["python"] and words[1].endswith(".py") and "/" in words[1]:
        return None if (ROOT / words[1]).exists() else "no such file"
    elif words[:1] == ["crossperf"]:
        return parsed(words[1:])
    return None


def test_commands_and_their_options_exist() -> None:
    lines = every(page.commands() for page in PAGES)
    assert sum("crossperf" in line.text for line in lines) > 50
    complaints(f"{line}: {problem}" for line in lines if (problem := wrong_with(line.text)))


def options_of(command: click.Command) -> set[str]:
    """Return the long options of a command and of all below it."""
    mine = {name for option in command.params for name in (*option.opts, *option.secondary_opts)}
    below = below_of(command) if isinstance(command, click.Group) else ()
    return mine.union(*(options_of(each) for each in below)) | {"--help"}


def below_of(group: click.Group) -> Iterator[click.Command]:
    """Yield the commands of a group, whether or not they are loaded yet."""
    context = click.Context(group)
    return (command for name in group.list_commands(context) if (command := group.get_command(context, name)))


#: Options of other programs that the pages speak of: hpcprof, sbatch, the testbed's program.
OTHERS_OPTIONS = {"--metric-db", "--comment", "--test-only", "--batch"}


def test_options_that_stand_alone_exist_on_some_command() -> None:
    known = options_of(commands) | OTHERS_OPTIONS
    spans = [span for span in every(page.spans() for page in PAGES) if span.text.startswith("--")]
    complaints(f"{span}: no command has it" for span in spans if OPTION.match(span.text)[0] not in known)  # type: ignore[index]


def test_paths_exist() -> None:
    folders = {path.name for path in ROOT.iterdir() if path.is_dir()} - {"model", "report", "demo"}

    def problems() -> Iterator[str]:
        for span in every(page.spans() for page in PAGES):
            if not re.fullmatch(r"\.?[\w-]+(/[\w.-]+)*/?", span.text) or "/" not in span.text:
                continue
            if span.text.partition("/")[0] not in folders | ROOMS or span.text.startswith(USERS_FILES):
                continue
            if not any((top / span.text).exists() for top in (ROOT, ROOT / "src" / "crossperf")):
                yield f"{span}: no such path"

    complaints(problems())


#: Words that hide the term everyone knows.
HIDDEN_TERMS = re.compile(r"\b(foretold|foretells?|mends?|mended|alike|so many)\b", re.IGNORECASE)


def test_pages_use_the_terms_that_the_field_searches_for() -> None:
    lines = [(page.path, number, line) for page in PAGES for number, line in enumerate(page.text.splitlines(), 1)]
    complaints(
        f"{path.relative_to(ROOT)}, line {number}: {match[0]}"
        for path, number, line in lines
        if (match := HIDDEN_TERMS.search(line)) and path.name != "CONVENTIONS.md"
    )


@pytest.mark.parametrize("tool", ["architecture", "accuracy"])
def test_what_a_tool_writes_into_a_page_is_current(tool: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table of rooms follows the layers and the imports, the figures follow the benchmark."""
    monkeypatch.syspath_prepend(ROOT / "tools")
    module = importlib.import_module(tool)
    assert module.PAGE.read_text(encoding="utf-8") == module.page(), f"run: python tools/{tool}.py"


#: Pages whose Python runs from top to bottom, as one program, in a folder that holds the files they speak of.
PROGRAMS = [
    "README.md",
    "docs/formats.md",
    "docs/own-model.md",
    "docs/platforms.md",
    "docs/profile.md",
    "docs/python.md",
    "docs/schedule.md",
    "docs/testbed.md",
]


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_python_of_a_page_runs(name: str, tmp_path: Path) -> None:
    blocks = Document(ROOT / name).blocks("python")
    assert blocks
    write_files(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(block.text for block in blocks)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def write_files(folder: Path) -> None:
    """Write small tables by the names that the pages use, the facts of two machines, and a program to profile."""
    toy.make_table(apps=6, inputs=4, seed=1).write(folder / "runs.parquet")
    new = [run for run in toy.make_runs(apps=1, inputs=1, repeats=1, seed=2) if run.platform == "cpu-a"]
    append(folder / "new.jsonl", new)
    for platform in testbed.platforms()[:2]:
        platforms.add(folder / "platforms.json", platform)
    (folder / "ground_truth.csv").write_text("app,input,a,b\nx,1,1,0.5\ny,1,1,2\n", encoding="utf-8")
    (folder / "machines.csv").write_text("machine,size\na,64\nb,64\n", encoding="utf-8")
    (folder / "app").write_text("#!/bin/sh\necho $1\n", encoding="utf-8")
    (folder / "app").chmod(0o755)
