"""Write the summary tables of docs/accuracy.md from those of benchmarks/accuracy.md, so that figures have one home.

python tools/accuracy.py            # writes them; a test checks that they are current
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "accuracy.md"
BEGIN, END = "<!-- figures: written by tools/accuracy.py -->", "<!-- end of figures -->"
SPLITS = {"workload": "On inputs never seen, of applications known", "app": "On applications never seen"}
CEILING = "*noise ceiling*"


class Scores(NamedTuple):
    """What is shown of a model: off by which factor, how much is explained, how often the fastest is picked."""

    typical_factor: float
    r2_log: float
    top1: float

    def shown(self, best: Scores | None) -> str:
        """Return the three as one cell of a table, the best of each bold."""
        leading = best.texts() if best else ["", "", ""]
        pairs = zip(self.texts(), leading, strict=True)
        return " / ".join(f"**{mine}**" if mine == its else mine for mine, its in pairs)

    def texts(self) -> list[str]:
        """Return the three as they are printed."""
        return [f"{self.typical_factor:.3f}", f"{self.r2_log:.2f}", f"{100 * self.top1:.0f} %"]


class Section(NamedTuple):
    """The scores of every model on one table under one split, and the sentence below them."""

    table: str
    split: str
    models: dict[str, Scores]
    remark: str


def sections(text: str) -> list[Section]:
    """Return the first section of each table and split; later ones are of other platforms or earlier versions."""
    parts = re.split(r"^## (\w+), split `(\w+)`$", text, flags=re.MULTILINE)[1:]
    first: dict[tuple[str, str], Section] = {}
    for table, split, body in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        body = re.split(r"^# ", body, flags=re.MULTILINE)[0]
        rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in body.splitlines() if line[:1] == "|"]
        models = {row[0]: scores(dict(zip(rows[0], row, strict=False))) for row in rows[2:]}
        remark = body.strip().splitlines()[-1]
        first.setdefault((table, split), Section(table, split, models, "" if remark[:1] == "|" else remark))
    return [section for section in first.values() if section.split in SPLITS]


def scores(row: dict[str, str]) -> Scores:
    """Return the scores of a row; a factor comes with its range over folds, which is left out."""
    return Scores(float(row["typical_factor"].split()[0]), float(row["r2_log"]), float(row["top1"]))


def figures(text: str) -> str:
    """Return a table for each split, models down and data sets across, and what was remarked on each."""
    blocks = []
    for split, title in SPLITS.items():
        shown = [section for section in sections(text) if section.split == split]
        names = dict.fromkeys(name for section in shown for name in section.models)
        ordered = [*(name for name in names if name != CEILING), CEILING]
        blocks += [f"## {title}", "", "| model | " + " | ".join(f"`{section.table}`" for section in shown) + " |"]
        blocks += ["|---" * (len(shown) + 1) + "|"]
        for name in ordered:
            label = name if name == CEILING else f"`{name}`"
            blocks.append(f"| {label} | " + " | ".join(cell(section, name) for section in shown) + " |")
        blocks += ["", *(f"- `{section.table}`: {section.remark}" for section in shown if section.remark), ""]
    return "\n".join(blocks).rstrip()


def cell(section: Section, name: str) -> str:
    """Return a model's scores on one table, or a dash where it was not scored."""
    if name not in section.models:
        return "-"
    if name == CEILING:
        return section.models[name].shown(None)
    rivals = [scores for model, scores in section.models.items() if model != CEILING]
    best = Scores(
        min(its.typical_factor for its in rivals), max(its.r2_log for its in rivals), max(its.top1 for its in rivals)
    )
    return section.models[name].shown(best)


def page() -> str:
    """Return docs/accuracy.md with the figures as they are now."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    text = (ROOT / "benchmarks" / "accuracy.md").read_text(encoding="utf-8")
    return f"{before}{BEGIN}\n{figures(text)}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
