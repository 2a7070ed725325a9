"""What a figure takes from an evaluation, or the sentence that tells why it is missing."""

# N cells, W workloads, P platforms

from __future__ import annotations

from crossperf.errors import CrossperfError, did_you_mean, several, some_of
from crossperf.evaluation.heldout import HeldOut, HeldOutPredictions
from crossperf.evaluation.result import Evaluation
from crossperf.report.figures.colours import Look, looks_of
from crossperf.report.figures.drawn import NothingToDraw
from crossperf.report.figures.words import plain
from crossperf.runs.summary import TableInfo


def held_out(evaluation: Evaluation) -> HeldOut:
    """Return the cells held out."""
    held = evaluation.held_out
    if held is None or not len(held):
        raise NothingToDraw("This evaluation holds no held-out cells. 'crossperf evaluate --json' keeps them.")
    return held


def table_info(evaluation: Evaluation) -> TableInfo:
    """Return what is in the table of runs."""
    if evaluation.table.info is None:
        raise NothingToDraw("This evaluation does not keep what is in its table. Evaluate again with this crossperf.")
    return evaluation.table.info


def predictions_of(evaluation: Evaluation, model: str | None = None) -> tuple[str, HeldOutPredictions]:
    """Return the held-out predictions of a model, the first unless named."""
    by_model = held_out(evaluation).predictions
    if not by_model:
        raise NothingToDraw("No model was scored in this evaluation. 'crossperf evaluate' scores them.")
    if model is not None and model not in by_model:
        raise CrossperfError(
            f"model {model!r} is not in this evaluation{did_you_mean(model, by_model)}, expected one of "
            f"{some_of(by_model)}.",
            model=model,
        )
    name = model if model is not None else next(iter(by_model))
    return name, by_model[name]


def looks(evaluation: Evaluation) -> dict[str, Look]:
    """Return the look of each platform; of one that the table has and the evaluation left out, too."""
    scored, info = evaluation.table.platforms, evaluation.table.info
    others = [platform.name for platform in info.platforms if platform.name not in scored] if info else []
    return looks_of([*scored, *others])


def workload_name(workload: tuple[str, str]) -> str:
    """Return a workload in words."""
    app, input_ = workload
    return plain(f"{app}, input {input_}" if input_ else app)


def profiled(held: HeldOut, n: int) -> str:
    """Return a cell in words."""
    workload, source = held.workloads[held.workload_n[n]], held.platforms[held.source_n[n]]
    return f"{workload_name(workload)}, profiled on {plain(source)}"


def folds_scored(evaluation: Evaluation) -> int:
    """Return how many folds the scores are means over."""
    return evaluation.scored_folds or evaluation.folds


def those(evaluation: Evaluation, number: int, noun: str) -> str:
    """Return a count of the cells, or of what is in them, with how they come to be here.

    They were held out by a split, or are new to a model that was trained before; or no model is asked about them.
    """
    if not evaluation.is_split:
        known = evaluation.held_out is None or not evaluation.held_out.predictions
        return f"{several(number, noun)} {'of the table' if known else 'that the model was not trained on'}"
    return f"{several(number, f'held-out {noun}')} (split '{evaluation.split}', {evaluation.folds_in_words})"
