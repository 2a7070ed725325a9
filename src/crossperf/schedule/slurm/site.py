"""Which platform stands behind each partition of a site, and which partition jobs fall to by default."""

from __future__ import annotations

import csv
import json
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crossperf.errors import CrossperfError, did_you_mean, some_of


class SiteError(CrossperfError):
    """A mapping from partitions to platforms cannot be used."""


@dataclass(frozen=True)
class Place:
    """A partition, the platform of its nodes, and the price of a node for an hour (0 where unknown)."""

    partition: str
    platform: str
    price_per_node_hour: float = 0.0


@dataclass(frozen=True)
class Site:
    """The partitions that jobs may be sent to, and the one that Slurm takes by itself.

    >>> site = Site.of("cpu=epyc-2,gpu=h200")
    >>> site.default, site.platform("gpu")
    ('cpu', 'h200')
    """

    places: tuple[Place, ...]
    default: str

    @classmethod
    def of(cls, text: str, default: str | None = None) -> Site:
        """Return a site from ``partition=platform,...`` or from a file that holds the same as JSON or CSV.

        Parameters
        ----------
        default
            The default partition; ``None`` takes that of the file, or the first.
        """
        if "=" in text and not Path(text).is_file():
            return _site(_pairs(text), default, "--partitions")
        return read(text, default)

    def platform(self, partition: str) -> str | None:
        """Return the platform of a partition, or ``None`` where it is not mapped."""
        return next((place.platform for place in self.places if place.partition == partition), None)

    @property
    def reference(self) -> str:
        """The platform of the default partition, which times are relative to."""
        return next(place.platform for place in self.places if place.partition == self.default)

    def to_json(self) -> dict[str, Any]:
        """Return the site as JSON's own types, which `read` reads."""
        rows = [
            {"partition": place.partition, "platform": place.platform, "price_per_node_hour": place.price_per_node_hour}
            for place in self.places
        ]
        return {"format": 1, "default": self.default, "partitions": rows}


def read(path: str | os.PathLike[str], default: str | None = None) -> Site:
    """Return the site of a JSON file that `crossperf slurm setup` wrote, or of a CSV with partition and platform."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        advice = "Expected partition=platform,... or a JSON or CSV file with them."
        raise SiteError(f"--partitions {path}: cannot be read ({reason}). {advice}", path=str(path)) from error
    if str(path).endswith(".json"):
        rows, stated = _json_rows(text, path)
        return _site(rows, default or stated, str(path))
    return _site(csv.DictReader(text.splitlines(), skipinitialspace=True), default, str(path))


def _json_rows(text: str, path: str | os.PathLike[str]) -> tuple[list[Mapping[str, Any]], str | None]:
    try:
        facts = json.loads(text)
        return [dict(row) for row in facts["partitions"]], facts.get("default")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SiteError(
            f"{path}: does not read as a mapping ({type(error).__name__}: {error}), expected 'partitions', a list of "
            "objects with 'partition' and 'platform'. 'crossperf slurm setup' writes one.",
            path=str(path),
        ) from error


def _pairs(text: str) -> list[Mapping[str, Any]]:
    rows: list[Mapping[str, Any]] = []
    for pair in filter(None, (word.strip() for word in text.split(","))):
        partition, equals, platform = pair.partition("=")
        if not equals:
            raise SiteError(f"--partitions: found {pair!r}, expected partition=platform, such as gpu=h200.")
        rows.append({"partition": partition.strip(), "platform": platform.strip()})
    return rows


def _site(rows: Iterable[Mapping[str, Any]], default: str | None, where: str) -> Site:
    places: dict[str, Place] = {}
    for number, row in enumerate(rows, start=1):
        name, platform = (str(row.get(key) or "").strip() for key in ("partition", "platform"))
        if not name or not platform or name in places:
            found = f"partition {name!r} with platform {platform!r}"
            raise SiteError(f"{where}, entry {number}: found {found}, expected each partition once, with a platform.")
        places[name] = Place(name, platform, _price(row.get("price_per_node_hour"), where, number))
    if not places:
        raise SiteError(f"{where}: found no partition, expected at least one with its platform, such as gpu=h200.")
    chosen = default or next(iter(places))
    if chosen not in places:
        raise SiteError(
            f"{where}: the default partition {chosen!r} is not mapped{did_you_mean(chosen, places)}, expected one of "
            f"{some_of(places, 20)}."
        )
    return Site(tuple(places.values()), chosen)


def _price(value: Any, where: str, number: int) -> float:
    try:
        price = float(value or 0.0)
    except (TypeError, ValueError):
        price = math.nan
    if not 0.0 <= price < math.inf:
        raise SiteError(f"{where}, entry {number}: found a price of {value!r}, expected 0 or more, or nothing.")
    return price
