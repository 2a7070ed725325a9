"""The back ends: every tool that counts while a command runs, and which of them work here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from crossperf.collect.cupti import CuptiBackend
from crossperf.collect.ncu import NcuBackend
from crossperf.collect.papi import PapiBackend
from crossperf.collect.perf import PerfBackend
from crossperf.collect.process import Runner
from crossperf.collect.qemu import QemuBackend
from crossperf.collect.rocprof import RocprofBackend
from crossperf.collect.strace import StraceBackend
from crossperf.collect.valgrind import CacheShape, ValgrindBackend, parse_caches
from crossperf.errors import CollectError, SettingsError, did_you_mean
from crossperf.importers.measurement import Measurement
from crossperf.platforms import MachineFacts, cache_geometry

AUTO, QUICK, OS = "auto", "quick", "os"


class Backend(Protocol):
    """A tool that counts while a command runs."""

    name: str

    def why_not(self) -> str | None:
        """Return why the tool cannot be used here and what to do about it, or ``None``."""

    def count(self, command: Sequence[str], runner: Runner) -> Measurement:
        """Execute the command under the tool; one that fails there raises `CollectError`."""


@runtime_checkable
class LimitedBackend(Protocol):
    """A back end that may work in part."""

    def what_not(self) -> str | None:
        """Return what the tool cannot do here although it works, or ``None``."""


@dataclass(frozen=True)
class BackendChoice:
    """A back end and why it is not used here, if it is not; `limits` is what it cannot do although it works."""

    backend: Backend
    why_not: str | None
    limits: str | None = None


def backends(
    facts: MachineFacts,
    cache: Mapping[str, CacheShape] | str | None = None,
    multiplex: bool = False,
    launch_limit: int | None = None,
) -> list[Backend]:
    """Return every back end, set up for the machine whose facts are given, in the order in which they run.

    Parameters
    ----------
    cache
        What qemu and valgrind take in place of the machine's own caches: bytes, ways and bytes a line of ``I1``, ``D1``
        or ``LL``, or the same as text (``D1=32768,8,64``).
    multiplex
        Let perf count all its events in one execution and scale them.
    launch_limit
        How many kernel launches ncu counts, from the first on; ``None`` counts all.
    """
    assumed, notes = cache_geometry(facts)
    given = parse_caches(cache) if isinstance(cache, str) else cache or {}
    return [
        NcuBackend(launch_limit),
        CuptiBackend(),
        RocprofBackend(),
        PerfBackend(facts.cpu_vendor, multiplex),
        PapiBackend(),
        StraceBackend(),
        QemuBackend({**assumed, **given}, () if given else notes),
        ValgrindBackend({**assumed, **given}, () if given else notes),
    ]


def choices(known: Sequence[Backend]) -> list[BackendChoice]:
    """Return each back end with whether it works here."""
    listed = []
    for backend in known:
        why_not = backend.why_not()
        limits = backend.what_not() if why_not is None and isinstance(backend, LimitedBackend) else None
        listed.append(BackendChoice(backend, why_not, limits))
    return listed


def chosen(known: Sequence[Backend], wanted: str) -> list[Backend]:
    """Return the back ends of a choice: ``auto``, ``quick``, ``os``, or names such as ``perf,valgrind``.

    Those that are named must work here.
    """
    by_name = {backend.name: backend for backend in known}
    if wanted == QUICK:
        return [backend for backend in known if backend.name == "perf"]
    if wanted == AUTO:
        return list(known)
    names = [name.strip() for name in wanted.split(",") if name.strip()]
    for name in names:
        if name not in (*by_name, OS):
            expected = f"{AUTO}, {QUICK}, {OS} or one of {', '.join(by_name)}"
            problem = f"backend: found {name!r}{did_you_mean(name, by_name)}, expected {expected}."
            raise SettingsError(problem, argument="backend")
    for name in names:
        if name != OS and (why_not := by_name[name].why_not()):
            advice = "Fix that, or leave the choice out: what works here is taken then"
            raise CollectError(f"backend: {name} does not work here: {why_not}. {advice}.", argument="backend")
    return [by_name[name] for name in names if name != OS]
