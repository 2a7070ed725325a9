"""What a figure takes from an evaluation, or the sentence that tells why it is missing."""

# N cells, W workloads, P platforms

from __future__ import annotations

from collections.abc import Callable

from crossperf.arrays import Floats
from crossperf.errors import CrossperfError, did_you_mean, several, some_of
from crossperf.evaluation import metrics
from crossperf.evaluation.heldout import HeldOut, HeldOutPredictions
from crossperf.evaluation.result import Evaluation
from crossperf.platforms import in_order
from crossperf.report.figures.colours import Look, looks_of
from crossperf.report.figures.drawn import NothingToDraw
from crossperf.report.figures.words import plain
from crossperf.runs.summary import TableInfo

#: What times can be relative to, and how an axis calls that: the forms of the paper's relative performance vector.
RPV = {"fastest": "the fastest platform", "slowest": "the slowest platform", "source": "the platform profiled on"}


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


def shown_order(evaluation: Evaluation) -> list[str]:
    """Return all platforms in the order of every table and figure, those that the evaluation left out among them."""
    info, held = evaluation.table.info, evaluation.held_out
    names = dict.fromkeys(evaluation.table.platforms)
    classes: dict[str, str | None] = dict(zip(held.platforms, held.platform_classes, strict=True)) if held else {}
    if info:
        classes |= {own.name: own.platform_class for own in info.platforms}
    return in_order([*names, *(name for name in classes if name not in names)], classes)


def looks(evaluation: Evaluation) -> dict[str, Look]:
    """Return the look of each platform, in the order shown; of one that the evaluation left out, too."""
    return looks_of(shown_order(evaluation))


def places(evaluation: Evaluation, held: HeldOut) -> list[int]:
    """Return the columns of the held-out cells in the order shown."""
    return [held.platforms.index(name) for name in shown_order(evaluation) if name in held.platforms]


def rpv_of(rpv: str | None, own: str) -> str:
    """Return what times are relative to: as asked, or a figure's own choice."""
    if rpv is not None and rpv not in RPV:
        raise CrossperfError(f"rpv: found {rpv!r}{did_you_mean(rpv, RPV)}, expected one of {', '.join(RPV)}.", rpv=rpv)
    return rpv or own


def relative(held: HeldOut, model: str, rpv: str) -> tuple[Floats, Floats]:
    """Return truth and prediction of each cell as log times relative to its fastest, slowest or source platform."""
    if rpv == "source":
        return held.to_source(model)
    change: Callable[[Floats, Floats], tuple[Floats, Floats]] = getattr(metrics, f"to_{rpv}")
    return change(held.log_relative_time_np, held.predictions[model].predicted_np)


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
