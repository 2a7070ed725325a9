"""The platforms that a user knows, by name, in one JSON file."""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from crossperf import plain
from crossperf.documents import MEGABYTE, Document
from crossperf.errors import PlatformError, did_you_mean, some_of
from crossperf.files import locked, write_json
from crossperf.platforms.facts import MachineFacts

_FORMAT = 1
#: Memory differs a little between two descriptions of one machine, by what the firmware keeps.
_MEMORY_TOLERANCE = 0.1


@dataclass(frozen=True)
class Platform:
    """A machine by the name that its runs carry, with its facts.

    >>> platform = Platform("epyc-2", "cpu", MachineFacts(cores=2))
    >>> Platform.from_json(platform.to_json()) == platform
    True
    """

    name: str
    platform_class: str = "cpu"
    facts: MachineFacts = field(default_factory=MachineFacts)

    def to_json(self) -> dict[str, Any]:
        """Return the platform as JSON's own types."""
        return {"name": self.name, "platform_class": self.platform_class, "facts": self.facts.to_json()}

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Platform:
        """Return the platform that `to_json` wrote."""
        written = plain.from_json(_Entry, entry)
        if not written.name.strip() or not written.platform_class.strip():
            actual = f"{plain.shown(written.name)} of class {plain.shown(written.platform_class)}"
            raise plain.MisfitError(actual, "two names")
        try:
            return cls(written.name, written.platform_class, MachineFacts.from_json(written.facts or {}))
        except plain.MisfitError as misfit:
            raise misfit.below("facts") from None


@dataclass(frozen=True)
class _Entry:
    """A platform as it stands in the file."""

    name: str
    platform_class: str = "cpu"
    facts: Mapping[str, Any] | None = None


def read(path: str | Path) -> list[Platform]:
    """Return the platforms of a file in its order; none where there is no such file yet."""
    try:
        Path(path).lstat()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise PlatformError(
            f"{path}: cannot be read ({error.strerror}). Choose another file.", path=str(path)
        ) from error
    document = _DOCUMENT.read(path)
    entries = document.get("platforms")
    if not isinstance(entries, list):
        raise PlatformError(f"{path}: has no list 'platforms'. {_CURE}", path=str(path))
    platforms, problems = [], []
    for number, entry in enumerate(entries, start=1):
        try:
            platforms.append(Platform.from_json(entry))
        except ValueError as problem:
            problems.append(f"platform {number} is not as expected ({problem})")
    names = Counter(platform.name for platform in platforms)
    problems += [f"the name {plain.shown(name)} stands twice" for name, count in names.items() if count > 1]
    if problems:
        raise PlatformError(f"{path}: {some_of(problems)}. {_CURE}", path=str(path), problems=problems)
    return platforms


_CURE = "Correct the file, or move it away and add the platforms again with 'crossperf platforms add'."
_DOCUMENT = Document("a file of platforms", _CURE, _FORMAT, error=PlatformError, most_bytes=16 * MEGABYTE)


def add(path: str | Path, platform: Platform, overwrite: bool = False) -> list[Platform]:
    """Write a platform into a file, and return all that it holds now.

    Parameters
    ----------
    overwrite
        Take the place of a platform of the same name; otherwise that is an error.
    """
    path = Path(path)
    if not platform.name.strip():
        raise PlatformError("a platform needs a name, such as: crossperf platforms add my-cluster")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        problem = f"cannot be made ({error.strerror}). Choose another place."
        raise PlatformError(f"{path.parent}: {problem}", path=str(path)) from error
    with locked(path):  # whoever adds one at the same time waits, and reads this one too
        platforms = {known.name: known for known in read(path)}
        if platform.name in platforms and not overwrite:
            advice = "Choose another name, or replace it with --overwrite."
            problem = f"holds a platform {platform.name!r} already. {advice}"
            raise PlatformError(f"{path}: {problem}", path=str(path), name=platform.name)
        platforms[platform.name] = platform
        write_json(path, {"format": _FORMAT, "platforms": [known.to_json() for known in platforms.values()]})
    return list(platforms.values())


def find(platforms: Sequence[Platform], name: str) -> Platform:
    """Return the platform of a name, or raise with the nearest one that is known."""
    by_name = {platform.name: platform for platform in platforms}
    if name in by_name:
        return by_name[name]
    advice = "None is known yet; add one: crossperf platforms add NAME."
    known = f"Known are: {some_of(by_name)}." if by_name else advice
    raise PlatformError(f"no platform {name!r} is known{did_you_mean(name, by_name)}. {known}", name=name)


def matching(platforms: Sequence[Platform], facts: MachineFacts, platform_class: str | None = None) -> Platform | None:
    """Return the platform that describes the machine of these facts, or ``None``.

    Parameters
    ----------
    platform_class
        Look among platforms of this class alone: a machine can be known as a CPU and as a GPU.
    """
    of_class = (platform for platform in platforms if platform_class in (None, platform.platform_class))
    return next((platform for platform in of_class if _same(platform.facts, facts)), None)


def _same(a: MachineFacts, b: MachineFacts) -> bool:
    if a.cpu_model is None or _identity(a) != _identity(b):
        return False
    if a.caches and b.caches and _cache_sizes(a) != _cache_sizes(b):
        return False
    return not (a.memory_bytes and b.memory_bytes) or abs(a.memory_bytes / b.memory_bytes - 1.0) <= _MEMORY_TOLERANCE


def _cache_sizes(facts: MachineFacts) -> set[tuple[int, str, float | None]]:
    """Return the caches by size: two generations of a processor can carry the same name on a virtual machine."""
    return {(cache.level, cache.kind, cache.size_bytes) for cache in facts.caches}


def _identity(facts: MachineFacts) -> tuple[Any, ...]:
    """Return the facts that two descriptions of one machine share."""
    gpus = sorted(str(gpu.model) for gpu in facts.gpus)
    processor = (facts.architecture, facts.cpu_vendor, facts.cpu_model)
    return *processor, facts.sockets, facts.cores, facts.threads_per_core, gpus


def platform_of(
    facts: MachineFacts, kept: Sequence[Platform], name: str | None = None, platform_class: str = "cpu"
) -> Platform:
    """Return the entry of the machine of these facts: the one that is kept, or a new one.

    Parameters
    ----------
    name
        Its name; the default is that of the kept entry that describes the machine, or one made from the facts.
    """
    by_name = {platform.name: platform for platform in kept}
    known = by_name.get(name) if name else matching(kept, facts, platform_class)
    return known or Platform(name or name_for(facts, platform_class), platform_class, facts)


def user_file() -> Path:
    """Return the file in which this user's platforms are kept."""
    settings = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return Path(os.environ.get("CROSSPERF_PLATFORMS") or settings / "crossperf" / "platforms.json")


def set_fact(platform: Platform, text: str) -> Platform:
    """Return the platform with a fact that its user knows, from ``name=value``; an empty value takes it away.

    >>> set_fact(Platform("a"), "price_per_hour=1.2").facts.more
    {'price_per_hour': 1.2}
    """
    name, equals, value = text.partition("=")
    name = name.strip()
    if not equals or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name):
        raise PlatformError(f"found {text!r}, expected a fact as name=value, such as price_per_hour=1.2")
    facts = {known: fact for known, fact in platform.facts.to_json().items() if known != name}
    facts |= {name: _value(name, value.strip())} if value.strip() else {}
    try:
        return replace(platform, facts=MachineFacts.from_json(facts))
    except ValueError as error:
        problem = f"the fact {name!r} is {value.strip()!r}, expected a value of another kind: {error}"
        raise PlatformError(problem) from error


def _value(name: str, text: str) -> Any:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        number = float(text)
    except ValueError:
        return text
    if not math.isfinite(number):
        raise PlatformError(f"the fact {name!r} is {text}, expected a finite number or a text")
    return int(text) if re.fullmatch(r"[+-]?\d+", text) else number


def name_for(facts: MachineFacts, platform_class: str | None = None) -> str:
    """Return a short name that stays the same for the same kind of machine.

    >>> name_for(MachineFacts(cpu_model="Intel(R) Xeon(R) CPU E5-2690 v4 @ 2.60GHz", cpu_vendor="Intel", cores=28))
    'intel-xeon-e5-2690-v4-28c'
    >>> from crossperf.platforms import Gpu
    >>> name_for(MachineFacts(gpus=(Gpu("NVIDIA", "NVIDIA H200"),)), platform_class="gpu")
    'h200'
    """
    gpus = facts.gpus
    if platform_class == "gpu" and gpus:
        slug = _slug(re.sub(r"\b(NVIDIA|AMD|Instinct|Tesla|GeForce|Radeon)\b", " ", gpus[0].model or ""))
        return (slug or "gpu") + (f"-x{len(gpus)}" if len(gpus) > 1 else "")
    model = facts.cpu_model or facts.architecture or "unknown"
    model = re.sub(r"\((R|TM|C)\)|@.*|\bwith\b.*|\b\d+-Core\b", " ", model, flags=re.IGNORECASE)
    slug = _slug(re.sub(r"\b(CPU|Processor)\b", " ", model, flags=re.IGNORECASE))
    vendor = _slug(facts.cpu_vendor or "")
    if vendor and vendor not in slug.split("-"):
        slug = f"{vendor}-{slug}"
    return f"{slug}-{facts.cores}c" if facts.cores else slug


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.")
