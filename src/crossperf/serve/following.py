"""The progress of a campaign, read from the log in its folder while it runs."""

from __future__ import annotations

import math
import re
import statistics
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from crossperf.campaign import log
from crossperf.campaign.log import TimedInput
from crossperf.campaign.progress import STATUS, SitePlatformProgress, SiteProgress, read_progress
from crossperf.campaign.rounds import Rounds
from crossperf.campaign.spec import Spec
from crossperf.campaign.spec import read as read_spec
from crossperf.errors import SettingsError

#: Visits that the time left is reckoned from.
_LATEST = 200


@dataclass(frozen=True)
class Visit:
    """One visit of an input: the median of its repeats and their spread, or why it failed."""

    platform: str
    workload: str
    input: str
    started: str | None
    seconds: float | None
    spread: float | None
    error: str | None

    @classmethod
    def of(cls, timed: TimedInput) -> Visit:
        """Return what is shown of a visit."""
        seconds = statistics.median(timed.seconds) if timed.seconds else None
        spread = timed.spread if timed.seconds else None
        return cls(timed.platform, timed.workload, timed.input, timed.started, seconds, spread, timed.error)


@dataclass(frozen=True)
class PlatformProgress:
    """Visits of one platform, those that failed, and its calibrations: latest time over the first, in order.

    On a site, `running` inputs are being measured now and `pending` ones wait, `waits` is why; ``None`` elsewhere.
    """

    platform: str
    visits: int
    failed: int
    calibration: tuple[float, ...]
    running: int | None = None
    pending: int | None = None
    seconds_left: float | None = None
    waits: str = ""


@dataclass(frozen=True)
class CampaignProgress:
    """How far a campaign is. `left` and `seconds_left` are ``None`` where the server was not given its SPEC.

    A campaign on a site needs none. `unreachable` is why its Slurm does not answer.
    """

    id: str
    rounds: int
    visits: int
    failed: int
    left: int | None
    seconds_left: float | None
    latest: str | None
    platforms: tuple[PlatformProgress, ...]
    unreachable: str = ""


class Campaign:
    """A campaign's folder, and its SPEC where that is known; the log is read again only when it has grown."""

    def __init__(self, name: str, folder: Path, spec: Path | None = None) -> None:
        self.id, self._folder = name, folder
        self._spec: Spec | None = read_spec(spec) if spec else None
        self._lock = threading.Lock()
        self._seen: tuple[tuple[int, int], ...] | None = None
        self._state: tuple[CampaignProgress, list[Visit]] | None = None

    @classmethod
    def parse(cls, text: str) -> Campaign:
        """Return the campaign of ``[NAME=]DIR[,SPEC]``.

        >>> Campaign.parse("night=some/folder").id
        'night'
        """
        name, equals, places = text.rpartition("=")
        folder, _, spec = places.partition(",")
        name = name if equals else Path(folder).resolve().name
        if not re.fullmatch(r"[\w.-]+", name) or not folder:
            expected = "NAME=DIR or NAME=DIR,SPEC, with a name of letters, digits, '.', '_' and '-'"
            raise SettingsError(f"campaign: found {text!r}, expected {expected}.", argument="campaign")
        return cls(name, Path(folder), Path(spec) if spec else None)

    def read(self) -> tuple[CampaignProgress, list[Visit]]:
        """Return how far it is, and every visit so far in the order of time."""
        with self._lock:
            now = self._stamp()
            if self._state is None or now != self._seen:
                self._state, self._seen = self._read(), now
            return self._state

    def _stamp(self) -> tuple[tuple[int, int], ...]:
        return tuple(_stamp(self._folder / name) for name in (log.TIMES, STATUS))

    def _read(self) -> tuple[CampaignProgress, list[Visit]]:
        timed = sorted(log.timed(self._folder), key=lambda visit: visit.started or "")
        begun = log.rounds(self._folder)
        names = dict.fromkeys([*(name for own in begun for name in own.platforms), *(own.platform for own in timed)])
        calibrations = _calibrations(list(log.lines(self._folder / log.TIMES)))
        on_site = read_progress(self._folder)
        jobs = {own.platform: own for own in on_site.platforms} if on_site else {}
        platforms = tuple(
            PlatformProgress(
                name,
                sum(own.platform == name for own in timed),
                sum(own.platform == name and own.error is not None for own in timed),
                calibrations.get(name, ()),
                *_of_jobs(jobs.get(name)),
            )
            for name in names
        )
        left, seconds_left = self._left(timed, on_site)
        progress = CampaignProgress(
            self.id,
            len(begun),
            len(timed),
            sum(own.error is not None for own in timed),
            left,
            seconds_left,
            timed[-1].started if timed else None,
            platforms,
            on_site.unreachable if on_site else "",
        )
        return progress, [Visit.of(own) for own in timed]

    def _left(self, timed: Sequence[TimedInput], on_site: SiteProgress | None) -> tuple[int | None, float | None]:
        """Return how many visits are left, and how long they take; platforms of a site are measured side by side."""
        if on_site is not None:
            seconds = [own.seconds_left for own in on_site.platforms]
            known = None if None in seconds else max(filter(None, seconds), default=0.0)
            return sum(own.running + own.pending for own in on_site.platforms), known
        if self._spec is None:
            return None, None
        left = Rounds(self._spec, list(self._spec.modes.values()), self._folder).n_left()
        return left, _seconds_left(timed, left)


def _stamp(path: Path) -> tuple[int, int]:
    try:
        facts = path.stat()
    except OSError:
        return 0, 0
    return facts.st_size, facts.st_mtime_ns


def _of_jobs(own: SitePlatformProgress | None) -> tuple[int | None, int | None, float | None, str]:
    return (None, None, None, "") if own is None else (own.running, own.pending, own.seconds_left, own.waits)


def _seconds_left(timed: Sequence[TimedInput], left: int | None) -> float | None:
    """Return how long the visits that are left take at the pace of the latest ones."""
    starts = []
    for own in timed[-_LATEST:]:
        try:
            starts.append(datetime.fromisoformat(own.started or "").timestamp())
        except ValueError:
            continue
    if left is None or len(starts) < 2:
        return None
    return left * (starts[-1] - starts[0]) / (len(starts) - 1)


def _calibrations(lines: Sequence[Mapping[str, Any]]) -> dict[str, tuple[float, ...]]:
    """Return for each platform how long its calibrations took over the first time, in order."""
    first: dict[tuple[str, str], float] = {}
    factors: dict[str, list[float]] = {}
    for line in lines:
        seconds, name = line.get("seconds"), str(line.get("platform"))
        if "calibration" not in line or not isinstance(seconds, list) or not seconds:
            continue
        own = statistics.median(seconds)
        base = first.setdefault((name, str(line["calibration"])), own)
        if base > 0 and math.isfinite(own):
            factors.setdefault(name, []).append(own / base)
    return {name: tuple(own) for name, own in factors.items()}
