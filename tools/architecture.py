"""Write the table of rooms in ARCHITECTURE.md from the layer contract, the docstrings and the import graph.

python tools/architecture.py            # writes it; a test checks that it is current
"""

from __future__ import annotations

import ast
import sys
import tomllib
from pathlib import Path

import grimp

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "ARCHITECTURE.md"
BEGIN, END = "<!-- rooms: written by tools/architecture.py -->", "<!-- end of rooms -->"


def layers() -> list[list[str]]:
    """Return the layers of pyproject.toml's contract, the highest first, each with its rooms."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    (contract,) = (contract for contract in contracts if contract["type"] == "layers")
    return [[room.strip() for room in layer.split("|")] for layer in contract["layers"]]


def sentence(room: str) -> str:
    """Return the first line of a room's docstring."""
    source = ROOT / "src" / "crossperf" / room
    path = source / "__init__.py" if source.is_dir() else source.with_suffix(".py")
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").partition("\n")[0]


def imports() -> dict[str, list[str]]:
    """Return for each room the other rooms that its modules import, from the import graph."""
    sys.path.insert(0, str(ROOT / "src"))
    graph = grimp.build_graph("crossperf", cache_dir=None)
    edges: dict[str, set[str]] = {}
    for module in graph.modules:
        room = module.split(".")[1:2]
        for other in graph.find_modules_directly_imported_by(module):
            if room and other.count(".") and other.split(".")[1] != room[0]:
                edges.setdefault(room[0], set()).add(other.split(".")[1])
    return {room: sorted(others) for room, others in edges.items()}


def table() -> str:
    """Return the rooms as a Markdown table, a row a room, the highest layer first."""
    used = imports()
    rows = ["| layer | room | what it holds | imports from |", "|---:|---|---|---|"]
    for number, rooms in zip(range(len(layers()), 0, -1), layers(), strict=True):
        for room in rooms:
            others = ", ".join(f"`{other}`" for other in used.get(room, ()))
            rows.append(f"| {number} | `{room}` | {sentence(room)} | {others} |")
    return "\n".join(rows)


def page() -> str:
    """Return ARCHITECTURE.md with the table of rooms as it is now."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
