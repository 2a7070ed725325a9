"""What holds for all jobs of a simulation: limits, backfilling, priorities, outages and deadlines."""

from __future__ import annotations

from dataclasses import dataclass

from crossperf.errors import SettingsError, did_you_mean
from crossperf.schedule import timeline

#: What happens to a job whose limit, scaled by the prediction, is shorter than it runs.
LIMITS = ("double", "strict")
#: Who may start before the first in the queue, by name.
BACKFILLS = {
    "none": timeline.FCFS,
    "easy": timeline.EASY,
    "shortest": timeline.SHORTEST,
    "conservative": timeline.CONSERVATIVE,
}


@dataclass(frozen=True)
class Maintenance:
    """A planned outage: a machine's nodes (all for ``None``), in seconds from the first arrival."""

    machine: str
    start_s: float
    end_s: float
    nodes: int | None = None


#: Nodes that fail more often than this would fail for ever, and nothing else would happen.
LEAST_MTBF_S = 60.0


@dataclass(frozen=True)
class Rules:
    """What holds for all jobs of a simulation.

    With `limits` ``double`` a limit that is too short is doubled before the job is submitted, as often as it takes, and
    counted; with ``strict`` the job is ended at its limit. `wall_limit_s` is the longest limit that the clusters grant.
    `backfill` is ``easy``, ``shortest`` (EASY, of those that may start the shortest predicted first), ``conservative``,
    or ``none``: first come, first served alone. A job should have ended `deadline` times its requested time after its
    arrival. With `ageing_s` a unit of a job's priority is worth that many seconds of waiting. `maintenance` is known
    from the start; with `node_mtbf_s`, the mean time between failures of one node, nodes fail at random and are back
    `repair_s` later. ``None`` stands for no limit, deadlines, priorities or failures.
    """

    limits: str = "double"
    wall_limit_s: float | None = None
    backfill: str = "easy"
    deadline: float | None = None
    ageing_s: float | None = None
    maintenance: tuple[Maintenance, ...] = ()
    node_mtbf_s: float | None = None
    repair_s: float = 4 * 3600.0

    def __post_init__(self) -> None:
        for name, known in (("limits", LIMITS), ("backfill", tuple(BACKFILLS))):
            value = getattr(self, name)
            if value not in known:
                expected = f"{', '.join(known[:-1])} or {known[-1]}"
                hint = did_you_mean(str(value), known)
                raise SettingsError(f"{name}: found {value!r}{hint}, expected {expected}.", argument=name)
        times = ("wall_limit_s", "ageing_s", "node_mtbf_s", "repair_s")
        for name in (*times, "deadline"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                expected = "a factor above 0, such as 4" if name == "deadline" else "seconds above 0"
                raise SettingsError(f"{name}: found {value:g}, expected {expected}.", argument=name)
        if self.node_mtbf_s is not None and self.node_mtbf_s < LEAST_MTBF_S:
            message = f"node_mtbf_s: found {self.node_mtbf_s:g}, expected seconds of {LEAST_MTBF_S:g} or more."
            raise SettingsError(message, argument="node_mtbf_s")

    @property
    def needs_timeline(self) -> bool:
        """Whether the fast engine cannot keep these rules."""
        return bool(self.backfill == "conservative" or self.ageing_s or self.maintenance or self.node_mtbf_s)
