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


def schedule(jobs: list[Job], size: int, rule: str = "easy") -> list[float]:
    """Return when each job starts on one cluster.

    Rules for those behind the first that cannot start: ``fcfs`` (all wait), ``easy`` (one that ends before the first
    can start, or leaves it enough nodes, may start), ``ends-before`` (only the former), ``any`` (whatever fits).
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
    for job in waiting:
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
    return {"fcfs": False, "easy": ends_before or job.nodes <= spare, "ends-before": ends_before, "any": True}[rule]


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
