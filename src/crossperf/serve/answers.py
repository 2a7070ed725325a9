"""Predictions as a client gets them: JSON straight from the records, or CSV with a row for each platform."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from crossperf.prediction.answer import Answer
from crossperf.records import Prediction
from crossperf.serve.models import ServedModel

_COLUMNS = (
    "app", "input", "source", "platform", "relative_time", "seconds", "low", "high", "chance_fastest", "cost",
    "familiarity", "cannot",
)  # fmt: skip
_HOUR_S = 3600.0


@dataclass(frozen=True)
class AnsweredPrediction(Prediction):
    """A prediction as the API gives it: its order, fastest first, and the cost of one run where prices are known."""

    fastest: str = ""
    order: tuple[str, ...] = ()
    cost: Mapping[str, float] | None = None


@dataclass(frozen=True)
class ModelName:
    """The model that answered."""

    id: str
    fingerprint: str


@dataclass(frozen=True)
class Predictions:
    """The answer of /predict: one prediction for each workload and source platform, and notes on all."""

    format: int
    model: ModelName
    notes: tuple[str, ...]
    predictions: tuple[AnsweredPrediction, ...]


def as_json(answered: Answer, served: ServedModel, prices: Mapping[str, float], *, pairs: bool) -> bytes:
    """Return an answer as JSON; NaN, which JSON has not, is null."""
    facts = {
        "format": 1,
        "model": {"id": served.id, "fingerprint": served.fingerprint},
        "notes": answered.notes,
        "predictions": [_facts(own, prices, pairs=pairs) for own in answered.predictions],
    }
    return orjson.dumps(facts)


def _facts(own: Prediction, prices: Mapping[str, float], *, pairs: bool) -> dict[str, Any]:
    """Return a prediction as `Prediction.to_json` does, with its order and costs; without `pairs`, less of it."""
    facts = dict(vars(own))
    if not pairs:
        del facts["chance_faster"]
    order = order_of(own)
    facts["fastest"], facts["order"] = order[0], order
    if prices and own.seconds:
        facts["cost"] = costs(own, prices)
    return facts


def order_of(own: Prediction) -> list[str]:
    """Return the platforms that are offered, the fastest first."""
    times, cannot = own.relative_time, own.cannot
    offered = [name for name in times if name not in cannot] if cannot else times
    return sorted(offered, key=times.__getitem__)


def costs(own: Prediction, prices: Mapping[str, float]) -> dict[str, float]:
    """Return what one run costs on each platform that is offered and whose price is known."""
    offered = (name for name in own.seconds if name in prices and name not in own.cannot)
    return {name: own.seconds[name] * prices[name] / _HOUR_S for name in offered}


def as_csv(predictions: Sequence[Prediction], prices: Mapping[str, float]) -> bytes:
    """Return predictions as CSV with a row for each run and platform; what is not known is empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for own in predictions:
        writer.writerows(_rows(own, prices))
    return text.getvalue().encode()


def _rows(own: Prediction, prices: Mapping[str, float]) -> Iterator[list[Any]]:
    cost, looks = costs(own, prices) if prices and own.seconds else {}, own.familiarity
    figures = (own.relative_time, own.seconds, own.low, own.high, own.chance_fastest, cost)
    for name in own.relative_time:
        numbers = (figure.get(name, math.nan) for figure in figures)
        texts = ("" if math.isnan(number) else repr(number) for number in numbers)
        yield [own.app, own.input, own.source, name, *texts, looks.word if looks else "", own.cannot.get(name, "")]
