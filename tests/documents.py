"""Markdown pages taken apart: their links, code spans and code blocks, each with its place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
_FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```\s*$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+\s+(.+?)\s*#*$", re.MULTILINE)


@dataclass(frozen=True)
class Piece:
    """A piece of a page, and the line on which it starts."""

    page: Path
    line: int
    text: str
    language: str = ""

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}, line {self.line}: {self.text}"


@dataclass(frozen=True)
class Document:
    """A page of the documentation."""

    path: Path

    @property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    def blocks(self, *languages: str) -> list[Piece]:
        """Return the fenced blocks in these languages."""
        return [
            self._piece(self.text, match, match[2], match[1])
            for match in _FENCE.finditer(self.text)
            if match[1] in languages
        ]

    def spans(self) -> list[Piece]:
        """Return what stands between single backticks, outside of blocks."""
        return [self._piece(self._prose, match, match[1]) for match in _SPAN.finditer(self._prose)]

    def links(self) -> list[Piece]:
        """Return where links and images lead."""
        return [self._piece(self._prose, match, match[1]) for match in _LINK.finditer(self._prose)]

    def anchors(self) -> set[str]:
        """Return what may stand behind `#` in a link to this page."""
        slugs: set[str] = set()
        for heading in _HEADING.findall(self._prose):
            plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
            slugs.add(re.sub(r"\s+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower()))
        return slugs

    def commands(self) -> Iterator[Piece]:
        """Yield the command lines: those after `$` in blocks, a backslash continues, and those between backticks."""
        for block in self.blocks("console", "text"):
            joined = re.sub(r"\\\n\s*", lambda match: " " * len(match[0]), block.text)
            for match in re.finditer(r"^\$ (.*)$", joined, re.MULTILINE):
                line = block.line + joined.count("\n", 0, match.start()) + 1
                yield Piece(self.path, line, match[1])
        for span in self.spans():
            if re.match(r"(crossperf|make|python) [\w.<-]", span.text):
                yield span

    @property
    def _prose(self) -> str:
        return _FENCE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), self.text)

    def _piece(self, text: str, match: re.Match[str], content: str, language: str = "") -> Piece:
        return Piece(self.path, text.count("\n", 0, match.start()) + 1, content, language)


def pages() -> list[Document]:
    """Return every page that speaks of the package as it is now; the changelog speaks of what it was."""
    paths = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md")]
    return [Document(path) for path in sorted(paths) if path.name != "CHANGELOG.md"]
