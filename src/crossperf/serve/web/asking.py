"""A question as a page asks it: a run, and what the toggles beside it say, from the fields of a form or a link."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from starlette.datastructures import ImmutableMultiDict

from crossperf.errors import SettingsError
from crossperf.platforms import Platform
from crossperf.records import Run
from crossperf.serve.service import Service
from crossperf.serve.web import links

LEVELS = (0.5, 0.8, 0.9, 0.95)
#: Whether there is a version for a GPU: as the run states, yes, no.
GPU_VERSIONS = {"": "as the run states", "yes": "yes", "no": "no"}


@dataclass(frozen=True)
class PageQuestion:
    """One run and the toggles.

    Parameters
    ----------
    known
        The application, the input and, unless empty, the source platform of a known workload; the run is that one.
    gpu
        A key of `GPU_VERSIONS`.
    threads
        The most threads that a platform may use; ``None``: any number.
    platforms
        The platforms to tell of; empty: all of the model.
    here
        The platform of the model that stands for where the run was measured; empty: the run's own.
    """

    run: Run
    known: tuple[str, str, str] | None = None
    model: str = ""
    level: float = 0.8
    gpu: str = ""
    threads: int | None = None
    platforms: tuple[str, ...] = ()
    here: str = ""

    @classmethod
    def read(cls, fields: ImmutableMultiDict[str, Any], service: Service) -> PageQuestion:
        """Return the question of a link; one without a run, or with a toggle that is none, raises."""
        model = text(fields, "model")
        if text(fields, "run"):
            run, known = links.read(text(fields, "run")), None
        elif text(fields, "app"):
            known = (text(fields, "app"), text(fields, "input"), text(fields, "source"))
            run = service.run_of(known[0], known[1], known[2] or None, model=model or None)
        else:
            raise SettingsError("This link asks about no run, expected one that a page made. Begin with Ask.")
        return cls(run, known, **toggles(fields))

    def link(self, path: str = "/answer", **other: str) -> str:
        """Return the address of this question on a page."""
        return f"{path}?{urlencode([*self.fields(), *other.items()])}"

    def fields(self, *left_out: str) -> list[tuple[str, str]]:
        """Return the question as the fields of a form, without some; toggles at rest are none."""
        pairs = [("run", links.written(self.run))]
        if self.known:
            pairs = list(zip(("app", "input", "source"), self.known, strict=True))
        pairs += [("model", self.model), ("level", f"{self.level:g}" if self.level != 0.8 else ""), ("gpu", self.gpu)]
        pairs += [("threads", str(self.threads or "")), ("here", self.here)]
        pairs += [("platform", name) for name in self.platforms]
        return [(name, value) for name, value in pairs if value and name not in left_out]

    @property
    def classes(self) -> Mapping[str, str]:
        """The values of `gpu` by what they are called."""
        return GPU_VERSIONS

    def can(self, classes: Sequence[str]) -> list[str] | None:
        """Return the platform classes for which there is a version; ``None``: as the run states."""
        kinds = dict.fromkeys(classes)
        return {"yes": list(kinds), "no": [kind for kind in kinds if kind != "gpu"] or None}.get(self.gpu)

    def wants(self, platform: Platform) -> bool:
        """Tell whether a platform is asked about."""
        used = platform.facts.more.get("threads")
        within = self.threads is None or not isinstance(used, int) or used <= self.threads
        return within and (not self.platforms or platform.name in self.platforms)


def text(fields: ImmutableMultiDict[str, Any], name: str) -> str:
    """Return a field as text; an absent one, or a file, is empty."""
    value = fields.get(name, "")
    return value if isinstance(value, str) else ""


def toggles(fields: ImmutableMultiDict[str, Any]) -> dict[str, Any]:
    """Return what the toggles say, by the fields of a `PageQuestion`."""
    names = tuple(name for name in fields.getlist("platform") if isinstance(name, str) and name)
    gpu = text(fields, "gpu")
    if gpu not in GPU_VERSIONS:
        raise SettingsError(f"gpu: found {gpu[:40]!r}, expected yes or no, or nothing.")
    return {
        "model": text(fields, "model"),
        "level": _number(fields, "level", 0.8, 0.01, 0.99),
        "gpu": gpu,
        "threads": int(threads) if (threads := _number(fields, "threads", 0, 1, 1e6)) else None,
        "platforms": names,
        "here": text(fields, "here"),
    }


def _number(fields: ImmutableMultiDict[str, Any], name: str, default: float, least: float, most: float) -> float:
    written = text(fields, name)
    if not written:
        return default
    try:
        number = float(written)
    except ValueError:
        number = float("nan")
    if not least <= number <= most:
        raise SettingsError(f"{name}: found {written[:40]!r}, expected a number from {least:g} to {most:g}.")
    return number
