"""Evaluations of format 2 (crossperf 0.1), made readable as format 3."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: Format 2 counted the source platform in these: they cannot be compared with scores of format 3.
CAVEAT = (
    "These scores were written by crossperf 0.1, which counts the source platform, whose error is zero, in "
    "typical_factor and mae: they look better than those of today. Evaluate again to compare."
)
_NEW_NAMES = {"odd": "oddness", "range_factor": "interval_factor"}  # what format 3 calls otherwise


def as_format_3(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts of an evaluation of format 2 as format 3 has them."""
    models = {
        name: {"mean": _renamed(scores), "folds": [_renamed(fold) for fold in scores.get("folds", [])]}
        for name, scores in facts["models"].items()
    }
    scores = {"models": models, "noise_ceiling": facts["noise_ceiling"]}
    held_out, latent = facts.get("held_out"), facts.get("latent")
    if held_out:
        held_out = {**held_out, "predictions": {name: _renamed(own) for name, own in held_out["said"].items()}}
    if latent:
        drivers = [{"counter": counter, "x": x, "y": y} for counter, x, y in latent["drivers"]]
        latent = {**latent, "drivers": drivers}
    return {**facts, "scores": scores, "caveats": [CAVEAT, *facts["doubts"]], "held_out": held_out, "latent": latent}


def _renamed(columns: Mapping[str, Any]) -> dict[str, Any]:
    return {_NEW_NAMES.get(column, column): values for column, values in columns.items()}
