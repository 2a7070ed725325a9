"""Micro-batches: predictions that are asked for at the same time are computed in one pass of the model.

A pass for sixteen runs takes little longer than one for a single run. Nothing waits for a batch to fill: requests that
were read in the same turn of the event loop go together, and while one batch is computed the next piles up.
"""

# N cells

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from typing import Any

from starlette.concurrency import run_in_threadpool

from crossperf.dataset.features import Features
from crossperf.model.fitted.confidence import Forecast
from crossperf.model.trained import TrainedModel
from crossperf.prediction import answer
from crossperf.prediction.answer import Answer, Question

#: Cells of one request up to which it joins a batch; a larger one is a batch of its own, computed in a thread.
MOST_JOINED = 64
#: Threads that share a large request.
_THREADS = len(os.sched_getaffinity(0))
#: Cells of one pass in the event loop, which nothing else runs beside.
_MOST_OF_A_BATCH = 128


@dataclass(eq=False)
class _Waiting:
    model: TrainedModel
    question: Question
    how: dict[str, Any]
    answered: asyncio.Future[Answer]


class Batches:
    """Predictions asked for in one event loop."""

    def __init__(self) -> None:
        self._asked: list[_Waiting] = []
        self.passes = self.cells = 0

    async def predict(self, model: TrainedModel, question: Question, **how: Any) -> Answer:
        """Return predictions, computed together with those of other requests that wait now."""
        if len(question) > MOST_JOINED:
            return await run_in_threadpool(answer.answered, model, question, threads=_THREADS, **how)
        loop = asyncio.get_running_loop()
        own = _Waiting(model, question, how, loop.create_future())
        if not self._asked:
            loop.call_soon(self._answer)
        self._asked.append(own)
        return await own.answered

    def _answer(self) -> None:
        """Answer what has piled up, at most a batch of each model; the rest has its turn after what came meanwhile."""
        asked, self._asked = self._asked, []
        batch: list[_Waiting] = []
        rest: list[_Waiting] = []
        model, cells = asked[0].model, 0
        for own in asked:
            fits = own.model is model and cells + len(own.question) <= _MOST_OF_A_BATCH
            (batch if fits else rest).append(own)
            cells += len(own.question) if fits else 0
        if rest:
            self._asked = rest
            asyncio.get_running_loop().call_soon(self._answer)
        self.passes, self.cells = self.passes + 1, self.cells + cells
        forecast, start = _forecast(model, [own.question for own in batch]), 0
        for own in batch:
            rows = slice(start, start := start + len(own.question))
            if own.answered.done():  # its client went away
                continue
            try:
                ours = None if forecast is None else forecast[rows]
                own.answered.set_result(answer.answered(model, own.question, forecast=ours, **own.how))
            except Exception as error:
                own.answered.set_exception(error)


def _forecast(model: TrainedModel, questions: list[Question]) -> Forecast | None:
    """Return one forecast of several questions; ``None`` for one alone, and where a model gives none."""
    if len(questions) == 1 or not model.fitted.forecasts:
        return None
    return model.fitted.forecast(Features.joined([question.features for question in questions]))
