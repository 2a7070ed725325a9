"""What the service can do, as plain functions of Python: handlers of the API and pages both call these.

Nothing here knows of HTTP. Methods take runs in whatever form `crossperf.predict` takes them, and return the library's
own records; what cannot be answered raises a `CrossperfError`. All of them may be called from any thread.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from crossperf import platforms as registry
from crossperf.adaptation.adapt import Suggestion
from crossperf.adaptation.adapt import suggest as suggest_workloads
from crossperf.errors import PlatformError, did_you_mean
from crossperf.platforms import Platform
from crossperf.prediction import answer
from crossperf.prediction.answer import Answer
from crossperf.prediction.explain import Explanations, explain
from crossperf.records import Prediction, Run
from crossperf.runs.checking import check_runs
from crossperf.runs.rules import Problem
from crossperf.serve.models import Models, ServedModel, UnknownNameError

#: The fact of a platform that holds what an hour on it costs.
PRICE = "price_per_hour"
_HOUR_S = 3600.0


@dataclass(frozen=True)
class KnownWorkload:
    """A workload that a model has learned from, with its measured times: ``None`` where it never ran."""

    app: str
    input: str
    seconds: Mapping[str, float | None]
    sources: tuple[str, ...]

    @property
    def fastest(self) -> str:
        """The platform on which it took the least time."""
        return min((name for name, own in self.seconds.items() if own), key=lambda name: self.seconds[name] or 0.0)


class Service:
    """Models, platforms and finished runs behind one set of functions.

    >>> service = Service.open()
    >>> workload = service.workloads(limit=1)[0]
    >>> run = service.run_of(workload.app, workload.input)
    >>> service.predict([run]).predictions[0].app == workload.app
    True
    """

    def __init__(self, models: Models, platforms_file: Path | None = None) -> None:
        self.models = models
        self._platforms_file = platforms_file
        self._reloading = threading.Lock()

    @classmethod
    def open(cls, folders: Sequence[Path] = (), *, platforms_file: Path | None = None) -> Service:
        """Return a service for some model folders, or for the model that ships.

        Parameters
        ----------
        platforms_file
            Where platforms and their prices are kept; ``None``: those that ship alone, and none can be changed.
        """
        return cls(Models.load(folders), platforms_file)

    def reload(self) -> None:
        """Load the models again; requests that are on their way keep the one that they began with."""
        with self._reloading:
            self.models = self.models.loaded_again()

    def model(self, name: str | None = None) -> ServedModel:
        """Return a model by its id; without, the one that answers by default."""
        return self.models.find(name)

    def predict(self, runs: Any, *, model: str | None = None, **how: Any) -> Answer:
        """Return predictions; see `crossperf.predict` for `relative_to`, `level`, `can` and `joint`."""
        return answer.predict(self.model(model).model, runs, **how)

    def explain(
        self, runs: Any, platform: str | None = None, *, model: str | None = None, **how: Any
    ) -> Explanations:
        """Return which counters drive predictions, and the nearest known workloads; see `crossperf.explain`."""
        return explain(self.model(model).model, runs, platform, **how)

    def suggest(
        self, count: int = 5, runs: Any = None, *, platform: str | None = None, model: str | None = None
    ) -> list[Suggestion]:
        """Return which known workloads to measure next on a new platform; see `crossperf.suggest`."""
        return suggest_workloads(self.model(model).model, count, runs, platform=platform)

    def check(self, runs: Any, *, need_runtime: bool = True) -> list[Problem]:
        """Return every problem of some runs."""
        return check_runs(runs, need_runtime=need_runtime)

    def workloads(self, like: str = "", *, limit: int = 100, model: str | None = None) -> list[KnownWorkload]:
        """Return known workloads whose application and input hold every word of a text, in the order of their names."""
        trained, words = self.model(model).model, like.lower().split()
        names = [" ".join(workload).lower() for workload in trained.workloads]
        fitting = sorted(w for w, name in enumerate(names) if all(word in name for word in words))
        return [self._workload(trained, w) for w in sorted(fitting, key=lambda w: trained.workloads[w])[:limit]]

    @staticmethod
    def _workload(trained: Any, number: int) -> KnownWorkload:
        cells = trained.cells
        time_p = np.exp(cells.log_time_wp[number]).tolist()
        seconds = {name: None if np.isnan(own) else own for name, own in zip(cells.platforms, time_p, strict=True)}
        sources = sorted(set(cells.source_n[cells.workload_n == number].tolist()))
        return KnownWorkload(*cells.workloads[number], seconds, tuple(trained.sources[s] for s in sources))

    def run_of(self, app: str, input: str, source: str | None = None, *, model: str | None = None) -> Run:  # noqa: A002
        """Return a known workload as the run that a model has learned from: its counters on a source platform.

        Parameters
        ----------
        source
            Where it was profiled; ``None``: on the first platform of the model on which it was.
        """
        trained = self.model(model).model
        cells, columns = trained.cells, trained.columns
        if (app, input) not in trained.workloads:
            hint = did_you_mean(app, [name for name, _ in trained.workloads])
            raise UnknownNameError(f"workload: found ({app}, {input}), which the model does not know{hint}.")
        rows = np.flatnonzero(cells.workload_n == trained.workloads.index((app, input))).tolist()
        by_source = {trained.sources[int(cells.source_n[row])]: row for row in rows}
        if source is not None and source not in by_source:
            raise UnknownNameError(
                f"source: found {source!r}, expected where ({app}, {input}) was profiled: {', '.join(by_source)}.",
                argument="source",
            )
        source = source or next(name for name in trained.sources if name in by_source)
        cell = trained.features[by_source[source]]
        values = dict(zip(columns.measured, cell.measured_nc[0].tolist(), strict=True))
        counters = {name: value for name, value in values.items() if not np.isnan(value)}
        stated = cells.runnable_w[trained.workloads.index((app, input))] if cells.runnable_w else None
        return Run(app, input, source, float(cell.column("runtime_s")[0]), counters=counters, runnable=stated)

    @property
    def platforms(self) -> dict[str, Platform]:
        """The platforms that are known here by name: those that ship, those of the file, and those of the models."""
        from crossperf.datasets import testbed

        kept = registry.read(self._platforms_file) if self._platforms_file else []
        known = {entry.name: entry for entry in [*testbed.platforms(), *kept]}
        for served in self.models:
            classes = zip(served.model.platforms, served.model.cells.platform_classes, strict=True)
            known |= {name: Platform(name, kind) for name, kind in classes if name not in known}
        return known

    def platform(self, name: str) -> Platform:
        """Return a platform by its name."""
        known = self.platforms
        if name not in known:
            raise UnknownNameError(f"platform: found {name!r}, which is not known here{did_you_mean(name, known)}.")
        return known[name]

    def set_platform(self, platform: Platform) -> Platform:
        """Keep the facts of a platform, its price among them, in place of what was kept under its name."""
        if self._platforms_file is None:
            raise PlatformError("This server keeps no platforms, expected one that was started with a file for them.")
        registry.add(self._platforms_file, platform, overwrite=True)
        return platform

    @property
    def prices(self) -> dict[str, float]:
        """What an hour on each platform costs, of those whose price is known."""
        kept = {name: entry.facts.more.get(PRICE) for name, entry in self.platforms.items()}
        return {name: float(price) for name, price in kept.items() if isinstance(price, int | float)}

    def costs(self, prediction: Prediction) -> dict[str, float]:
        """Return what one run costs on each platform whose price is known and that can run it."""
        prices = self.prices
        offered = (name for name in prediction.offered if name in prices and name in prediction.seconds)
        return {name: prediction.seconds[name] * prices[name] / _HOUR_S for name in offered}
