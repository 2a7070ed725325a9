"""The order in which jobs arrive where some come only after another has ended."""

# J jobs, W jobs that others wait for

from __future__ import annotations

import heapq
from collections.abc import Iterator

import numpy as np

from crossperf.schedule.clusters import Clusters
from crossperf.schedule.jobs import Jobs


class Arrivals:
    """Jobs one by one in the order in which they arrive, those that follow another after its end.

    Iterating yields the time and the job, and advances the clusters up to then. `nowhere` says that a job could not be
    placed: those that follow it do not wait for it.
    """

    def __init__(self, jobs: Jobs, clusters: Clusters) -> None:
        self._jobs, self._clusters = jobs, clusters
        follows = np.full(len(jobs), -1) if jobs.follows is None else jobs.follows
        self._due = [(time_s, job) for job, time_s in enumerate(jobs.submit_s.tolist()) if follows[job] < 0]
        heapq.heapify(self._due)
        self._followers: dict[int, list[int]] = {}
        for job in np.flatnonzero(follows >= 0).tolist():
            self._followers.setdefault(int(follows[job]), []).append(job)
        self._watched = np.array(sorted(self._followers), np.int64)

    def __iter__(self) -> Iterator[tuple[float, int]]:
        while self._due or len(self._watched):
            self._wait_for_ends()
            if not self._due:  # nothing will end any more, so nothing else can come
                return
            now, job = heapq.heappop(self._due)
            self._clusters.advance(now)
            yield now, job

    def nowhere(self, job: int, now: float) -> None:
        """Let those that follow a job come at their own time."""
        for follower in self._followers.pop(job, []):
            heapq.heappush(self._due, (max(now, float(self._jobs.submit_s[follower])), follower))
        self._watched = self._watched[self._watched != job]

    def _wait_for_ends(self) -> None:
        """Let ends that others wait for happen, as long as they are not after the next arrival."""
        while len(self._watched):
            then = self._clusters.next_event()
            if then == np.inf or (self._due and then > self._due[0][0]):
                return
            self._clusters.advance(then)
            end_w = self._clusters.end_of(self._watched)
            ended_w = end_w <= then
            for job, end_s in zip(self._watched[ended_w].tolist(), end_w[ended_w].tolist(), strict=True):
                self._release(job, end_s)
            self._watched = self._watched[~ended_w]

    def _release(self, job: int, end_s: float) -> None:
        think_s = self._jobs.think_s
        for follower in self._followers.pop(job):
            pause_s = np.nan if think_s is None else float(think_s[follower])
            own_s = float(self._jobs.submit_s[follower])
            due_s = max(end_s, own_s) if np.isnan(pause_s) else end_s + pause_s
            heapq.heappush(self._due, (due_s, follower))
