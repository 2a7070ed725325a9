"""First come, first served (FCFS) with EASY backfilling on several clusters, as functions over arrays: the fast way.

Each cluster has its nodes and its queue. A job starts when it is first in its queue and its nodes are free. The first
that cannot start (the head) has a reservation, after Lifka (1995, "The ANL/IBM SP scheduling system") in the words of
Mu'alem and Feitelson (2001, IEEE TPDS 12(6)):

- the shadow time: when the head could start if every running job took its whole limit;
- the spare nodes (their "extra nodes"): those that are free then and that the head does not need.

A later job of n nodes and limit l may start now, n nodes being free, if ``now + l <= shadow`` or ``n <= spare``; in the
second case alone it takes n of the spare nodes. Those that may start do so in order of arrival (`EASY`), or shortest
predicted run time first (`SHORTEST`, after Tsafrir, Etsion and Feitelson, 2007, IEEE TPDS 18(6)).

Invariant: no job runs past its limit, so at the shadow time the head's nodes are free. Backfilling never delays the
head beyond the shadow time of the moment it became the head; early ends only bring it forward.

Cost: a scheduling pass over a queue of Q jobs that starts s of them takes about (s + 1) K log Q steps for K classes of
sizes, not Q: a tree over the queue holds, for each stretch of it, the shortest limit of each class, so that
stretches where nothing fits are skipped. A start or an end shifts the R running jobs of its cluster, which stay sorted.

numba compiles the functions where it is installed; without it they run as they stand, slower and with the same
answers. They share one file because numba's cache does not notice changes in another. Other rules (conservative
backfilling, priorities, outages) are those of `timeline`, which is slower and says the same where both can be asked.
"""

# J jobs, C clusters, R running jobs, Q places in a queue, T nodes of the tree over its blocks of places (a binary heap:
# node t has the children 2t and 2t + 1), K classes of sizes, O octaves of sizes (1 node, 2-3, 4-7, ...), L classes of
# limits

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from crossperf.arrays import Floats, Integers

_F = TypeVar("_F", bound=Callable[..., Any])


def compiled(function: _F) -> _F:
    """Return the function compiled where numba is installed, kept on disk where there is a place for it."""
    try:
        njit = importlib.import_module("numba").njit
    except ImportError:
        return function
    try:
        return cast(_F, njit(cache=True)(function))
    except RuntimeError:  # no folder to keep it in
        return cast(_F, njit(function))


#: Who may start before the first in the queue: nobody, whoever keeps its reservation, or of those the shortest first.
FCFS, EASY, SHORTEST = 0, 1, 2
#: Places of a queue below one leaf of its tree.
_BLOCK = 16
#: Classes of limits: below 15 minutes, below 30, below an hour, ...
_LIMIT_CLASSES = 8
_FIRST_LIMIT_S = 900.0
#: What is remembered of earlier waits when a job of the same class starts: half after 34 of them.
_MEMORY = 0.98
#: Seconds of waits as foreseen that are taken for granted before there are any.
_TRUST_S = 3600.0


class State(NamedTuple):
    """Everything that is known of the jobs and clusters at one time; the functions below change it in place."""

    nodes_j: Integers
    size_class_j: Integers
    #: The time limit that the scheduler believes in. A job never runs for longer.
    limit_j: Floats
    run_j: Floats
    #: The predicted run time, which waits are predicted from.
    expected_j: Floats
    start_j: Floats
    #: When a job was queued, and how long it would have waited by `_drained`.
    queued_at_j: Floats
    foreseen_j: Floats

    size_c: Integers
    free_c: Integers
    running_c: Integers
    queued_c: Integers
    #: The first and last place in use of each queue.
    head_c: Integers
    tail_c: Integers
    #: Node-seconds of the queued jobs, as predicted.
    work_c: Floats
    #: The reservation of the first queued job: its shadow time, and the spare nodes then.
    shadow_c: Floats
    spare_c: Integers
    #: What jobs of each octave of sizes and class of limits have waited of late, and what was foreseen for them.
    waited_col: Floats
    foreseen_col: Floats

    #: The running jobs by end, latest first: by the true end, by the limit, and by the predicted end.
    end_cr: Floats
    end_job_cr: Integers
    limit_end_cr: Floats
    limit_end_job_cr: Integers
    expected_end_cr: Floats
    expected_end_job_cr: Integers

    #: The queue in order of arrival; -1 where a job has left it.
    queue_cq: Integers
    #: The fewest nodes of each class of sizes.
    fewest_k: Integers
    #: The shortest limit of each class below each node of the tree, whose leaves are blocks of places; inf for none.
    shortest_ctk: Floats


def _classes(largest: int) -> Integers:
    """Return the fewest nodes of each class of sizes: one class for each size up to 8, four to each doubling above.

    >>> _classes(20)
    array([ 1,  2,  3,  4,  5,  6,  7,  8, 10, 12, 14, 16, 20])
    """
    above = [quarter << doubling for doubling in range(1, largest.bit_length()) for quarter in range(4, 8)]
    return np.array([nodes for nodes in (*range(1, 8), *above) if nodes <= largest])


def empty(sizes: Sequence[int], nodes_j: Integers, places: int = 1024) -> State:
    """Return clusters of these sizes with nothing on them, and jobs of which no more than their nodes are known.

    A queue has room for `places` jobs before it must be tidied: 32 or more, a power of two.
    """
    fewest_k = _classes(max(sizes))
    lengths = {"c": len(sizes), "j": len(nodes_j), "k": len(fewest_k), "l": _LIMIT_CLASSES, "q": places}
    lengths |= {"o": int(max(sizes)).bit_length(), "r": min(max(sizes), len(nodes_j)), "t": 2 * places // _BLOCK}
    zeros: dict[str, Any] = {}
    for name, kind in State.__annotations__.items():  # the letters at the end of a name are the axes of the array
        shape = [lengths[axis] for axis in name.rpartition("_")[2]]
        zeros[name] = np.zeros(shape, np.int64 if "Integers" in str(kind) else np.float64)
    state = State(**zeros)
    state.start_j[:], state.queue_cq[:], state.shortest_ctk[:] = np.nan, -1, np.inf
    state.nodes_j[:], state.size_class_j[:] = nodes_j, np.searchsorted(fewest_k, nodes_j, side="right") - 1
    state.size_c[:] = state.free_c[:] = sizes
    state.fewest_k[:] = fewest_k
    return state


def resize(state: State, job: int, nodes: int) -> None:
    """Let a job that is not submitted yet take another number of nodes."""
    state.nodes_j[job], state.size_class_j[job] = nodes, np.searchsorted(state.fewest_k, nodes, side="right") - 1


def tidied(state: State) -> State:
    """Return the state with gaps in the queues closed, and with twice the room where one is more than half full."""
    places = state.queue_cq.shape[1] * (2 if 2 * state.queued_c.max() > state.queue_cq.shape[1] else 1)
    leaves = places // _BLOCK
    queue_cq = np.full((len(state.size_c), places), -1, np.int64)
    shortest_ctk = np.full((len(state.size_c), 2 * leaves, len(state.fewest_k)), np.inf)
    for c, waiting in enumerate(state.queue_cq):
        jobs = waiting[waiting >= 0]
        queue_cq[c, : len(jobs)] = jobs
        leaf = leaves + np.arange(len(jobs)) // _BLOCK
        np.minimum.at(shortest_ctk[c], (leaf, state.size_class_j[jobs]), state.limit_j[jobs])
    width = leaves // 2
    while width:
        below = shortest_ctk[:, 2 * width : 4 * width]
        shortest_ctk[:, width : 2 * width] = np.minimum(below[:, ::2], below[:, 1::2])
        width //= 2
    state.head_c[:] = 0
    state.tail_c[:] = state.queued_c
    return state._replace(queue_cq=queue_cq, shortest_ctk=shortest_ctk)


@compiled
def advance(state: State, now: float, backfill: int) -> None:
    """Let the clusters run until `now`, jobs that end exactly then included."""
    for c in range(len(state.size_c)):
        while state.running_c[c] > 0 and state.end_cr[c, state.running_c[c] - 1] <= now:
            then = state.end_cr[c, state.running_c[c] - 1]
            _release(state, c, then)
            if state.queued_c[c] > 0:
                _start_queued(state, c, then, backfill)


@compiled
def submit(state: State, c: int, job: int, now: float, backfill: int) -> bool:
    """Start a job that arrives on a cluster, or queue it; tell whether its queue has room for another.

    The clusters have run until `now`, and the job's limit, true and predicted run time are written down.
    """
    fits = state.nodes_j[job] <= state.free_c[c]
    if state.queued_c[c] == 0:
        if fits:
            _start(state, c, job, now)
        else:
            _enqueue(state, c, job, now)
            _reserve(state, c)
    elif backfill != FCFS and fits and _may_backfill(state, c, state.nodes_j[job], state.limit_j[job], now):
        _backfill(state, c, job, now)
    else:
        _enqueue(state, c, job, now)
    return bool(state.tail_c[c] < state.queue_cq.shape[1])


@compiled
def replay(state: State, first: int, submit_j: Floats, cluster_j: Integers, backfill: int) -> int:
    """Submit jobs that are placed already, from `first` on, until a queue is full; return the next job to submit.

    Jobs of cluster -1 are passed over.
    """
    for job in range(first, len(submit_j)):
        if cluster_j[job] < 0:
            continue
        advance(state, submit_j[job], backfill)
        if not submit(state, cluster_j[job], job, submit_j[job], backfill):
            return job + 1
    return len(submit_j)


@compiled
def predict_waits(
    state: State, clusters_m: Integers, limit_m: Floats, nodes_m: Integers, now: float, backfill: int, wait_m: Floats
) -> None:
    """Write the predicted wait of a job in each of several places into `wait_m`; it takes `nodes_m` nodes there.

    It waits not at all where it could start or be backfilled now. Elsewhere the wait is that until the queue's work is
    done (`_drained`), times what jobs of about its size and limit have waited there of late over what this rule
    foresaw for them: small and short jobs are backfilled, large ones are overtaken.
    """
    for m in range(len(clusters_m)):
        c, nodes = clusters_m[m], nodes_m[m]
        fits = nodes <= state.free_c[c]
        if fits and (state.queued_c[c] == 0 or (backfill != FCFS and _may_backfill(state, c, nodes, limit_m[m], now))):
            wait_m[m] = 0.0
        else:
            octave, limit_class = _kind(nodes, limit_m[m])
            waited_s = state.waited_col[c, octave, limit_class] + _TRUST_S
            foreseen_s = state.foreseen_col[c, octave, limit_class] + _TRUST_S
            wait_m[m] = (_drained(state, c, nodes, now) - now) * waited_s / foreseen_s


@compiled
def _kind(nodes: int, limit_s: float) -> tuple[int, int]:
    """Return the octave of a size, 0 for 1 node, 1 for 2-3, ..., and the class of a limit, 0 below 15 minutes, ..."""
    octave, limit_class = 0, 0
    while nodes > 1:
        nodes >>= 1
        octave += 1
    while limit_s >= _FIRST_LIMIT_S and limit_class < _LIMIT_CLASSES - 1:
        limit_s *= 0.5
        limit_class += 1
    return octave, limit_class


@compiled
def _drained(state: State, c: int, nodes: int, now: float) -> float:
    """Return when the queue's work is done and `nodes` nodes are free, if all ran for as long as predicted.

    The nodes that are free, and those that running jobs release at their predicted ends, first work off the
    node-seconds that are queued.
    """
    work, free, then = state.work_c[c], state.free_c[c], now
    i = state.running_c[c] - 1
    while i >= 0:
        end = max(now, state.expected_end_cr[c, i])
        if work <= free * (end - then):
            if work > 0.0:
                then += work / free
                work = 0.0
            if free >= nodes:
                return float(then)
        else:
            work -= free * (end - then)
        then = end
        free += state.nodes_j[state.expected_end_job_cr[c, i]]
        i -= 1
    return float(then + work / free)


@compiled
def _release(state: State, c: int, now: float) -> None:
    """Take the jobs that end now off the nodes."""
    while state.running_c[c] > 0 and state.end_cr[c, state.running_c[c] - 1] == now:
        last = state.running_c[c] - 1
        job = state.end_job_cr[c, last]
        _remove(state.limit_end_cr[c], state.limit_end_job_cr[c], last, job)
        _remove(state.expected_end_cr[c], state.expected_end_job_cr[c], last, job)
        state.running_c[c] = last
        state.free_c[c] += state.nodes_j[job]


@compiled
def _start_queued(state: State, c: int, now: float, backfill: int) -> None:
    """Start the jobs of a queue that may start now: from the front while they fit, then by backfilling."""
    while state.queued_c[c] > 0:
        job = state.queue_cq[c, state.head_c[c]]
        if state.nodes_j[job] > state.free_c[c]:
            break
        _dequeue(state, c, state.head_c[c], now)
        _start(state, c, job, now)
    if state.queued_c[c] == 0:
        return
    _reserve(state, c)
    place, count = state.head_c[c], 0
    places = np.empty(state.queued_c[c] if backfill == SHORTEST else 0, np.int64)
    while backfill != FCFS and state.free_c[c] > 0 and place + 1 < state.tail_c[c]:
        place = _next_to_backfill(state, c, place + 1, now)
        if place < 0:
            break
        if backfill == SHORTEST:
            places[count] = place
            count += 1
        else:
            job = state.queue_cq[c, place]
            _dequeue(state, c, place, now)
            _backfill(state, c, job, now)
    if count > 0:
        _backfill_shortest(state, c, places[:count], now)


@compiled
def _backfill_shortest(state: State, c: int, places: Integers, now: float) -> None:
    """Start jobs that may start before the first in the queue, those predicted shortest first, while they may."""
    # Whoever may not start now may not start later in this pass: free and spare nodes only become fewer.
    expected = np.empty(len(places))
    for i in range(len(places)):
        expected[i] = state.expected_j[state.queue_cq[c, places[i]]]
    for i in np.argsort(expected, kind="mergesort"):
        job = state.queue_cq[c, places[i]]
        fits = state.nodes_j[job] <= state.free_c[c]
        if fits and _may_backfill(state, c, state.nodes_j[job], state.limit_j[job], now):
            _dequeue(state, c, places[i], now)
            _backfill(state, c, job, now)


@compiled
def _reserve(state: State, c: int) -> None:
    """Reserve nodes for the first queued job: its shadow time, and the spare nodes then."""
    # Running jobs that reach their limits together are counted together, so that none of their nodes is missed.
    wanted = state.nodes_j[state.queue_cq[c, state.head_c[c]]]
    free, then = state.free_c[c], 0.0
    i = state.running_c[c] - 1
    while i >= 0 and (free < wanted or state.limit_end_cr[c, i] == then):
        then = state.limit_end_cr[c, i]
        free += state.nodes_j[state.limit_end_job_cr[c, i]]
        i -= 1
    state.shadow_c[c] = then
    state.spare_c[c] = free - wanted


@compiled
def _keeps_reservation(nodes: int, limit_s: float, now: float, shadow: float, spare: int) -> bool:
    """Tell whether a job that starts now leaves the first in the queue its reservation."""
    return bool(now + limit_s <= shadow or nodes <= spare)


@compiled
def _may_backfill(state: State, c: int, nodes: int, limit_s: float, now: float) -> bool:
    return _keeps_reservation(nodes, limit_s, now, state.shadow_c[c], state.spare_c[c])


@compiled
def _backfill(state: State, c: int, job: int, now: float) -> None:
    """Start a job before the first in the queue; one that ends after the shadow time takes spare nodes."""
    if now + state.limit_j[job] > state.shadow_c[c]:
        state.spare_c[c] -= state.nodes_j[job]
    _start(state, c, job, now)


@compiled
def _next_to_backfill(state: State, c: int, place: int, now: float) -> int:
    """Return the first place of a queue, from `place` on, whose job may be backfilled; -1 where there is none."""
    free, spare, shadow = state.free_c[c], state.spare_c[c], state.shadow_c[c]
    leaves = state.queue_cq.shape[1] // _BLOCK
    at = leaves + place // _BLOCK
    while True:
        for i in range(place, (at - leaves + 1) * _BLOCK):
            job = state.queue_cq[c, i]
            if job < 0 or state.nodes_j[job] > free:
                continue
            if _keeps_reservation(state.nodes_j[job], state.limit_j[job], now, shadow, spare):
                return i
        at = _next_leaf(state.shortest_ctk[c], state.fewest_k, at, now, free, shadow, spare)
        if at < 0:
            return -1
        place = (at - leaves) * _BLOCK


@compiled
def _next_leaf(
    shortest_tk: Floats, fewest_k: Integers, at: int, now: float, free: int, shadow: float, spare: int
) -> int:
    """Return the first leaf after a node of the tree that may hold a job to backfill; -1 where there is none."""
    leaves = len(shortest_tk) // 2
    while True:
        while at & 1:  # a right child: all up to the end of its parent has been seen
            at >>= 1
        if at == 0:
            return -1
        at += 1
        while _may_hold(shortest_tk[at], fewest_k, now, free, shadow, spare):
            if at >= leaves:
                return at
            at *= 2
            if not _may_hold(shortest_tk[at], fewest_k, now, free, shadow, spare):
                at += 1


@compiled
def _may_hold(shortest_k: Floats, fewest_k: Integers, now: float, free: int, shadow: float, spare: int) -> bool:
    """Tell whether a job to backfill can be below a node of the tree: never wrong where it is False."""
    # The fewest nodes and the shortest limit of a class may be those of two jobs, so True means only perhaps.
    for k in range(len(fewest_k)):
        if fewest_k[k] > free:
            return False
        if shortest_k[k] < math.inf and _keeps_reservation(fewest_k[k], shortest_k[k], now, shadow, spare):
            return True
    return False


@compiled
def _start(state: State, c: int, job: int, now: float) -> None:
    state.start_j[job] = now
    state.free_c[c] -= state.nodes_j[job]
    running = state.running_c[c]
    _insert(state.end_cr[c], state.end_job_cr[c], running, now + state.run_j[job], job)
    _insert(state.limit_end_cr[c], state.limit_end_job_cr[c], running, now + state.limit_j[job], job)
    _insert(state.expected_end_cr[c], state.expected_end_job_cr[c], running, now + state.expected_j[job], job)
    state.running_c[c] = running + 1


@compiled
def _enqueue(state: State, c: int, job: int, now: float) -> None:
    place = state.tail_c[c]
    state.queued_at_j[job] = now
    state.foreseen_j[job] = _drained(state, c, state.nodes_j[job], now) - now
    state.queue_cq[c, place] = job
    _update_tree(state, c, place, state.size_class_j[job])
    state.tail_c[c] += 1
    state.queued_c[c] += 1
    state.work_c[c] += state.nodes_j[job] * state.expected_j[job]


@compiled
def _dequeue(state: State, c: int, place: int, now: float) -> None:
    job = state.queue_cq[c, place]
    _learn_from_wait(state, c, job, now)
    state.queue_cq[c, place] = -1
    _update_tree(state, c, place, state.size_class_j[job])
    state.queued_c[c] -= 1
    state.work_c[c] -= state.nodes_j[job] * state.expected_j[job]
    if state.queued_c[c] == 0:
        state.work_c[c] = 0.0  # what rounding has left
    while state.head_c[c] < state.tail_c[c] and state.queue_cq[c, state.head_c[c]] < 0:
        state.head_c[c] += 1


@compiled
def _learn_from_wait(state: State, c: int, job: int, now: float) -> None:
    """Note what a job that starts has waited, and what was foreseen for it."""
    octave, limit_class = _kind(state.nodes_j[job], state.limit_j[job])
    waited_s = now - state.queued_at_j[job]
    for sums_col, wait_s in ((state.waited_col, waited_s), (state.foreseen_col, state.foreseen_j[job])):
        sums_col[c, octave, limit_class] = _MEMORY * sums_col[c, octave, limit_class] + wait_s


@compiled
def _update_tree(state: State, c: int, place: int, k: int) -> None:
    """Write into the tree that a job of class k has come to a place, or has left it; stop where nothing changes."""
    block = place // _BLOCK
    shortest_s = math.inf
    for i in range(block * _BLOCK, (block + 1) * _BLOCK):
        job = state.queue_cq[c, i]
        if job >= 0 and state.size_class_j[job] == k:
            shortest_s = min(shortest_s, state.limit_j[job])
    at = state.queue_cq.shape[1] // _BLOCK + block
    while at > 0 and state.shortest_ctk[c, at, k] != shortest_s:
        state.shortest_ctk[c, at, k] = shortest_s
        shortest_s = min(shortest_s, state.shortest_ctk[c, at ^ 1, k])
        at >>= 1


@compiled
def _insert(end_r: Floats, job_r: Integers, count: int, end: float, job: int) -> None:
    """Put a job among `count` that are ordered by end, latest first."""
    i = count
    while i > 0 and end_r[i - 1] < end:
        end_r[i] = end_r[i - 1]
        job_r[i] = job_r[i - 1]
        i -= 1
    end_r[i] = end
    job_r[i] = job


@compiled
def _remove(end_r: Floats, job_r: Integers, last: int, job: int) -> None:
    """Take a job out of those up to `last`, closing the gap."""
    i = last
    while job_r[i] != job:
        i -= 1
    while i < last:
        end_r[i] = end_r[i + 1]
        job_r[i] = job_r[i + 1]
        i += 1
