"""How far a campaign on a site is, by platform: written by its driver, read by whoever wants to know."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from crossperf import plain
from crossperf.campaign.log import in_words
from crossperf.documents import Document
from crossperf.errors import CollectError
from crossperf.files import write_json

STATUS = "status.json"
FORMAT = 1
_DOCUMENT = Document("the status of a campaign", "Start the campaign again.", FORMAT, error=CollectError)


@dataclass(frozen=True)
class SitePlatformProgress:
    """Inputs of a platform in all visits: measured, failed, being measured now, and still to come.

    `waits` is why its jobs wait, in Slurm's words.
    """

    platform: str
    total: int
    done: int = 0
    failed: int = 0
    running: int = 0
    seconds_left: float | None = None
    waits: str = ""

    @property
    def pending(self) -> int:
        """Inputs that nobody is at."""
        return max(0, self.total - self.done - self.failed - self.running)

    def __str__(self) -> str:
        left = "" if not self.seconds_left else f", about {in_words(self.seconds_left)} left"
        waits = f" ({self.waits})" if self.waits and self.pending else ""
        counts = f"{self.done:,} of {self.total:,} done, {self.running} running, {self.pending:,} pending{waits}"
        return f"{self.platform}: {counts}, {self.failed} failed{left}"


@dataclass(frozen=True)
class SiteProgress:
    """How far a campaign is; `unreachable` is why Slurm does not answer, `when` the time of the last look."""

    platforms: tuple[SitePlatformProgress, ...]
    when: float
    unreachable: str = ""
    ended: bool = False

    def write(self, output: Path) -> None:
        """Keep it in the folder of the campaign."""
        write_json(output / STATUS, {"format": FORMAT, **plain.to_json(self)})


def read_progress(output: Path) -> SiteProgress | None:
    """Return how far a campaign on a site is; ``None`` where the folder holds none."""
    path = output / STATUS
    return _DOCUMENT.shaped(SiteProgress, _DOCUMENT.read(path), path) if path.exists() else None


class Pace:
    """How fast the inputs of each platform end, since this driver first looked."""

    def __init__(self) -> None:
        self._first: dict[str, tuple[float, int]] = {}

    def seconds_left(self, platform: str, ended: int, left: int) -> float | None:
        """Return how long the inputs that are left take at the pace so far; ``None`` where none has ended yet."""
        start, before = self._first.setdefault(platform, (time.monotonic(), ended))
        return 0.0 if not left else (time.monotonic() - start) / (ended - before) * left if ended > before else None


def of_platforms(
    totals: Mapping[str, int],
    known: Mapping[tuple[str, ...], bool],
    running: Mapping[str, int],
    waits: Mapping[str, str],
    pace: Pace,
) -> tuple[SitePlatformProgress, ...]:
    """Return the progress of each platform.

    Parameters
    ----------
    known
        Whether each visit that is known ended well, by platform, round, workload and input.
    """
    ended: Counter[tuple[str, bool]] = Counter((key[0], good) for key, good in known.items() if key[0] != "counts")
    progress = []
    for platform, total in totals.items():
        done, failed = ended[platform, True], ended[platform, False]
        left = max(0, total - done - failed)
        now = min(running.get(platform, 0), left)
        seconds = pace.seconds_left(platform, done + failed, left)
        progress.append(SitePlatformProgress(platform, total, done, failed, now, seconds, waits.get(platform, "")))
    return tuple(progress)


def sentence(platforms: Sequence[SitePlatformProgress]) -> str:
    """Return the progress of all platforms in one line."""
    return "; ".join(map(str, platforms))
