"""Which platforms a prediction offers: those for which there is a version of the program, as far as that is stated."""

# N cells, P platforms

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING

import numpy as np

from crossperf.arrays import Mask
from crossperf.errors import PredictError, did_you_mean, some_of
from crossperf.records import CANNOT_RUN, NO_VERSION_KNOWN, can_run, versions

if TYPE_CHECKING:
    from crossperf.dataset.cells import Workload
    from crossperf.dataset.measured import Measured
    from crossperf.model.trained import TrainedModel


@dataclass(frozen=True, eq=False)
class Offer:
    """The platforms that each cell is offered, and why not the others, by name."""

    workloads: tuple[Workload, ...]
    offered_np: Mask
    cannot: tuple[dict[str, str], ...]

    def refuse_reference(self, platform: str) -> None:
        """Raise where times are to be relative to a platform that some cell is not offered."""
        for (app, input_), cannot in zip(self.workloads, self.cannot, strict=True):
            if platform in cannot:
                raise PredictError(
                    f"relative_to: found {platform!r} for ({app}, {input_}), which has no version for it "
                    f"({cannot[platform]}), expected 'source', 'fastest' or a platform that can run it. Name what "
                    "can run it with can, if it is one.",
                    argument="relative_to",
                    relative_to=platform,
                )


def offer(model: TrainedModel, measured: Measured, can: Sequence[str] | None) -> Offer:
    """Return the platforms that a model offers for each cell.

    `can` counts for all of them; otherwise ``runnable`` of each cell does. Where neither is stated, a model that knows
    of workloads that cannot run everywhere offers the classes on which the workload was profiled, and others offer all.
    """
    names, classes = model.platforms, model.cells.platform_classes
    kinds = dict(zip(names, classes, strict=True))
    if can is not None:
        can = versions(can) if isinstance(can, str) else tuple(can)
        _refuse_strangers(can or (), kinds)
    ran_on: dict[Workload, set[str]] = {}
    for workload, source in zip(measured.workload_of_n, measured.platform_n, strict=True):
        ran_on.setdefault(workload, set()).update((source, kinds[source]))
    # Most cells are like another: the same versions, the same source.
    seen: dict[tuple[str, str | None, frozenset[str]], tuple[list[bool], dict[str, str]]] = {}
    offered, cannot = [], []
    limited = model.knows_of_limits
    cells = zip(measured.workload_of_n, measured.platform_n, measured.runnable_n or repeat(None), strict=False)
    for workload, source, runnable in cells:
        key = (source, runnable, frozenset(ran_on[workload]))
        if key not in seen:
            known = can if can is not None else versions(runnable)
            if known is not None:
                known = _with_own(known, source, kinds)
            elif limited:
                known = tuple(ran_on[workload])
            own = [can_run(known, *kind) for kind in kinds.items()]
            reason = NO_VERSION_KNOWN if can is None and versions(runnable) is None else CANNOT_RUN
            seen[key] = own, {name: reason for name, fits in zip(names, own, strict=True) if not fits}
        offered.append(seen[key][0])
        cannot.append(seen[key][1])
    return Offer(tuple(measured.workload_of_n), np.array(offered, dtype=bool), tuple(cannot))


def _with_own(known: Sequence[str], source: str, kinds: dict[str, str]) -> tuple[str, ...]:
    """Return where a program can run, with where it did: its class, unless that or platforms of it are named."""
    own = kinds[source]
    named = own in known or any(kinds.get(name) == own for name in known)
    return (*known, source) if named else (*known, source, own)


def _refuse_strangers(can: Sequence[str], kinds: dict[str, str]) -> None:
    known = [*dict.fromkeys(kinds.values()), *kinds]
    stranger = next((name for name in can if name not in known), None)
    if stranger is not None or not can:
        actual = "nothing" if stranger is None else f"{stranger!r}{did_you_mean(stranger, known)}"
        raise PredictError(
            f"can: found {actual}, expected platform classes or platforms that the model knows: {some_of(known, 20)}.",
            argument="can",
            can=stranger,
        )
