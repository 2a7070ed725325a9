"""Backfilling by a plan of the free nodes over time: conservative or EASY, with priorities, outages and failures.

Each cluster has its nodes and a queue in order of `key_j`. At every event the free nodes from now on are laid out by
the limits of the running jobs and by the outages that are known, and jobs are fitted in:

- FCFS: in order, until one cannot start.
- EASY, SHORTEST: the first that cannot start is promised the earliest time at which it fits. Others start now if they
  fit beside that promise: in order, or shortest predicted run time first.
- CONSERVATIVE: every job has a promise (Mu'alem and Feitelson, 2001, IEEE TPDS 12(6)). At each event each job in turn
  gives its promise back and takes the earliest one that fits, which is never later.

Invariant: without failures no job starts later than it was promised under CONSERVATIVE, and the first in the queue not
under EASY and SHORTEST unless one of higher priority comes. No job runs into an outage that was known at its start.

Nodes are counted, not named: an outage takes as many as it says, whichever they are. A failure strikes a node at
random; the job on it is lost and goes back to its place in the queue, or is given up when it was struck `MOST_HITS`
times. Once it has failed, the end of the repair is known.

Cost: an event takes about Q R steps for Q queued and R running jobs, so `engine` runs where its rules are enough.
numba compiles the functions where it is installed, in one file because its cache does not notice changes in another.
"""

# J jobs, C clusters, R running jobs, Q places in a queue, K outages, F failures, P pieces of a plan

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from crossperf.arrays import Floats, Integers
from crossperf.schedule.engine import compiled

FCFS, EASY, SHORTEST, CONSERVATIVE = 0, 1, 2, 3
#: A job that a failure strikes for this time is given up.
MOST_HITS = 10
#: Queued jobs that a predicted wait is planned around; what stands behind them counts with its node-seconds.
_DEPTH = 64


class Outage(NamedTuple):
    """Nodes of a cluster that are known to be out of service from one time until another."""

    cluster: int
    start_s: float
    end_s: float
    nodes: int


class Timeline(NamedTuple):
    """Everything that is known of the jobs and clusters at one time; the functions below change it in place."""

    nodes_j: Integers
    #: The time limit that the scheduler believes in. A job never runs for longer.
    limit_j: Floats
    run_j: Floats
    #: The predicted run time, which decides who is the shortest, and which waits are predicted from.
    expected_j: Floats
    #: The order of the queue: the least first, and of equals the one that came first.
    key_j: Floats
    start_j: Floats
    #: The start that a queued job can count on; infinite for none.
    promise_j: Floats
    #: How often failures struck a job, the node-seconds that were lost by it, and whether it was given up.
    hits_j: Integers
    lost_j: Floats
    given_up_j: Integers

    size_c: Integers
    running_c: Integers
    queued_c: Integers
    outages_c: Integers
    running_cr: Integers
    queue_cq: Integers
    from_ck: Floats
    to_ck: Floats
    down_ck: Integers

    #: When the next node fails, how many have, and for each of them (in turn, again and again) the time until the
    #: next one and where it strikes, as a share of the nodes.
    fails_at_c: Floats
    failed_c: Integers
    gap_cf: Floats
    strikes_cf: Floats
    repair_c: Floats


def empty(
    sizes: Sequence[int],
    nodes_j: Integers,
    outages: Sequence[Outage] = (),
    *,
    begin_s: float = 0.0,
    mtbf_s: float | None = None,
    repair_s: float = 0.0,
    rng: np.random.Generator | None = None,
) -> Timeline:
    """Return clusters of these sizes with nothing on them, and jobs of which no more than their nodes are known.

    Parameters
    ----------
    mtbf_s
        Mean time between the failures of one node, from `begin_s` on; ``None`` for none.
    """
    count, clusters, repeat = len(nodes_j), len(sizes), 4096
    known = [sum(outage.cluster == c for outage in outages) for c in range(clusters)]
    room = max(known) + (max(sizes) if mtbf_s else 0)
    rng = rng or np.random.default_rng(0)
    mean_c = np.array([math.inf if mtbf_s is None else mtbf_s / size for size in sizes])
    gap_cf = rng.exponential(1.0, (clusters, repeat)) * mean_c[:, None] if mtbf_s else np.full((clusters, 1), np.inf)
    state = Timeline(
        nodes_j=nodes_j.astype(np.int64),
        limit_j=np.zeros(count),
        run_j=np.zeros(count),
        expected_j=np.zeros(count),
        key_j=np.zeros(count),
        start_j=np.full(count, np.nan),
        promise_j=np.full(count, np.inf),
        hits_j=np.zeros(count, np.int64),
        lost_j=np.zeros(count),
        given_up_j=np.zeros(count, np.int64),
        size_c=np.array(sizes, np.int64),
        running_c=np.zeros(clusters, np.int64),
        queued_c=np.zeros(clusters, np.int64),
        outages_c=np.zeros(clusters, np.int64),
        running_cr=np.zeros((clusters, max(sizes)), np.int64),
        queue_cq=np.zeros((clusters, max(1, count)), np.int64),
        from_ck=np.zeros((clusters, max(1, room))),
        to_ck=np.zeros((clusters, max(1, room))),
        down_ck=np.zeros((clusters, max(1, room)), np.int64),
        fails_at_c=begin_s + gap_cf[:, -1],
        failed_c=np.zeros(clusters, np.int64),
        gap_cf=gap_cf,
        strikes_cf=rng.random(gap_cf.shape),
        repair_c=np.full(clusters, repair_s),
    )
    for outage in outages:
        c, k = outage.cluster, state.outages_c[outage.cluster]
        state.from_ck[c, k], state.to_ck[c, k] = outage.start_s, outage.end_s
        state.down_ck[c, k] = min(outage.nodes, sizes[c])
        state.outages_c[c] += 1
    return state


@compiled
def advance(state: Timeline, now: float, rule: int) -> None:
    """Let the clusters run until `now`, events of exactly then included; until all is done where it is infinite."""
    for c in range(len(state.size_c)):
        while True:
            then = _next_event(state, c)
            idle = state.running_c[c] == 0 and state.queued_c[c] == 0
            if then > now or (idle and now == math.inf):
                break
            _step(state, c, then, rule)


@compiled
def next_event(state: Timeline) -> float:
    """Return when something happens next on a cluster that has jobs; infinite where nothing will."""
    then = math.inf
    for c in range(len(state.size_c)):
        if state.running_c[c] > 0 or state.queued_c[c] > 0:
            then = min(then, _next_event(state, c))
    return then


@compiled
def submit(state: Timeline, c: int, job: int, now: float, rule: int) -> None:
    """Start a job that arrives on a cluster, or queue it.

    The clusters have run until `now`, and the job's key, limit, true and predicted run time are written down.
    """
    _enqueue(state, c, job)
    _schedule(state, c, now, rule)


@compiled
def free_nodes(state: Timeline, c: int, now: float) -> int:
    """Return how many nodes of a cluster are in service and have no job."""
    free = state.size_c[c]
    for i in range(state.running_c[c]):
        free -= state.nodes_j[state.running_cr[c, i]]
    for k in range(state.outages_c[c]):
        if state.from_ck[c, k] <= now < state.to_ck[c, k]:
            free -= state.down_ck[c, k]
    return int(max(0, free))


@compiled
def predict_waits(
    state: Timeline, clusters_m: Integers, limit_m: Floats, nodes_m: Integers, now: float, rule: int, wait_m: Floats
) -> None:
    """Write the predicted wait of a job in each of several places into `wait_m`; it takes `nodes_m` nodes there.

    It waits not at all where it could start now. Elsewhere the queue is planned in order, each job for as long as
    predicted, and the job behind it.
    """
    for m in range(len(clusters_m)):
        c = clusters_m[m]
        wait_m[m] = 0.0
        if not _could_start(state, c, nodes_m[m], limit_m[m], now, rule):
            wait_m[m] = _behind_the_queue(state, c, nodes_m[m], limit_m[m], now) - now


@compiled
def _could_start(state: Timeline, c: int, nodes: int, limit_s: float, now: float, rule: int) -> bool:
    """Tell whether a job that comes now, last in the queue, would start at once."""
    queued = state.queued_c[c]
    if rule == FCFS and queued > 0:
        return False
    when_p, free_p, count = _plan(state, c, now, False, queued + 1)
    promised = queued if rule == CONSERVATIVE else min(1, queued)
    for i in range(promised):
        job = state.queue_cq[c, i]
        if state.promise_j[job] < math.inf:
            promise = max(now, state.promise_j[job])
            count = _take(when_p, free_p, count, promise, state.limit_j[job], state.nodes_j[job])
    return bool(free_p[0] >= nodes and _earliest(when_p, free_p, count, nodes, limit_s) == now)


@compiled
def _behind_the_queue(state: Timeline, c: int, nodes: int, limit_s: float, now: float) -> float:
    """Return when a job could start behind the queue, if all ran for as long as predicted."""
    planned = min(state.queued_c[c], _DEPTH)
    when_p, free_p, count = _plan(state, c, now, True, planned + 1)
    for i in range(planned):
        job = state.queue_cq[c, i]
        at = _earliest(when_p, free_p, count, state.nodes_j[job], state.expected_j[job])
        if at < math.inf:
            count = _take(when_p, free_p, count, at, state.expected_j[job], state.nodes_j[job])
    work = 0.0
    for i in range(planned, state.queued_c[c]):
        work += state.nodes_j[state.queue_cq[c, i]] * state.expected_j[state.queue_cq[c, i]]
    return float(_earliest(when_p, free_p, count, nodes, limit_s) + work / state.size_c[c])


@compiled
def _next_event(state: Timeline, c: int) -> float:
    then = state.fails_at_c[c]
    for i in range(state.running_c[c]):
        job = state.running_cr[c, i]
        then = min(then, state.start_j[job] + state.run_j[job])
    for k in range(state.outages_c[c]):
        then = min(then, state.to_ck[c, k])
    return float(then)


@compiled
def _step(state: Timeline, c: int, now: float, rule: int) -> None:
    """Let jobs, outages and a node end that do so now, and start whoever may."""
    kept = 0
    for i in range(state.running_c[c]):
        job = state.running_cr[c, i]
        if state.start_j[job] + state.run_j[job] > now:
            state.running_cr[c, kept] = job
            kept += 1
    state.running_c[c] = kept
    kept = 0
    for k in range(state.outages_c[c]):
        if state.to_ck[c, k] > now:
            state.from_ck[c, kept], state.to_ck[c, kept] = state.from_ck[c, k], state.to_ck[c, k]
            state.down_ck[c, kept] = state.down_ck[c, k]
            kept += 1
    state.outages_c[c] = kept
    if state.fails_at_c[c] == now:
        _strike(state, c, now)
    if state.queued_c[c] > 0:
        _schedule(state, c, now, rule)


@compiled
def _strike(state: Timeline, c: int, now: float) -> None:
    """Let a node fail: one with a job, an idle one, or one that is out of service already, where nothing happens."""
    turn = state.failed_c[c] % state.gap_cf.shape[1]
    node = state.strikes_cf[c, turn] * state.size_c[c]
    free = free_nodes(state, c, now)
    state.failed_c[c] += 1
    state.fails_at_c[c] = now + state.gap_cf[c, turn]
    before, hit = 0, -1
    for i in range(state.running_c[c]):
        before += state.nodes_j[state.running_cr[c, i]]
        if node < before:
            hit = i
            break
    if hit < 0 and node >= before + free:
        return
    k = state.outages_c[c]
    state.from_ck[c, k], state.to_ck[c, k], state.down_ck[c, k] = now, now + state.repair_c[c], 1
    state.outages_c[c] = k + 1
    if hit >= 0:
        _lose(state, c, hit, now)


@compiled
def _lose(state: Timeline, c: int, place: int, now: float) -> None:
    """Take a running job off its nodes, and put it back into the queue or give it up."""
    job = state.running_cr[c, place]
    for i in range(place, state.running_c[c] - 1):
        state.running_cr[c, i] = state.running_cr[c, i + 1]
    state.running_c[c] -= 1
    state.hits_j[job] += 1
    if state.hits_j[job] >= MOST_HITS:
        state.given_up_j[job] = 1
        state.run_j[job] = now - state.start_j[job]
        return
    state.lost_j[job] += state.nodes_j[job] * (now - state.start_j[job])
    state.start_j[job], state.promise_j[job] = math.nan, math.inf
    _enqueue(state, c, job)


@compiled
def _enqueue(state: Timeline, c: int, job: int) -> None:
    i = state.queued_c[c]
    while i > 0 and state.key_j[state.queue_cq[c, i - 1]] > state.key_j[job]:
        state.queue_cq[c, i] = state.queue_cq[c, i - 1]
        i -= 1
    state.queue_cq[c, i] = job
    state.queued_c[c] += 1


@compiled
def _schedule(state: Timeline, c: int, now: float, rule: int) -> None:
    """Start the jobs of a queue that may start now, and renew the promises of the others."""
    when_p, free_p, count = _plan(state, c, now, False, 2 * state.queued_c[c])
    if rule == CONSERVATIVE:
        _renew_promises(state, c, now, when_p, free_p, count)
    else:
        _start_in_order(state, c, now, rule, when_p, free_p, count)
    kept = 0
    for i in range(state.queued_c[c]):
        job = state.queue_cq[c, i]
        if math.isnan(state.start_j[job]):
            state.queue_cq[c, kept] = job
            kept += 1
    state.queued_c[c] = kept


@compiled
def _start_in_order(state: Timeline, c: int, now: float, rule: int, when_p: Floats, free_p: Floats, count: int) -> None:
    queued, first = state.queued_c[c], 0
    while first < queued:
        job = state.queue_cq[c, first]
        at = _earliest(when_p, free_p, count, state.nodes_j[job], state.limit_j[job])
        state.promise_j[job] = at
        if at < math.inf:
            count = _take(when_p, free_p, count, at, state.limit_j[job], state.nodes_j[job])
        if at > now:
            break
        _start(state, c, job, now)
        first += 1
    if rule == FCFS or first + 1 >= queued:
        return
    rest = state.queue_cq[c, first + 1 : queued]
    order = np.argsort(state.expected_j[rest], kind="mergesort") if rule == SHORTEST else np.arange(len(rest))
    for i in order:
        job = rest[i]
        nodes, limit_s = state.nodes_j[job], state.limit_j[job]
        if free_p[0] >= nodes and _earliest(when_p, free_p, count, nodes, limit_s) == now:
            count = _take(when_p, free_p, count, now, limit_s, nodes)
            _start(state, c, job, now)


@compiled
def _renew_promises(state: Timeline, c: int, now: float, when_p: Floats, free_p: Floats, count: int) -> None:
    """Let each job in turn give its promise back for the earliest time that fits."""
    for i in range(state.queued_c[c]):
        job = state.queue_cq[c, i]
        if state.promise_j[job] < now:  # a failure has broken it
            state.promise_j[job] = math.inf
        if state.promise_j[job] < math.inf:
            count = _take(when_p, free_p, count, state.promise_j[job], state.limit_j[job], state.nodes_j[job])
    for i in range(state.queued_c[c]):
        job = state.queue_cq[c, i]
        nodes, limit_s = state.nodes_j[job], state.limit_j[job]
        if state.promise_j[job] < math.inf:
            count = _take(when_p, free_p, count, state.promise_j[job], limit_s, -nodes)
        at = _earliest(when_p, free_p, count, nodes, limit_s)
        state.promise_j[job] = at
        if at < math.inf:
            count = _take(when_p, free_p, count, at, limit_s, nodes)
        if at == now:
            _start(state, c, job, now)


@compiled
def _start(state: Timeline, c: int, job: int, now: float) -> None:
    state.start_j[job] = now
    state.running_cr[c, state.running_c[c]] = job
    state.running_c[c] += 1


@compiled
def _plan(state: Timeline, c: int, now: float, predicted: bool, room: int) -> tuple[Floats, Floats, int]:
    """Return the free nodes from now on: when each piece begins, its nodes, and their number.

    There is room to take nodes for `room` jobs. Running jobs end at their limits, or as predicted.
    """
    running, outages, count = state.running_c[c], state.outages_c[c], 0
    then, change = np.empty(running + 2 * outages), np.empty(running + 2 * outages)
    free = float(state.size_c[c])
    for i in range(running):
        job = state.running_cr[c, i]
        free -= state.nodes_j[job]
        length = state.expected_j[job] if predicted else state.limit_j[job]
        then[count], change[count] = max(now, state.start_j[job] + length), state.nodes_j[job]
        count += 1
    for k in range(outages):
        if state.to_ck[c, k] <= now:
            continue
        then[count], change[count] = state.to_ck[c, k], state.down_ck[c, k]
        count += 1
        if state.from_ck[c, k] <= now:
            free -= state.down_ck[c, k]
        else:
            then[count], change[count] = state.from_ck[c, k], -state.down_ck[c, k]
            count += 1
    when_p, free_p = np.empty(count + 1 + 2 * room), np.empty(count + 1 + 2 * room)
    when_p[0], free_p[0], pieces = now, free, 1
    for i in np.argsort(then[:count]):
        if then[i] > when_p[pieces - 1]:
            when_p[pieces], free_p[pieces] = then[i], free_p[pieces - 1]
            pieces += 1
        free_p[pieces - 1] += change[i]
    return when_p, free_p, pieces


@compiled
def _earliest(when_p: Floats, free_p: Floats, count: int, nodes: int, length: float) -> float:
    """Return the earliest time from which on `nodes` nodes are free for `length` seconds; infinite for none."""
    i = 0
    while i < count:
        if free_p[i] >= nodes:
            end, j = when_p[i] + length, i + 1
            while j < count and when_p[j] < end and free_p[j] >= nodes:
                j += 1
            if j == count or when_p[j] >= end:
                return float(when_p[i])
            i = j
        i += 1
    return math.inf


@compiled
def _take(when_p: Floats, free_p: Floats, count: int, at: float, length: float, nodes: int) -> int:
    """Take nodes out of a plan for a time, and return the number of its pieces."""
    count = _split(when_p, free_p, count, at)
    count = _split(when_p, free_p, count, at + length)
    i = 0
    while when_p[i] < at:
        i += 1
    while i < count and when_p[i] < at + length:
        free_p[i] -= nodes
        i += 1
    return count


@compiled
def _split(when_p: Floats, free_p: Floats, count: int, at: float) -> int:
    """Let a piece of a plan begin at a time, and return the number of pieces."""
    i = count
    while when_p[i - 1] > at:
        i -= 1
    if when_p[i - 1] == at:
        return count
    for j in range(count, i, -1):
        when_p[j], free_p[j] = when_p[j - 1], free_p[j - 1]
    when_p[i], free_p[i] = at, free_p[i - 1]
    return count + 1
