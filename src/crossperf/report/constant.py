"""What always picking the same platform would get on the held-out cells: what a model has to beat."""

# N cells, P platforms

from __future__ import annotations

import numpy as np

from crossperf.evaluation import metrics
from crossperf.evaluation.result import Evaluation
from crossperf.evaluation.scores import Scores


def constant_pick(evaluation: Evaluation) -> Scores:
    """Return ``top1`` and ``slowdown`` of always taking one platform, or the next where it cannot run.

    They are of the held-out cells; of an evaluation that kept none, the share is that of the whole table.
    """
    constant, held = evaluation.constant, evaluation.held_out
    if held is None or not len(held) or constant.fastest not in held.platforms:
        return Scores(top1=constant.fastest_share)
    preferred = [constant.fastest, *(name for name in constant.otherwise if name in held.platforms)]
    # The rest come last: where none of the preferred ran, the pick is taken for a wrong one unless nothing else ran.
    rest = [name for name in held.platforms if name not in preferred]
    rank_p = np.array([[*preferred, *rest].index(name) for name in held.platforms], dtype=float)
    truth_np = held.log_relative_time_np
    slowdown_n = metrics.picked_slowdown(truth_np, np.broadcast_to(rank_p, truth_np.shape))
    return Scores(top1=float((slowdown_n == 1.0).mean()), slowdown=float(slowdown_n.mean()))
