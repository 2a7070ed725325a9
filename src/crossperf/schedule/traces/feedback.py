"""Feedback: jobs that arrive only when another has ended, since their user waits for it and thinks.

A trace tells when jobs arrived at the machine that it was taken on. On a faster one they would have come sooner, on a
slower one later: Shmueli and Feitelson (2009, "On simulation and design of parallel-systems schedulers: are we doing
the right thing?", IEEE TPDS 20(7)).
"""

# J jobs

from __future__ import annotations

import heapq

import numpy as np

from crossperf.arrays import Floats, Integers

#: Where feedback comes from: the preceding jobs that a trace names, or the sessions of its users.
FEEDBACK = ("jobs", "users")
#: Who comes back within this time is in the same session (Zilber, Amit and Talby, 2005: 20 minutes).
SESSION_S = 1200.0


def after_sessions(submit_j: Floats, wait_j: Floats, run_j: Floats, user_j: Integers) -> tuple[Integers, Floats]:
    """Return the job that each job follows, the last of the same user's that ended before, and the time in between.

    -1 stands for none within a session, or where the trace tells no waits.

    >>> times = (np.array([0.0, 100.0, 105.0]), np.zeros(3), np.array([90.0, 50.0, 10.0]))
    >>> follows, think = after_sessions(*times, np.array([1, 1, 1]))
    >>> follows.tolist(), think[1:].tolist()
    ([-1, 0, 0], [10.0, 15.0])
    """
    follows_j, think_j = np.full(len(submit_j), -1), np.full(len(submit_j), np.nan)
    running: dict[int, list[tuple[float, int]]] = {}
    last: dict[int, tuple[float, int]] = {}
    columns = (submit_j.tolist(), wait_j.tolist(), run_j.tolist(), user_j.tolist())
    for job, (submit_s, wait_s, run_s, user) in enumerate(zip(*columns, strict=True)):
        own = running.setdefault(user, [])
        while own and own[0][0] <= submit_s:
            last[user] = heapq.heappop(own)
        if user >= 0 and user in last and submit_s - last[user][0] <= SESSION_S:
            think_j[job], follows_j[job] = submit_s - last[user][0], last[user][1]
        if wait_s >= 0:
            heapq.heappush(own, (submit_s + wait_s + run_s, job))
    return follows_j, think_j
