"""A second, slow road to the same schedule: lists, no cleverness, everything worked out afresh at every event."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Job:
    submit_s: float
    nodes: int
    run_s: float
    limit_s: float
    start_s: float | None = None
    expected_s: float = 0.0
    priority: float = 0.0
    promise_s: float | None = None
    hits: int = 0
    lost_node_s: float = 0.0


def schedule(jobs: list[Job], size: int, rule: str = "easy") -> list[float]:
    """Return when each job starts on one cluster.

    Rules for those behind the first that cannot start: ``fcfs`` (all wait), ``easy`` (one that ends before the first
    can start, or leaves it enough nodes, may start), ``ends-before`` (only the former), ``any`` (whatever fits),
    ``shortest`` (as ``easy``, but the one that is expected to run shortest goes first).
    """
    waiting: list[Job] = []
    times = sorted({job.submit_s for job in jobs})
    while times:
        now = times.pop(0)
        waiting += [job for job in jobs if job.submit_s == now]
        for job in start_now(waiting, [job for job in jobs if job.start_s is not None], size, now, rule):
            job.start_s = now
            waiting.remove(job)
            times = sorted({*times, now + job.run_s})
    starts = [job.start_s for job in jobs]
    assert None not in starts
    return [start for start in starts if start is not None]


def start_now(waiting: list[Job], started: list[Job], size: int, now: float, rule: str) -> list[Job]:
    """Return those of the queue that start now, in order."""
    running = [job for job in started if end(job) > now]
    free = size - sum(job.nodes for job in running)
    chosen: list[Job] = []
    first = None
    for job in in_order(waiting, size - sum(job.nodes for job in running), rule):
        if first is None and job.nodes > free:
            first = job
            shadow, spare = reservation(first, running, free, now)
        elif job.nodes <= free and (first is None or may_jump(job, now, shadow, spare, rule)):
            chosen.append(job)
            running.append(Job(job.submit_s, job.nodes, job.run_s, job.limit_s, now))
            free -= job.nodes
            if first is not None:
                shadow, spare = reservation(first, running, free, now)
    return chosen


def may_jump(job: Job, now: float, shadow: float, spare: int, rule: str) -> bool:
    ends_before = now + job.limit_s <= shadow
    easy = ends_before or job.nodes <= spare
    return {"fcfs": False, "easy": easy, "shortest": easy, "ends-before": ends_before, "any": True}[rule]


def in_order(waiting: list[Job], free: int, rule: str) -> list[Job]:
    """Return the queue as it is looked at: those behind the first that cannot start are in order of length."""
    if rule != "shortest":
        return list(waiting)
    front = 0
    while front < len(waiting) and waiting[front].nodes <= free:
        free -= waiting[front].nodes
        front += 1
    return waiting[: front + 1] + sorted(waiting[front + 1 :], key=lambda job: job.expected_s)


def reservation(first: Job, running: list[Job], free: int, now: float) -> tuple[float, int]:
    """Return when the first can start by the limits of those that run, and the nodes left over then."""
    for then in sorted({limit_end(job) for job in running}):
        free_then = free + sum(job.nodes for job in running if limit_end(job) <= then)
        if free_then >= first.nodes:
            return then, free_then - first.nodes
    raise AssertionError(f"a job of {first.nodes} nodes never fits")


def end(job: Job) -> float:
    assert job.start_s is not None
    return job.start_s + job.run_s


def limit_end(job: Job) -> float:
    assert job.start_s is not None
    return job.start_s + job.limit_s


@dataclass
class Outage:
    start_s: int
    end_s: int
    nodes: int


class Calendar:
    """A third road, for rules with promises, priorities, outages and failures: a calendar with a line for each second.

    All times are whole seconds. The queue is in order of arrival less `ageing_s` for each unit of priority. Failures
    are (second, share of the nodes before the one that fails); running jobs hold the first nodes, in order of start.
    """

    def __init__(self, size: int, rule: str, *, ageing_s: float = 0.0, repair_s: int = 0, most_hits: int = 10) -> None:
        self.size, self.rule, self.ageing_s, self.repair_s, self.most_hits = size, rule, ageing_s, repair_s, most_hits
        self.queue: list[Job] = []
        self.running: list[Job] = []
        self.outages: list[Outage] = []
        self.given_up: list[Job] = []

    def simulate(self, jobs: list[Job], outages: list[Outage], failures: list[tuple[int, float]]) -> None:
        self.outages = list(outages)
        now, left = 0, sorted(jobs, key=lambda job: job.submit_s)
        strikes = dict(failures)
        while left or self.queue or self.running:
            ended = [job for job in self.running if end(job) == now]
            back = [outage for outage in self.outages if outage.end_s == now]
            self.running = [job for job in self.running if job not in ended]
            if now in strikes:
                self.strike(strikes[now], now)
            if ended or back or now in strikes:
                self.look(now)
            while left and left[0].submit_s == now:
                self.enqueue(left.pop(0))
                self.look(now)
            now += 1

    def enqueue(self, job: Job) -> None:
        self.queue.append(job)
        self.queue.sort(key=lambda other: other.submit_s - self.ageing_s * other.priority)

    def strike(self, share: float, now: int) -> None:
        holders: list[Job | None] = [job for job in self.running for _ in range(job.nodes)]
        holders += [None] * (self.size - len(holders) - self.down(now))
        node = int(share * self.size)
        if node >= len(holders):
            return  # it is down already
        job = holders[node]
        self.outages.append(Outage(now, now + self.repair_s, 1))
        if job is None:
            return
        assert job.start_s is not None
        self.running.remove(job)
        job.hits += 1
        if job.hits >= self.most_hits:
            self.given_up.append(job)
            return
        job.lost_node_s += job.nodes * (now - job.start_s)
        job.start_s = job.promise_s = None
        self.enqueue(job)

    def down(self, second: int) -> int:
        return sum(outage.nodes for outage in self.outages if outage.start_s <= second < outage.end_s)

    def free(self, second: int, promised: list[Job]) -> int:
        held = sum(job.nodes for job in self.running if limit_end(job) > second)
        for job in promised:
            if job.promise_s is not None and job.promise_s <= second < job.promise_s + job.limit_s:
                held += job.nodes
        return self.size - held - self.down(second)

    def fits(self, job: Job, at: int, promised: list[Job]) -> bool:
        return all(self.free(second, promised) >= job.nodes for second in range(at, at + int(job.limit_s)))

    def earliest(self, job: Job, now: int, promised: list[Job]) -> int:
        while not self.fits(job, now, promised):
            now += 1
        return now

    def start(self, job: Job, now: int) -> None:
        job.start_s, job.promise_s = now, None
        self.running.append(job)
        self.queue.remove(job)

    def look(self, now: int) -> None:
        """Start whoever may start now."""
        if self.rule == "conservative":
            for job in list(self.queue):
                others = [other for other in self.queue if other is not job]
                job.promise_s = self.earliest(job, now, others)
                if job.promise_s == now:
                    self.start(job, now)
            return
        while self.queue and self.fits(self.queue[0], now, []):
            self.start(self.queue[0], now)
        if not self.queue or self.rule == "fcfs":
            return
        first, *rest = self.queue
        first.promise_s = self.earliest(first, now, [])
        if self.rule == "shortest":
            rest.sort(key=lambda job: job.expected_s)
        for job in rest:
            if self.fits(job, now, [first]):
                self.start(job, now)
