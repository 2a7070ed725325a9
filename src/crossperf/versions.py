"""Versions of what a result depends on: installed packages, and a digest of the package's own source code."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path

_ROOT = Path(__file__).parent
#: The packages whose release may change the numbers of a result.
_PACKAGES = ("crossperf", "numpy", "scikit-learn", "torch", "xgboost-cpu")


def versions() -> dict[str, str]:
    """Return the versions of what a result depends on, by package; those that are not installed are left out."""
    known = {name: version_of(name) for name in _PACKAGES}
    return {"python": platform.python_version(), **{name: version for name, version in known.items() if version}}


def version_of(package: str) -> str | None:
    """Return the version of an installed package; ``None`` where it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


@cache
def code_digest(rooms: tuple[str, ...] = ("",)) -> str:
    """Return a digest of the package's own source: of some rooms or modules, or of all of it.

    Parameters
    ----------
    rooms
        Paths below the package, such as ``model`` or ``evaluation/metrics.py``.

    >>> code_digest(("model",)) == code_digest(("model",)) != code_digest(("dataset",))
    True
    """
    digest = hashlib.sha256()
    for path in _sources(rooms):
        text = path.read_bytes()
        digest.update(f"{path.relative_to(_ROOT)}\x00{len(text)}\x00".encode() + text)
    return digest.hexdigest()[:16]


def _sources(rooms: Sequence[str]) -> Iterator[Path]:
    for room in rooms:
        place = _ROOT / room
        yield from sorted(place.rglob("*.py")) if place.is_dir() else [place]
