"""The order of a campaign: rounds in which each platform visits each input once, in batches that alternate."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random

from crossperf.campaign.log import TIMES, Round, add, rounds, timed
from crossperf.campaign.spec import Mode, Spec, Work

#: Inputs that one process takes in a row: what slows it down from its start hits no more.
BATCH = 30


@dataclass(frozen=True)
class Turn:
    """Inputs that one platform takes in a row, in one process."""

    mode: Mode
    works: Sequence[Work]


def order(spec: Spec, mode: Mode, number: int) -> list[Work]:
    """Return all inputs in the order in which a platform visits them in its round of a number, from 0."""
    works = list(spec.works)
    Random(f"{spec.seed} {number} {mode.name}").shuffle(works)  # noqa: S311
    return works


def batches(spec: Spec, number: int, left: Mapping[Mode, Sequence[Work]]) -> Iterator[Turn]:
    """Yield the batches of a round: each platform in turn, in random order, so that all have the same neighbours."""
    random = Random(f"{spec.seed} {number}")  # noqa: S311
    longest = max(map(len, left.values()), default=0)
    for start in range(0, longest, BATCH):
        taking = [Turn(mode, works[start : start + BATCH]) for mode, works in left.items() if works[start:]]
        random.shuffle(taking)
        yield from taking


class Rounds:
    """What was visited in each round, and what is still to be visited by the platforms that are asked for.

    With `retry`, visits that failed count as not made.
    """

    def __init__(self, spec: Spec, modes: Sequence[Mode], folder: Path, *, retry: bool = False) -> None:
        self._spec, self._modes, self._path = spec, modes, folder / TIMES
        self._rounds = rounds(folder)
        visits = [visit for visit in timed(folder) if visit.seconds or not retry]
        self._visited = {(visit.platform, visit.round, visit.work) for visit in visits}
        self._ended = {(visit.platform, visit.work) for visit in visits if visit.seconds}
        self._counted = {(visit.platform, visit.work) for visit in visits if visit.measurements or visit.not_counted}
        self._failed: set[tuple[str, Work]] = set()

    def add(self, mode: Mode, name: str, work: Work, error: object, counted: bool = False) -> None:
        """Note a visit; an input that never ended is not tried again by this plan."""
        self._visited.add((mode.name, name, work))
        (self._failed if error else self._ended).add((mode.name, work))
        if counted:
            self._counted.add((mode.name, work))

    def uncounted(self, batch: Turn) -> set[Work]:
        """Return the inputs of a batch that no tool has counted yet."""
        return {work for work in batch.works if (batch.mode.name, work) not in self._counted}

    def left(self, name: str) -> dict[Mode, list[Work]]:
        """Return what each platform has still to visit in a round, in order."""
        left = {}
        for mode in self._modes:
            own = [known.name for known in self._rounds if mode.name in known.platforms]
            if name in own:
                works = order(self._spec, mode, own.index(name))
                left[mode] = [work for work in works if self._is_left(mode, name, work)]
        return {mode: works for mode, works in left.items() if works}

    def _is_left(self, mode: Mode, name: str, work: Work) -> bool:
        hopeless = (mode.name, work) in self._failed and (mode.name, work) not in self._ended
        return not hopeless and (mode.name, name, work) not in self._visited

    def rounds(self) -> Iterator[tuple[str, int]]:
        """Yield rounds to go through, by name and number: first those that were cut off, then new ones."""
        for number, known in enumerate(list(self._rounds), start=1):
            if self.left(known.name):
                yield known.name, number
        while starting := [mode for mode in self._modes if self._begun(mode) < self._spec.visits]:
            name = self._begin(starting)
            if not self.left(name):
                return
            yield name, len(self._rounds)

    def begin_all(self) -> list[str]:
        """Begin the rounds that are not begun yet, and return the names of all."""
        while starting := [mode for mode in self._modes if self._begun(mode) < self._spec.visits]:
            self._begin(starting)
        return [known.name for known in self._rounds]

    def n_left(self) -> int:
        """Return how many visits are to be made until all rounds are complete."""
        begun = sum(len(works) for known in self._rounds for works in self.left(known.name).values())
        new = sum(max(self._spec.visits - self._begun(mode), 0) for mode in self._modes)
        return begun + new * len(self._spec.works)

    def _begun(self, mode: Mode) -> int:
        return sum(mode.name in known.platforms for known in self._rounds)

    def _begin(self, modes: Sequence[Mode]) -> str:
        begun = Round(_name(), tuple(mode.name for mode in modes))
        self._rounds.append(begun)
        add(self._path, {"round": begun.name, "platforms": list(begun.platforms)})
        return begun.name


def _name() -> str:
    """Return a name that sorts in time and is given once, whatever the machine."""
    moment = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3]
    return f"{moment}Z-{secrets.token_hex(2)}"
