"""Which platform stands behind each partition of a site, and which partition jobs fall to by default."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crossperf import cluster
from crossperf.documents import MEGABYTE, parse, read_text
from crossperf.errors import CrossperfError, did_you_mean, some_of
from crossperf.plain import shown, to_json
from crossperf.schedule.machines import price_of

#: What errors call a mapping that was written out as partition=platform,...
_ARGUMENT = "partitions"
#: The number of the format of the file that `setup` writes.
FORMAT = 1
_MOST_BYTES = 16 * MEGABYTE


class SiteError(CrossperfError):
    """A mapping from partitions to platforms cannot be used."""


@dataclass(frozen=True)
class Place:
    """A partition, the platform of its nodes, and the price of a node for an hour (0 where unknown).

    A job that is sent there and asks for no generic resource gets `gres` on each node, such as ``gpu:1``.
    """

    partition: str
    platform: str
    price_per_node_hour: float = 0.0
    gres: str = ""


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

        ``gpu=h200:gres/gpu:1`` names the generic resource that jobs get there.

        Parameters
        ----------
        default
            The default partition; ``None`` takes that of the file, or the first.
        """
        if "=" in text and not Path(text).is_file():
            return _site(_pairs(text), default, _ARGUMENT)
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
        return {"format": FORMAT, "default": self.default, "partitions": to_json(self.places)}


def read(path: str | os.PathLike[str], default: str | None = None) -> Site:
    """Return the site of a JSON file that `crossperf slurm setup` wrote, or of a CSV with partition and platform.

    A SITE.toml of a campaign (`crossperf.cluster.read`) has the same, and what a job gets there.
    """
    if Path(path).suffix == ".toml":
        own = cluster.read(Path(path)).platforms
        rows = [{"partition": each.partition, "platform": name, "gres": each.gres} for name, each in own.items()]
        return _site(rows, default, str(path))
    try:
        text = read_text(path, _MOST_BYTES)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        advice = "Expected partition=platform,... or a JSON or CSV file with them."
        raise _refusal(_ARGUMENT, f"{path} cannot be read ({reason}). {advice}") from error
    if not str(path).endswith(".json"):
        try:
            entries = list(csv.DictReader(text.splitlines(), skipinitialspace=True))
        except csv.Error as error:
            raise _refusal(str(path), f"does not read as CSV ({error}), expected partition and platform.") from error
        return _site(entries, default, str(path))
    try:
        facts = parse(text.encode())
        if facts.get("format", FORMAT) != FORMAT:
            raise _refusal(str(path), f"found format {shown(facts['format'])}, expected {FORMAT}. Upgrade crossperf.")
        if not isinstance(facts.get("default"), str | None):
            raise _refusal(str(path), f"found the default {shown(facts['default'])}, expected the name of a partition.")
        rows, stated = [dict(row) for row in facts["partitions"]], facts.get("default")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        problem = f"does not read as a mapping ({type(error).__name__}: {error})"
        expected = "'partitions', a list of objects with 'partition' and 'platform'"
        raise _refusal(str(path), f"{problem}, expected {expected}. 'crossperf slurm setup' writes one.") from error
    return _site(rows, default or stated, str(path))


def _pairs(text: str) -> list[Mapping[str, Any]]:
    rows: list[Mapping[str, Any]] = []
    for pair in filter(None, (word.strip() for word in text.split(","))):
        partition, equals, rest = pair.partition("=")
        if not equals:
            raise _refusal(_ARGUMENT, f"found {pair!r}, expected partition=platform, such as gpu=h200.")
        platform, _, gres = rest.partition(":gres/")
        rows.append({"partition": partition.strip(), "platform": platform.strip(), "gres": gres})
    return rows


def _site(rows: Iterable[Mapping[str, Any]], default: str | None, where: str) -> Site:
    places: dict[str, Place] = {}
    for number, row in enumerate(rows, start=1):
        name, platform = (str(row.get(key) or "").strip() for key in ("partition", "platform"))
        if not name or not platform or name in places:
            what = f"partition {name!r} with platform {platform!r}"
            raise _refusal(where, f"entry {number}: found {what}, expected each partition once, with a platform.")
        price = price_of(row.get("price_per_node_hour"))
        if price is None:
            what = f"a price of {row['price_per_node_hour']!r}"
            raise _refusal(where, f"entry {number}: found {what}, expected 0 or more, or nothing.")
        gres = str(row.get("gres") or "").strip().removeprefix("gres/").removeprefix("gres:")
        if gres and not re.fullmatch(r"[\w.-]+(:[\w.-]+)?(:\d+)?", gres, re.ASCII):
            raise _refusal(where, f"entry {number}: found the gres {gres!r}, expected one such as gpu:1 or gpu:a100:2.")
        places[name] = Place(name, platform, price, gres)
    if not places:
        raise _refusal(where, "found no partition, expected at least one with its platform, such as gpu=h200.")
    chosen = default or next(iter(places))
    if chosen not in places:
        problem = f"the default partition {chosen!r} is not mapped{did_you_mean(chosen, places)}"
        raise _refusal(where, f"{problem}, expected one of {some_of(places, 20)}.")
    return Site(tuple(places.values()), chosen)


def _refusal(where: str, problem: str) -> SiteError:
    facts = {"argument": where} if where == _ARGUMENT else {"path": where}
    return SiteError(f"{where}: {problem}", **facts)
