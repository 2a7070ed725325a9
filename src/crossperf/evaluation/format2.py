"""Evaluations of format 2 (crossperf 0.1), made readable as format 3."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crossperf.documents import at

#: Format 2 counted the source platform in these: they cannot be compared with scores of format 3.
CAVEAT = (
    "These scores were written by crossperf 0.1, which counts the source platform, whose error is zero, in "
    "typical_factor and mae: they look better than those of today. Evaluate again to compare."
)
_Objects = Mapping[str, Mapping[str, Any]]
_NEW_NAMES = {"odd": "oddness", "range_factor": "interval_factor"}  # what format 3 calls otherwise


def as_format_3(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts of an evaluation of format 2 as format 3 has them; what does not fit raises `MisfitError`."""
    models = {
        name: {"mean": _renamed(scores), "folds": [_renamed(fold) for fold in scores.get("folds") or []]}
        for name, scores in at(facts, "models", _Objects).items()
    }
    scores = {"models": models, "noise_ceiling": facts.get("noise_ceiling")}
    held_out, latent = facts.get("held_out"), facts.get("latent")
    if held_out:
        own = at(at(facts, "held_out", Mapping[str, Any]), "said", _Objects)
        held_out = {**held_out, "predictions": {name: _renamed(columns) for name, columns in own.items()}}
    if latent:
        old = at(at(facts, "latent", Mapping[str, Any]), "drivers", list[tuple[str, float, float]])
        latent = {**latent, "drivers": [{"counter": counter, "x": x, "y": y} for counter, x, y in old]}
    caveats = [CAVEAT, *at(facts, "doubts", list[str])]
    return {**facts, "scores": scores, "caveats": caveats, "held_out": held_out, "latent": latent}


def _renamed(columns: Any) -> Any:
    if not isinstance(columns, Mapping):
        return columns
    return {_NEW_NAMES.get(column, column): values for column, values in columns.items()}
