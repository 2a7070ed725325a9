"""Dataclasses as parcels: their arrays as they are, the rest of their fields as plain facts; and back."""

from __future__ import annotations

import typing
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np

from crossperf import plain
from crossperf.workers.parcels import Parcel

T = TypeVar("T")


def pack_records(records: Mapping[str, Any]) -> Parcel:
    """Return dataclasses by name as one parcel.

    >>> from crossperf.records import Familiarity
    >>> parcel = pack_records({"mine": Familiarity("unusual", 1.5)})
    >>> unpack_record(Familiarity, parcel, "mine").word
    'unusual'
    """
    facts: dict[str, dict[str, Any]] = {name: {} for name in records}
    arrays = {}
    for name, record in records.items():
        for own in fields(record):
            value = getattr(record, own.name)
            if isinstance(value, np.ndarray):
                arrays[f"{name}.{own.name}"] = value
            else:
                facts[name][own.name] = plain.to_json(value)
    return Parcel(facts, arrays)


def unpack_record(kind: type[T], parcel: Parcel, name: str) -> T:
    """Return one of the dataclasses of a parcel that `pack_records` made."""
    kinds = typing.get_type_hints(kind, include_extras=True)
    values = {own: plain.from_json(kinds[own], value) for own, value in parcel.facts[name].items() if value is not None}
    start = f"{name}."
    values |= {path.removeprefix(start): own for path, own in parcel.arrays.items() if path.startswith(start)}
    absent = {own: None for own, value in parcel.facts[name].items() if value is None}
    return kind(**absent, **values)
