"""What the service can do, as plain functions of Python: handlers of the API and pages both call these.

Nothing here knows of HTTP. Methods take runs in whatever form `crossperf.predict` takes them, and return the library's
own records; what cannot be answered raises a `CrossperfError`. All of them may be called from any thread.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from crossperf import platforms as registry
from crossperf.errors import CrossperfError, PlatformError, did_you_mean, some_of
from crossperf.model.trained import TrainedModel
from crossperf.platforms import Platform
from crossperf.prediction import answer
from crossperf.prediction.answer import Answer
from crossperf.prediction.explain import Explanations, explain
from crossperf.prediction.measuring import NextMeasurements, next_measurements
from crossperf.prediction.workload_map import WorkloadMap, WorkloadPlaces
from crossperf.records import OK, Prediction, Run
from crossperf.runs.checking import check_runs, checked
from crossperf.runs.events import EVENT_PREFIX, EVENTS
from crossperf.runs.rules import Problem
from crossperf.serve.atlas import Atlas
from crossperf.serve.drift import Drift, drift
from crossperf.serve.evaluations import Evaluations
from crossperf.serve.models import Models, ServedModel, UnknownNameError
from crossperf.serve.placing import JobQueue, JobRequest, QueueChoice, place
from crossperf.serve.readers import Readers
from crossperf.serve.store import ComparedRun, Forecasted, NotOfferedError, RunStore

if TYPE_CHECKING:
    from crossperf.adaptation.adapt import Suggestion
    from crossperf.serve.following import Campaign

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
    """Models, platforms, finished runs and campaigns behind one set of functions.

    >>> service = Service.open()
    >>> workload = service.workloads(limit=1)[0]
    >>> run = service.run_of(workload.app, workload.input)
    >>> service.predict([run]).predictions[0].app == workload.app
    True
    """

    def __init__(
        self,
        models: Models,
        *,
        platforms_file: Path | None = None,
        store: RunStore | None = None,
        campaigns: Sequence[Campaign] = (),
        readers: Readers | None = None,
        atlas: Atlas | None = None,
        evaluations: Evaluations | None = None,
    ) -> None:
        self.models = models
        self.store = store
        self.readers = readers or Readers()
        self.evaluations = evaluations or Evaluations()
        self.campaigns = {campaign.id: campaign for campaign in campaigns}
        self._platforms_file = platforms_file
        self._atlas = atlas or Atlas(None)
        self._reloading = threading.Lock()
        self._platforms: tuple[object, dict[str, Platform]] = (None, {})

    @classmethod
    def open(
        cls,
        folders: Sequence[Path] = (),
        *,
        platforms_file: Path | None = None,
        runs_file: Path | None = None,
        campaigns: Sequence[Campaign] = (),
        cache: Path | None = None,
        readers: Readers | None = None,
        evaluations: Sequence[Path] = (),
    ) -> Service:
        """Return a service for some model folders, or for the model that ships.

        Parameters
        ----------
        platforms_file
            Where platforms and their prices are kept; ``None``: those that ship alone, and none can be changed.
        runs_file
            The database of finished runs; ``None``: none are kept.
        cache
            The folder where maps are kept; ``None``: they are made anew by each server.
        evaluations
            Files of ``crossperf evaluate --json`` that pages show.
        """
        return cls(
            Models.load(folders),
            platforms_file=platforms_file,
            store=RunStore(runs_file) if runs_file else None,
            campaigns=campaigns,
            readers=readers,
            atlas=Atlas(cache),
            evaluations=Evaluations(evaluations),
        )

    def reload(self) -> None:
        """Load the models again; requests that are on their way keep the one that they began with."""
        with self._reloading:
            self.models = self.models.loaded_again()

    def close(self) -> None:
        """End the processes that read uploads."""
        self.readers.close()

    def model(self, name: str | None = None) -> ServedModel:
        """Return a model by its id; without, the one that answers by default."""
        return self.models.find(name)

    def predict(self, runs: Any, *, model: str | None = None, keep: bool = False, **how: Any) -> Answer:
        """Return predictions; see `crossperf.predict` for `relative_to`, `level`, `can` and `joint`.

        Parameters
        ----------
        keep
            Keep what was predicted, to be compared with the runs that follow.
        """
        served = self.model(model)
        answered = answer.predict(served.model, runs, **how)
        if keep:
            self.keep(answered.predictions, served)
        return answered

    def keep(self, predictions: Iterable[Prediction], served: ServedModel) -> None:
        """Keep predictions, to be compared with the runs that follow."""
        self._kept_runs.keep(own for prediction in predictions for own in Forecasted.of(prediction, served.fingerprint))

    def explain(self, runs: Any, platform: str | None = None, *, model: str | None = None, **how: Any) -> Explanations:
        """Return which counters drive predictions, and the nearest known workloads; see `crossperf.explain`."""
        return explain(self.model(model).model, runs, platform, **how)

    def next_measurements(
        self, runs: Any, *, model: str | None = None, can: Sequence[str] | None = None
    ) -> list[NextMeasurements]:
        """Return what to measure next for each run: the counters that it lacks, and platforms to time it on."""
        return next_measurements(self.model(model).model, runs, can=can)

    def suggest(
        self, count: int = 5, runs: Any = None, *, platform: str | None = None, model: str | None = None
    ) -> list[Suggestion]:
        """Return which known workloads to measure next on a new platform; see `crossperf.suggest`."""
        from crossperf.adaptation.adapt import suggest

        return suggest(self.model(model).model, count, runs, platform=platform)

    def check(self, runs: Any, *, need_runtime: bool = True) -> list[Problem]:
        """Return every problem of some runs, errors first."""
        return check_runs(runs, need_runtime=need_runtime)

    def place(
        self,
        runs: Any,
        queues: Sequence[JobQueue],
        job: JobRequest | None = None,
        *,
        policy: str = "considerate",
        model: str | None = None,
        can: Sequence[str] | None = None,
        keep: bool = False,
    ) -> tuple[QueueChoice, Prediction]:
        """Return a policy's choice for the job of one run, and the prediction behind it."""
        answered = self.predict(runs, model=model, can=can, keep=keep)
        if len(answered) != 1:
            raise CrossperfError(f"run: found {len(answered):,} workloads, expected one for one job.", argument="run")
        (prediction,) = answered.predictions
        return place(prediction, queues, job, policy, self.prices), prediction

    def workloads(self, like: str = "", *, limit: int = 100, model: str | None = None) -> list[KnownWorkload]:
        """Return known workloads whose application and input hold every word of a text, in the order of their names."""
        trained, words = self.model(model).model, like.lower().split()
        names = [" ".join(workload).lower() for workload in trained.workloads]
        fitting = [w for w, name in enumerate(names) if all(word in name for word in words)]
        return [_known(trained, w) for w in sorted(fitting, key=lambda w: trained.workloads[w])[:limit]]

    def run_of(self, app: str, input: str, source: str | None = None, *, model: str | None = None) -> Run:  # noqa: A002
        """Return a known workload as the run that a model has learned from: its counters on a source platform.

        Parameters
        ----------
        source
            Where it was profiled; ``None``: on the first platform of the model on which it was.
        """
        return _run_of(self.model(model).model, (app, input), source)

    def map(self, *, model: str | None = None) -> WorkloadMap:
        """Return the map of known workloads; made once, which takes seconds."""
        return self._atlas.map(self.model(model))

    def place_on_map(self, runs: Any, *, model: str | None = None) -> list[tuple[float, float]]:
        """Return where runs lie on the map: among the known workloads whose counters are nearest."""
        served = self.model(model)
        question = runs if isinstance(runs, answer.Question) else answer.ask(served.model, runs)
        xy_w2 = self._atlas.map(served).xy_w2
        places = WorkloadPlaces.of(served.model).place(question.features, xy_w2)
        return [(float(x), float(y)) for x, y in places]

    @property
    def platforms(self) -> dict[str, Platform]:
        """The platforms that are known here by name: those that ship, those of the file, and those of the models."""
        stamp = (self.models, _stamp(self._platforms_file))
        if self._platforms[0] != stamp:
            kept = registry.read(self._platforms_file) if self._platforms_file else []
            known = {entry.name: entry for entry in [*_shipped(), *kept]}
            for served in self.models:
                classes = zip(served.model.platforms, served.model.cells.platform_classes, strict=True)
                known |= {name: Platform(name, kind) for name, kind in classes if name not in known}
            self._platforms = (stamp, known)
        return self._platforms[1]

    def platform(self, name: str) -> Platform:
        """Return a platform by its name."""
        known = self.platforms
        if name not in known:
            raise UnknownNameError(f"platform: found {name!r}, which is not known here{did_you_mean(name, known)}.")
        return known[name]

    def set_platform(self, platform: Platform) -> Platform:
        """Keep the facts of a platform, its price among them, in place of what was kept under its name."""
        if self._platforms_file is None:
            raise NotOfferedError(
                "This server keeps no platforms, expected one that was started with --platforms FILE."
            )
        price = platform.facts.more.get(PRICE)
        if price is not None and not (isinstance(price, int | float) and price >= 0):
            problem = f"{PRICE}: found {price!r}, expected what an hour costs, a number of 0 or more."
            raise PlatformError(problem, argument=f"facts.{PRICE}")
        registry.add(self._platforms_file, platform, overwrite=True)
        return platform

    def set_price(self, name: str, price_per_hour: float | None) -> Platform:
        """Keep the price of a platform beside its other facts; ``None`` takes it away."""
        known = self.platform(name)
        more = {fact: value for fact, value in known.facts.more.items() if fact != PRICE}
        more |= {} if price_per_hour is None else {PRICE: price_per_hour}
        return self.set_platform(replace(known, facts=replace(known.facts, more=more)))

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

    @property
    def _kept_runs(self) -> RunStore:
        if self.store is None:
            raise NotOfferedError("This server keeps no runs, expected one that was started with --runs FILE.")
        return self.store

    def add_runs(self, runs: Any) -> list[bool]:
        """Keep finished runs, and what had been predicted for them; tell of each whether it is new.

        Runs are checked as those of a table, but need no counters: an accounting knows none. A run is compared with
        the prediction that was kept for its workload and platform; without, with what the default model predicts from
        a kept profile of the workload elsewhere.
        """
        store, own = self._kept_runs, checked(runs, need_counters=False)
        return store.add(own, [self._outcome(store, run) for run in own])

    def _outcome(self, store: RunStore, run: Run) -> ComparedRun | None:
        if run.status != OK or not run.runtime_s:
            return None
        last, now = store.kept(run.app, run.input, run.platform), time.time()
        if last is not None:
            return _outcome(last[1], run.runtime_s, now, kept=True)
        served = self.models.default
        if run.platform not in served.model.platforms:
            return None
        for profiled in store.profiled(run.app, run.input, run.platform):
            if profiled.platform in served.model.sources:
                try:
                    answered = answer.predict(served.model, [profiled], can=(run.platform,))
                except CrossperfError:
                    continue  # a profile with other counters predicts nothing
                every = Forecasted.of(answered.predictions[0], served.fingerprint)
                own = next((own for own in every if own.platform == run.platform), None)
                return None if own is None else _outcome(own, run.runtime_s, now, kept=False)
        return None

    def runs(self, **asked: Any) -> list[tuple[int, Run]]:
        """Return kept runs with their numbers; see `RunStore.runs` for what can be asked."""
        return self._kept_runs.runs(**asked)

    def drift(self, since: float = 0.0) -> Drift:
        """Return how far off past predictions were, from runs that came after a moment (seconds since 1970)."""
        return drift(self._kept_runs.outcomes(since)) if self.store else Drift(None)

    def campaign(self, name: str) -> Campaign:
        """Return a campaign that this server follows."""
        if name not in self.campaigns:
            expected = f"expected one of {some_of(self.campaigns)}" if self.campaigns else "this server knows none"
            raise UnknownNameError(f"campaign: found {name!r}, {expected}.")
        return self.campaigns[name]


def _shipped() -> list[Platform]:
    from importlib.resources import as_file, files

    with as_file(files("crossperf") / "datasets" / "data" / "platforms.json") as path:
        return registry.read(path)


def _stamp(path: Path | None) -> tuple[int, int] | None:
    """Return what tells that a file has changed."""
    try:
        facts = path.stat() if path else None
    except OSError:
        return None
    return facts and (facts.st_mtime_ns, facts.st_ino)


def _known(trained: TrainedModel, number: int) -> KnownWorkload:
    cells = trained.cells
    time_p = np.exp(cells.log_time_wp[number]).tolist()
    seconds = {name: None if np.isnan(own) else own for name, own in zip(cells.platforms, time_p, strict=True)}
    sources = sorted(set(cells.source_n[cells.workload_n == number].tolist()))
    return KnownWorkload(*cells.workloads[number], seconds, tuple(trained.sources[s] for s in sources))


def _run_of(trained: TrainedModel, workload: tuple[str, str], source: str | None) -> Run:
    cells, columns = trained.cells, trained.columns
    if workload not in trained.workloads:
        hint = did_you_mean(workload[0], [name for name, _ in trained.workloads])
        raise UnknownNameError(f"workload: found {' '.join(workload)!r}, which the model does not know{hint}.")
    number = trained.workloads.index(workload)
    by_source = {trained.sources[int(cells.source_n[row])]: row for row in np.flatnonzero(cells.workload_n == number)}
    if source is not None and source not in by_source:
        expected = f"expected where {' '.join(workload)!r} was profiled: {', '.join(by_source)}"
        raise UnknownNameError(f"source: found {source!r}, {expected}.", argument="source")
    source = source or next(name for name in trained.sources if name in by_source)
    cell = trained.features[int(by_source[source])]
    values = dict(zip(columns.measured, cell.measured_nc[0].tolist(), strict=True))
    known = {name: value for name, value in values.items() if not np.isnan(value)}
    events: dict[str, dict[str, float]] = {}
    for name in [name for name in known if name.startswith(EVENT_PREFIX)]:
        tool, _, event = name.removeprefix(EVENT_PREFIX).partition(".")
        events.setdefault(tool, {})[event] = known.pop(name)
    runtime_s = float(cell.column("runtime_s")[0])
    return Run(
        *workload,
        source,
        None if np.isnan(runtime_s) else runtime_s,
        platform_class=cells.platform_classes[cells.platforms.index(source)],
        runnable=cells.runnable_w[number] if cells.runnable_w else None,
        counters=known,
        metadata={EVENTS: events} if events else {},
    )


def _outcome(own: Forecasted, actual_s: float, now: float, *, kept: bool) -> ComparedRun:
    cell = (own.app, own.input, own.source, own.platform)
    return ComparedRun(now, own.model, *cell, actual_s, own.predicted_s, own.low_s, own.high_s, own.level, kept)
