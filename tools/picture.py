"""Draw docs/answer.svg, the README's picture: one run, its predicted times everywhere, and what was measured later.

crossperf demo -o demo
crossperf predict demo/model demo/new.jsonl --json demo/predictions.json
python tools/picture.py demo/predictions.json
"""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path

import matplotlib as mpl
import polars as pl
from matplotlib.figure import Figure

from crossperf.datasets import testbed

TARGET = Path(__file__).parent.parent / "docs" / "answer.svg"
INK, BLUE, ORANGE, FAINT = "#1b2733", "#2f6fb3", "#c05f0c", "#dfe4ea"
#: Where the columns of numbers end, in widths of the axes.
PREDICTED_AT, MEASURED_AT = 1.12, 1.24


def measured(app: str, input_: str) -> dict[str, float]:
    """Return the median seconds of a workload of the testbed on each platform."""
    frame = testbed.load().frame.filter((pl.col("app") == app) & (pl.col("input") == input_))
    return dict(frame.group_by("platform").agg(pl.col("runtime_s").median()).iter_rows())


def draw(prediction: dict[str, object], truth_s: dict[str, float]) -> Figure:
    """Return the figure: a row a platform, the interval as a bar, the prediction on it, the truth as a diamond."""
    times: dict[str, float] = prediction["relative_time"]  # type: ignore[assignment]
    low: dict[str, float] = prediction["low"]  # type: ignore[assignment]
    high: dict[str, float] = prediction["high"]  # type: ignore[assignment]
    source = str(prediction["source"])
    figure = Figure(figsize=(8.8, 3.4), layout="constrained")
    axes = figure.add_subplot()
    axes.set_xscale("log")
    # Numbers stand in two columns beside the axes.
    write = partial(axes.text, transform=axes.get_yaxis_transform(), ha="right", va="center", fontsize=10)
    write(PREDICTED_AT, len(times) - 0.35, "predicted", color=BLUE)
    write(MEASURED_AT, len(times) - 0.35, "measured", color=ORANGE)
    for row, name in enumerate(sorted(times, key=lambda platform: times[platform], reverse=True)):
        if name == source:
            axes.plot(1, row, "o", color=INK, markersize=9)
            axes.text(1.06, row, "measured here", va="center", color=INK, fontsize=10)
            continue
        axes.plot([low[name], high[name]], [row, row], color=BLUE, alpha=0.35, linewidth=11, solid_capstyle="butt")
        axes.plot(times[name], row, "o", color=BLUE, markersize=9)
        axes.plot(truth_s[name] / truth_s[source], row, "D", color=ORANGE, markersize=7, markeredgecolor="white")
        write(PREDICTED_AT, row, f"{times[name]:.2f}x", color=BLUE)
        write(MEASURED_AT, row, f"{truth_s[name] / truth_s[source]:.2f}x", color=ORANGE)
    axes.axvline(1, color=INK, linewidth=0.8, zorder=0)
    axes.set_yticks(range(len(times)), sorted(times, key=lambda platform: times[platform], reverse=True))
    axes.set_xlabel(f"time relative to {source}: left is faster")
    axes.set_xticks([0.05, 0.1, 0.2, 0.5, 1, 2], ["0.05x", "0.1x", "0.2x", "0.5x", "1x", "2x"])
    axes.set_xticks([], minor=True)
    axes.grid(axis="x", color=FAINT, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.set_xlim(0.045, 2.3)
    axes.set_title(f"One run of {prediction['app']} on {source}: how fast elsewhere?", loc="left", fontsize=13, pad=20)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    legend = [("o", BLUE, "predicted, with its 80 % interval"), ("D", ORANGE, "measured afterwards")]
    handles = [axes.plot([], [], mark, color=colour, label=words)[0] for mark, colour, words in legend]
    axes.legend(handles=handles, frameon=False, loc="lower left", fontsize=10)
    return figure


def main() -> None:
    """Draw the first prediction of the file named on the command line."""
    prediction = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["predictions"][0]
    with mpl.rc_context({"svg.fonttype": "path", "svg.hashsalt": "crossperf", "font.family": "DejaVu Sans"}):
        figure = draw(prediction, measured(prediction["app"], prediction["input"]))
        figure.savefig(TARGET, facecolor="white", metadata={"Date": None, "Creator": None})
    print(f"wrote {TARGET.name}")


if __name__ == "__main__":
    main()
