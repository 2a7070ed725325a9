"""What a campaign submitted to Slurm, and how each element ended: lines that the next driver reads again."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from crossperf import plain
from crossperf.campaign.log import lines
from crossperf.cluster import JobArray
from crossperf.documents import Document
from crossperf.errors import CollectError
from crossperf.files import add_lines, write_json

JOBS = "jobs.jsonl"
SETTINGS = "site-campaign.json"
LOCK = "driver.lock"
FORMAT = 1
#: Elements of an array; Slurm has no more.
_SIZE: Any = Annotated[int, plain.Between(1, 4_000_001)]
_DOCUMENT = Document("a campaign on a site", "Start the campaign again in a new folder.", FORMAT, error=CollectError)


@dataclass(frozen=True)
class SiteCampaign:
    """A campaign on a site: its name among the jobs, where these keep their files, and what it was started with."""

    id: str
    folder: Path
    spec: Path
    site: Path
    platforms: tuple[str, ...] = ()
    counts: tuple[str, ...] = ()
    visits: int | None = None

    def write(self, output: Path) -> None:
        """Keep it in the folder of the campaign."""
        write_json(output / SETTINGS, {"format": FORMAT, **plain.to_json(self)})


def read_settings(output: Path) -> SiteCampaign | None:
    """Return the campaign on a site that a folder holds; ``None`` where it holds none."""
    path = output / SETTINGS
    return _DOCUMENT.shaped(SiteCampaign, _DOCUMENT.read(path), path) if path.exists() else None


def new_id() -> str:
    """Return a name for a campaign that is given once."""
    return secrets.token_hex(4)


@dataclass(frozen=True)
class SubmittedArray:
    """An array that was to be submitted: `job` is its number once Slurm took it, `lost` why it never will have one.

    `outcomes` are the ends of its elements: how, and why.
    """

    name: str
    platform: str
    size: int
    job: str | None = None
    lost: str | None = None
    outcomes: Mapping[int, tuple[str, str]] = field(default_factory=dict)

    @property
    def array(self) -> JobArray | None:
        """The array, where it was submitted."""
        return None if self.job is None else JobArray(self.name, self.job, self.size)

    @property
    def open(self) -> list[int]:
        """The elements whose ends are not known yet."""
        return [] if self.lost else [number for number in range(self.size) if number not in self.outcomes]


class Ledger:
    """The submissions of a campaign, in the order of time."""

    def __init__(self, output: Path) -> None:
        self._path = output / JOBS
        self.submissions: dict[str, SubmittedArray] = {}
        #: How often each input was cut off: by platform, round and input.
        self.cut_off: dict[tuple[str, str, str], int] = {}
        for line in lines(self._path):
            try:
                self._take(line)
            except (TypeError, ValueError, AttributeError, OverflowError) as error:
                expected = f"what a campaign writes about its jobs ({error})"
                problem = f"{self._path}: found {json.dumps(line)[:80]}, expected {expected}. Remove the line."
                raise CollectError(problem, path=str(self._path)) from error

    def _take(self, line: Mapping[str, Any]) -> None:
        name = str(line.get("array"))
        known = self.submissions.get(name)
        if known is None:
            if {"platform", "size"} <= line.keys():
                size = plain.from_json(_SIZE, line["size"])
                self.submissions[name] = SubmittedArray(name, str(line["platform"]), size)
            return
        if "job" in line:
            known = replace(known, job=str(line["job"]))
        if "lost" in line:
            known = replace(known, lost=str(line["lost"]))
        if "element" in line:
            end = (str(line.get("outcome")), str(line.get("reason", "")))
            known = replace(known, outcomes={**known.outcomes, int(line["element"]): end})
            for work, times in line.get("cut_off", {}).items():
                self.cut_off[known.platform, str(line.get("round", "")), str(work)] = int(times)
        self.submissions[name] = known

    def add(self, name: str, **facts: Any) -> None:
        """Note something about an array, safe on the disk before the next step."""
        self.add_all([{"array": name, **facts}])

    def add_all(self, facts_of_each: list[dict[str, Any]]) -> None:
        """Note something about several arrays or elements at once."""
        text = "".join(json.dumps({"format": FORMAT, **facts}) + "\n" for facts in facts_of_each)
        add_lines(self._path, text, CollectError)
        for facts in facts_of_each:
            self._take(facts)

    @property
    def open(self) -> list[SubmittedArray]:
        """The submissions that have elements whose ends are not known."""
        return [known for known in self.submissions.values() if known.open]


@contextlib.contextmanager
def alone(output: Path) -> Iterator[None]:
    """Hold a campaign's folder as its only driver; a second one is refused with who holds it.

    The lock ends with the process, however that ends. Where the file system has no locks, one goes on without.
    """
    path = output / LOCK
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            who = os.pread(descriptor, 200, 0).decode(errors="replace").strip() or "another process"
            advice = "Wait for it, follow it with 'crossperf campaign status', or end it first"
            raise CollectError(f"{output}: {who} drives this campaign already. {advice}.", path=str(output)) from error
        except OSError:
            pass
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
        yield
        os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def driver_of(output: Path) -> str | None:
    """Return who drives a campaign at the moment, or ``None``."""
    try:
        with (output / LOCK).open("r", encoding="utf-8", errors="replace") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return file.read(200).strip() or "another process"
    except OSError:
        return None
    return None
