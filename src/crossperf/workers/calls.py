"""Remote procedure calls by name: what is sent to a worker, and what the worker does with it.

A call names an importable function and brings plain arguments, so that nothing but names, settings and arrays travels.
A worker that has another version of crossperf, or of a package that numbers depend on, refuses.
"""

from __future__ import annotations

import importlib
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any

from crossperf.errors import SettingsError, WorkerError
from crossperf.versions import code_digest, versions
from crossperf.workers import threads
from crossperf.workers.parcels import Parcel

#: A function of a module that returns a parcel, whatever plain values and parcels it takes.
Function = Callable[..., Parcel]
_CODE = "code"
#: The tables that this process holds for others, by fingerprint.
HELD: dict[str, Parcel] = {}


@cache
def own_versions() -> dict[str, str]:
    """Return what must be the same where work is sent: releases of packages, and a digest of crossperf's code."""
    known = {name: version for name, version in versions().items() if name != "python"}
    return {**known, _CODE: code_digest()}


@dataclass(frozen=True)
class Shared:
    """A parcel that stands in a file, which several calls are given; it is read once by each worker."""

    fingerprint: str
    path: str

    def load(self) -> Parcel:
        """Return the parcel; the last ones that were read are remembered."""
        return _loaded(self.fingerprint, self.path)


@dataclass(frozen=True)
class Held:
    """A parcel that every worker of the cluster holds in memory, by its fingerprint."""

    fingerprint: str

    def load(self) -> Parcel:
        """Return the parcel, in a worker."""
        return HELD[self.fingerprint]


@lru_cache(maxsize=2)
def _loaded(fingerprint: str, path: str) -> Parcel:
    try:
        parcel = Parcel.read(path)
    except (OSError, ValueError) as error:
        raise WorkerError(
            f"{platform.node()}: cannot read {path} ({error}), expected the table that the work is about. Workers "
            "need a folder that they share with whoever gives them work."
        ) from error
    if parcel.fingerprint != fingerprint:
        raise WorkerError(f"{path}: found another table than was sent (fingerprint {parcel.fingerprint[:16]}).")
    return parcel


@dataclass(frozen=True)
class WorkCall:
    """A function by name, its arguments, and where the answer must not differ: the sender's versions and threads."""

    function: str
    arguments: tuple[Any, ...]
    threads: int = 1
    versions: Mapping[str, str] = field(default_factory=own_versions)

    def run(self) -> Parcel:
        """Return the answer, in this process; another version than the sender's raises `WorkerError`."""
        refuse_other_versions(self.versions)
        with threads.limited(self.threads):
            function = function_of(self.function)
            return function(*(own.load() if isinstance(own, Shared | Held) else own for own in self.arguments))


def run(call: WorkCall) -> Parcel:
    """Return the answer of a call; what engines send to workers."""
    return call.run()


def name_of(function: Function) -> str:
    """Return the name by which a function is imported; one that cannot be raises `SettingsError`.

    >>> name_of(run)
    'crossperf.workers.calls:run'
    """
    name = f"{function.__module__}:{function.__qualname__}"
    if "<" in name or function.__module__ == "__main__" or function_of(name) is not function:
        raise SettingsError(f"function: found {name}, expected a function of a module, which workers can import.")
    return name


def function_of(name: str) -> Function:
    """Return the function of a name that `name_of` gave."""
    module, _, path = name.partition(":")
    function: Function = getattr(importlib.import_module(module), path)
    return function


def refuse_other_versions(expected: Mapping[str, str], where: str | None = None) -> None:
    """Raise unless this process has the versions of whoever sent the work."""
    refuse_differences(expected, own_versions(), where or platform.node())


def refuse_differences(expected: Mapping[str, str], actual: Mapping[str, str], where: str) -> None:
    """Raise where a worker has other versions; the sentence tells both."""
    other = [name for name in {**expected, **actual} if expected.get(name) != actual.get(name)]
    if not other:
        return
    if other == [_CODE]:
        release = expected.get("crossperf", "")
        wanted = f"crossperf {release} (code {expected[_CODE]})"
        problem = f"crossperf {release} with other code ({actual.get(_CODE)})"
    else:
        named = [name for name in other if name != _CODE]
        problem = ", ".join(f"{name} {actual.get(name, 'not installed')}" for name in named)
        wanted = ", ".join(f"{name} {expected.get(name, 'not installed')}" for name in named)
    raise WorkerError(
        f"{where}: found {problem}, expected {wanted} as here. Install the same versions on every worker; nothing "
        "was computed there.",
        found=dict(actual),
        expected=dict(expected),
    )
