"""What mkdocs does not do by itself: pages from outside docs/, from the commands and from the notebook.

The README is the home page, and the pages at the root and the benchmarks stand on the site under their own names. So
links that are right in the repository are right on the site: a link is taken as the repository has it, and led to
where that file is on the site. The commands' page is written from the commands themselves.
"""

from __future__ import annotations

import base64
import json
import posixpath
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
NOTEBOOK = "tutorial.ipynb"
#: The home page is the README, with no list of other pages beside it.
HOME = "---\nhide: [navigation]\n---\n"
_LINK = re.compile(r"(!?\[[^\]]*\])\(([^)\s]+)\)")
_FENCE = re.compile(r"^```.*?^```[^\n]*$", re.MULTILINE | re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that do not stand in docs/."""
    outside = [*ROOT.glob("*.md"), *ROOT.glob("benchmarks/*.md")]
    texts = {place_of(path.relative_to(ROOT).as_posix()): path.read_text(encoding="utf-8") for path in outside}
    texts["index.md"] = HOME + texts["index.md"]
    texts["reference/cli.md"] = "\n".join(commands_page())
    texts["tutorial.md"] = "\n".join(notebook_page(Path(config.docs_dir, NOTEBOOK)))
    for place, text in texts.items():
        files.append(File.generated(config, place, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, files: Files, **_: object) -> str:
    """Lead every link to where the file is on the site; what is not on the site keeps its text alone."""
    here = page.file.src_uri
    fences = _FENCE.findall(markdown)
    parts = _FENCE.split(markdown)
    moved = [_LINK.sub(lambda match: relinked(match, here, files), part) for part in parts]
    return moved[0] + "".join(fence + part for fence, part in zip(fences, moved[1:], strict=True))


def relinked(match: re.Match[str], here: str, files: Files) -> str:
    """Return a link of the page `here` as it must read on the site."""
    words, target = match[1], match[2]
    name, hash_, anchor = target.partition("#")
    if not name or "://" in name or name.startswith("mailto:"):
        return match[0]
    in_repository = posixpath.normpath(posixpath.join(posixpath.dirname(origin_of(here)), name))
    place = place_of(in_repository)
    if files.get_file_from_path(place) is None:
        return words.strip("[]") if (ROOT / in_repository).exists() else match[0]
    return f"{words}({posixpath.relpath(place, posixpath.dirname(here) or '.')}{hash_}{anchor})"


def place_of(path: str) -> str:
    """Return where a file of the repository is on the site."""
    if path == "README.md":
        return "index.md"
    return path.removeprefix("docs/").replace(NOTEBOOK, "tutorial.md")


def origin_of(place: str) -> str:
    """Return which file of the repository a page of the site was."""
    if place == "index.md":
        return "README.md"
    return place if (ROOT / place).exists() and not (ROOT / "docs" / place).exists() else f"docs/{place}"


def commands_page() -> Iterator[str]:
    """Yield the page of commands, line by line."""
    sys.path.insert(0, str(ROOT / "src"))
    from crossperf.cli import commands

    yield from ["# Commands", "", "Written from the commands themselves: the same as `crossperf COMMAND --help`.", ""]
    known = dict(below(commands))
    for heading, names in commands.sections.items():
        yield from [f"## {heading}", ""]
        for name in names:
            yield from command_section(known[name], f"crossperf {name}", level=3)


def below(group: click.Group) -> Iterator[tuple[str, click.Command]]:
    """Yield the commands of a group by name, in the order of its help."""
    context = click.Context(group)
    for name in group.list_commands(context):
        if (command := group.get_command(context, name)) is not None:
            yield name, command


def command_section(command: click.Command, name: str, level: int) -> Iterator[str]:
    """Yield what one command does and takes, then the commands below it."""
    context = click.Context(command, info_name=name, show_default=True)
    usage = " ".join([name, *command.collect_usage_pieces(context)])
    yield from ["#" * level + f" `{name}`", "", "```text", usage, "```", ""]
    for paragraph in (command.help or "").split("\f")[0].split("\n\n"):
        yield from as_is(paragraph) if paragraph.startswith("\b") else [" ".join(paragraph.split()), ""]
    records = [record for option in command.params if (record := option.get_help_record(context)) and record[1]]
    if records:
        yield from ["| option | meaning |", "|---|---|"]
        yield from (f"| `{options}` | {cell(meaning)} |" for options, meaning in records)
        yield ""
    if isinstance(command, click.Group):
        for child_name, child in below(command):
            yield from command_section(child, f"{name} {child_name}", level + 1)


def as_is(paragraph: str) -> list[str]:
    """Return a paragraph that keeps its lines."""
    return ["```text", paragraph.removeprefix("\b").strip("\n"), "```", ""]


def cell(text: str) -> str:
    """Return a text that may stand in a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;").replace("[", "\\[")


def notebook_page(path: Path) -> Iterator[str]:
    """Yield a notebook as Markdown: its prose, its code, and the outputs that are kept in it."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    for part in notebook["cells"]:
        source = "".join(part["source"])
        yield from [source, ""] if part["cell_type"] == "markdown" else ["```python", source, "```", ""]
        for output in part.get("outputs", ()):
            yield from [shown(output), ""]


def shown(output: dict[str, Any]) -> str:
    """Return one output of a cell: a picture or a table before plain text."""
    data = output.get("data", {})
    if "image/svg+xml" in data:
        picture = base64.b64encode("".join(data["image/svg+xml"]).encode()).decode()
        return f'<img alt="figure" src="data:image/svg+xml;base64,{picture}">'
    if "image/png" in data:
        return f'<img alt="figure" src="data:image/png;base64,{"".join(data["image/png"]).strip()}">'
    if "text/html" in data:
        html = re.sub(r"<style.*?</style>", "", "".join(data["text/html"]), flags=re.DOTALL)
        lines = html.splitlines() if "<pre>" in html else [line.strip() for line in html.splitlines()]
        return '<div class="output">' + "\n".join(line for line in lines if line.strip()) + "</div>"
    text = "".join(data.get("text/plain", output.get("text", "")))
    return f"```{{.text .output}}\n{text.rstrip()}\n```"
