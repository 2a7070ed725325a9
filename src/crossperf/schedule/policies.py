"""Policies: small functions from a job and its options to the option it should take.

A policy is called once for each job, with what is known of the job, where it could go, and a generator for draws. It
sees predictions and queues, never the truth, and it answers with an index into the options. To add one::

    from crossperf.schedule.policies import policy

    @policy("emptiest")
    def emptiest(ask, options, rng):
        \"\"\"The most free nodes.\"\"\"
        return int(options.free_nodes.argmax())

Then ``--policy mine.py:emptiest`` on the command line, or ``make("emptiest")`` from Python.
"""

# M options: one per placement that can take the job
# ruff: noqa: ARG001 - policies share a signature, and few need all of it

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar, cast

import numpy as np

from crossperf import plugins
from crossperf.arrays import Floats, Integers
from crossperf.errors import SettingsError


@dataclass(frozen=True, slots=True)
class Ask:
    """What is known of a job when it must be placed.

    `requested_s` is the time limit that the user asked for, on the reference platform; `pinned` the user's own choice,
    a placement or a cluster; `deadline_s` the seconds from now until which the job should have ended.
    """

    nodes: int
    requested_s: float
    app: str = ""
    input: str = ""
    user: str = ""
    pinned: str | None = None
    deadline_s: float | None = None


@dataclass(frozen=True, slots=True)
class Options:
    """Where a job could go: one entry per placement that can take it, in arrays of the same length.

    `platforms` names the placements: a cluster's mode, a partition. Those of the same name in `clusters` share nodes
    and queue. `run_s` is the predicted run time, `low_s` to `high_s` its 80 % interval; all three are equal where none
    is known. `queued` counts the jobs that wait there now. A price or power of 0 is an unknown one. `waits` computes
    the predicted waits; policies ask for them with `wait_s`. `takes` is how many nodes the job takes in each place,
    where that differs from what it asks for; policies ask with `nodes_of`.

    >>> options = Options.of(["cpu", "gpu"], run_s=[100.0, 10.0], nodes=[64, 4], wait_s=[0.0, 200.0])
    >>> turnaround(Ask(1, 600.0), options, np.random.default_rng(0))
    0
    """

    platforms: Sequence[str]
    clusters: Sequence[str]
    run_s: Floats
    low_s: Floats
    high_s: Floats
    nodes: Integers
    free_nodes: Integers
    queued: Integers
    price_per_node_hour: Floats
    waits: Callable[[], Floats]
    takes: Integers | None = None
    power_w: Floats | None = None

    @classmethod
    def of(
        cls,
        platforms: Sequence[str],
        *,
        run_s: Sequence[float],
        nodes: Sequence[int],
        clusters: Sequence[str] | None = None,
        low_s: Sequence[float] | None = None,
        high_s: Sequence[float] | None = None,
        free_nodes: Sequence[int] | None = None,
        queued: Sequence[int] | None = None,
        price_per_node_hour: Sequence[float] | None = None,
        wait_s: Sequence[float] | Callable[[], Floats] | None = None,
        takes: Sequence[int] | None = None,
        power_w: Sequence[float] | None = None,
    ) -> Options:
        """Return options from lists of the same length; what is left out is unknown, free, or no wait.

        `wait_s` is seconds, or a function that returns them when a policy asks.
        """
        nothing = [0.0] * len(platforms)
        return cls(
            tuple(platforms),
            tuple(clusters or platforms),
            np.asarray(run_s, np.float64),
            np.asarray(run_s if low_s is None else low_s, np.float64),
            np.asarray(run_s if high_s is None else high_s, np.float64),
            np.asarray(nodes, np.int64),
            np.asarray(nodes if free_nodes is None else free_nodes, np.int64),
            np.asarray(nothing if queued is None else queued, np.int64),
            np.asarray(price_per_node_hour or nothing, np.float64),
            wait_s if callable(wait_s) else lambda: np.asarray(nothing if wait_s is None else wait_s, np.float64),
            None if takes is None else np.asarray(takes, np.int64),
            np.asarray(power_w or nothing, np.float64),
        )

    def wait_s(self) -> Floats:
        """Return the predicted wait in each queue, in seconds; computed when asked for, since it costs."""
        return self.waits()

    def nodes_of(self, ask: Ask) -> Integers:
        """Return how many nodes the job takes in each place."""
        return np.full(len(self.run_s), ask.nodes) if self.takes is None else self.takes


Policy = Callable[[Ask, Options, np.random.Generator], int]
#: Every policy by name, with what makes a fresh one: `round-robin` counts, so that each simulation needs its own.
POLICIES: dict[str, Callable[[], Policy]] = {}
_P = TypeVar("_P", bound=Policy)


def policy(name: str) -> Callable[[_P], _P]:
    """Register a function as the policy that `make`, `simulate` and ``--policy`` call `name`, and return it.

    >>> @policy("first")
    ... def first(ask, options, rng):
    ...     return 0
    >>> POLICIES.pop("first")() is first
    True
    """

    def register(function: _P) -> _P:
        POLICIES[name] = lambda: function
        return function

    return register


def make(name: str) -> Policy:
    """Return a policy by its name, from ``FILE.py:FUNCTION``, or from an entry point of ``crossperf.policies``.

    >>> make("fastest")(Ask(1, 60.0), Options.of(["cpu", "gpu"], run_s=[9.0, 2.0], nodes=[1, 1]), None)
    1
    """
    if name in POLICIES:
        return POLICIES[name]()
    loaded = plugins.load(name, "policy", known=POLICIES)
    if not callable(loaded):
        expected = "one of (ask, options, rng) that returns an index"
        raise SettingsError(f"policy: {name} is no function, expected {expected}.", argument="policy")
    return cast(Policy, loaded)


@policy("random")
def random(ask: Ask, options: Options, rng: np.random.Generator) -> int:
    """Any cluster, all with the same chance; there the mode predicted fastest."""
    clusters = list(dict.fromkeys(options.clusters))
    return _fastest_on(clusters[int(rng.integers(len(clusters)))], options)


class RoundRobin:
    """The clusters in turn, passing over those that cannot take the job; there the mode predicted fastest."""

    def __init__(self) -> None:
        self._turn: dict[str, int] = {}

    def __call__(self, ask: Ask, options: Options, rng: np.random.Generator) -> int:
        """Take the cluster that was taken longest ago."""
        cluster = min(dict.fromkeys(options.clusters), key=lambda name: self._turn.get(name, 0))
        self._turn[cluster] = max(self._turn.values(), default=0) + 1
        return _fastest_on(cluster, options)


POLICIES["round-robin"] = RoundRobin


@policy("fastest")
def fastest(ask: Ask, options: Options, rng: np.random.Generator) -> int:
    """The shortest predicted run time, however long the queue."""
    return int(options.run_s.argmin())


@policy("fastest-available")
def fastest_available(ask: Ask, options: Options, rng: np.random.Generator) -> int:
    """The shortest predicted run time among those with enough free nodes; among all where none has (IPDPS 2024)."""
    free_m = options.free_nodes >= options.nodes_of(ask)
    return int(np.where(free_m, options.run_s, np.inf).argmin() if free_m.any() else options.run_s.argmin())


@policy("wait-time")
def wait_time(ask: Ask, options: Options, rng: np.random.Generator) -> int:
    """The shortest predicted wait; where waits are equal, the shortest run time."""
    wait_m = options.wait_s()
    return int(np.where(wait_m == wait_m.min(), options.run_s, np.inf).argmin())


@policy("turnaround")
def turnaround(ask: Ask, options: Options, rng: np.random.Generator) -> int:
    """The shortest predicted wait and run time together."""
    return int((options.wait_s() + options.run_s).argmin())


@policy("cheapest")
def cheapest(ask: Ask, options: Options, rng: np.random.Generator) -> int:
    """The lowest predicted cost among those that are sure to end before the deadline; `considerate` where none is."""
    return _least(options.price_per_node_hour, ask, options, rng)


@policy("greenest")
def greenest(ask: Ask, options: Options, rng: np.random.Generator) -> int:
    """The least predicted energy among those that are sure to end before the deadline; `considerate` where none is."""
    return _least(np.zeros(len(options.run_s)) if options.power_w is None else options.power_w, ask, options, rng)


def _least(per_node_m: Floats, ask: Ask, options: Options, rng: np.random.Generator) -> int:
    """Return where a job takes the least of something for each node and second, if it keeps its deadline there.

    It is sure to where twice the predicted wait and the top of the interval of its run time are over by then. Waits
    are foreseen badly: jobs that come later pass, and those of users who saved are in the way of each other.
    """
    wait_m = options.wait_s()
    end_m, latest_m = wait_m + options.run_s, _SURE_WAITS * wait_m + options.high_s
    in_time_m = np.full(len(end_m), True) if ask.deadline_s is None else latest_m <= ask.deadline_s
    if not in_time_m.any():
        return considerate(ask, options, rng)
    cost_m = np.where(in_time_m, per_node_m * options.nodes_of(ask) * options.run_s, np.inf)
    return int(np.where(cost_m == cost_m.min(), end_m, np.inf).argmin())


#: A deadline is kept for sure if it would be with this multiple of the predicted wait. Of 1, 2, 3 and 5 the one with
#: the fewest deadlines missed for what it costs, on jobs drawn with seeds 1000 and 1001.
_SURE_WAITS = 2.0


@policy("pinned")
def pinned(ask: Ask, options: Options, rng: np.random.Generator) -> int:
    """The user's choice, a placement or a cluster; without one that can take the job, the fastest predicted."""
    if ask.pinned in options.platforms:
        return options.platforms.index(ask.pinned)
    if ask.pinned is not None and ask.pinned in options.clusters:
        return _fastest_on(ask.pinned, options)
    return fastest(ask, options, rng)


@policy("considerate")
def considerate(ask: Ask, options: Options, rng: np.random.Generator) -> int:
    """The least time lost by all: predicted wait, expected run time, and the delay of those who come after.

    A job of n nodes that runs for r seconds on a cluster of N nodes keeps each job behind it waiting for about r n / N
    longer, and the longer the queue is now, the more will stand behind it. So where the queue is long a job stays only
    if it gains much there, and a scarce machine is left to those that do. Where none waits, a busy cluster is spared a
    little and an idle one not at all. The expected run time is the mean of the lognormal that the predicted interval
    describes, so that of two equal predictions the surer one wins.
    """
    expected_m = expected_run_s(options)
    busy_m = 1.0 - options.free_nodes / options.nodes
    behind_m = _BEHIND * options.queued + _BEHIND_IF_BUSY * busy_m
    others_m = behind_m * expected_m * (options.nodes_of(ask) / options.nodes)
    return int((options.wait_s() + expected_m + others_m).argmin())


#: Jobs that will stand behind one for each that waits now, and where all nodes are in use. Of 2, 3 and 4 and of 0, 0.5,
#: 1 and 2 the best on jobs drawn with seeds from 1000 on; benchmarks use others.
_BEHIND, _BEHIND_IF_BUSY = 4.0, 0.5
#: Standard deviations between the ends of an 80 % interval, on a log scale.
RANGE_SIGMAS = 2 * 1.2815515655446004


def expected_run_s(options: Options) -> Floats:
    """Return the mean run time where the interval is that of a lognormal around the prediction.

    The mean of a lognormal with median m and log standard deviation s is m exp(s²/2).

    >>> expected_run_s(Options.of(["sure", "unsure"], run_s=[10, 10], nodes=[1, 1], low_s=[10, 2.5], high_s=[10, 40]))
    array([10.        , 17.9...])
    """
    sigma_m = np.log(options.high_s / options.low_s) / RANGE_SIGMAS
    return np.asarray(options.run_s * np.exp(0.5 * sigma_m**2))


def _fastest_on(cluster: str, options: Options) -> int:
    here_m = np.array([name == cluster for name in options.clusters])
    return int(np.where(here_m, options.run_s, np.inf).argmin())
