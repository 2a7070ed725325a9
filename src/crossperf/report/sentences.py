"""What the scores of an evaluation mean, in sentences: the same in a terminal and on a page."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from crossperf.errors import several
from crossperf.evaluation.heldout import LEVEL
from crossperf.evaluation.metrics import ConstantAnswer
from crossperf.evaluation.result import Evaluation
from crossperf.evaluation.run import ablation
from crossperf.evaluation.scores import Scores
from crossperf.evaluation.trained import NEW
from crossperf.model import MODELS
from crossperf.records import LOOKS
from crossperf.report.constant import constant_pick
from crossperf.report.figures.words import how_often, of_r2

#: What each split holds out, as the reader of a sentence needs it.
HELD_OUT = {
    "row": "cells drawn at random, as in the paper",
    "workload": "inputs it has never seen",
    "app": "applications it has never seen",
    NEW: "workloads it was not trained on",
}
#: The same in two or three words, for a switch.
SHORT = {"row": "known workloads", "workload": "new inputs", "app": "new applications", NEW: "new workloads"}
#: What a cell is, wherever the word first stands.
CELL = "A cell is one workload, profiled on one platform."


def sentences(result: Evaluation) -> list[str]:
    """Return what each model's scores mean, and what a constant answer would get."""
    lines = []
    for name, scores in result.scores.items():
        lines.append(f"{name} {of_scores(scores)}")
        if scores.coverage is not None:
            lines.append(f"{name} {of_intervals(scores)}")
        if r2 := of_r2(scores):
            lines.append(f"{name}: {r2}")
    return [*of_winner(result), *lines, of_constant(result.constant)]


def most_accurate(result: Evaluation) -> str | None:
    """Return the model with the least typical factor; ``None`` where none was scored."""
    factors = {name: own.typical_factor for name, own in result.scores.items() if own.typical_factor is not None}
    return min(factors, key=factors.__getitem__) if factors else None


def of_winner(result: Evaluation) -> list[str]:
    """Return where following no model, but always taking one platform, does better; empty where it does not."""
    constant, scores = constant_pick(result), [own for _, own in result.scores.items()]
    best = max((own.top1 for own in scores if own.top1 is not None), default=None)
    least = min((own.slowdown for own in scores if own.slowdown is not None), default=None)
    if best is None or constant.top1 is None:
        return []
    name, wins = _constant_choice(result.constant), []
    if constant.top1 > best:
        wins.append(f"is right for {constant.top1:.0%} of these cells, the best model for {best:.0%}")
    if constant.slowdown is not None and least is not None and constant.slowdown < least:
        wins.append(f"loses {constant.slowdown - 1:.1%} of the time, the picks of the best model {least - 1:.1%}")
    return [f"The constant pick wins here: always taking {name} {'; it '.join(wins)}."] if wins else []


def headline(result: Evaluation) -> str:
    """Return the answer in one sentence: how often the most accurate model picks the fastest platform.

    The constant answer stands beside it, since a model that does no better has learned nothing worth having.
    """
    name = most_accurate(result)
    if name is None:
        return "No model was scored here."
    constant, held_out = result.constant, HELD_OUT.get(result.split)
    model, pick = result.scores[name].top1 or 0.0, constant_pick(result).top1 or 0.0
    often, always = _distinct(model, pick)
    better = " and is the better choice" if pick > model else ""
    return (
        f"{name} picks the fastest platform {often}"
        + (f" for {held_out}" if held_out else "")
        + f"; always taking {_constant_choice(constant)} would: {always}{better}. Its times are off by a factor of "
        f"{result.scores[name].typical_factor:.2f} typically."
    )


@dataclass(frozen=True)
class Figure:
    """A number that stands large on the page: what is counted, and what it is compared with."""

    number: str
    unit: str
    what: str
    against: str


def numbers(result: Evaluation, model: str) -> list[Figure]:
    """Return the three numbers that tell what a model is worth: its picks, its times, and what following it costs."""
    scores, constant = result.scores[model], constant_pick(result)
    always, ceiling = f"always taking {result.constant.fastest}", result.scores.noise_ceiling.typical_factor
    picked = f"{always}: {_hundred(constant.top1)}" if constant.top1 is not None else ""
    lost = f"{always}: {_percent(constant.slowdown)}" if constant.slowdown is not None else ""
    noise = f"noise alone: {ceiling:.2f}x" if ceiling is not None else "1x is perfect"
    return [
        Figure(_hundred(scores.top1), "of 100", "cells get their fastest platform named", picked),
        Figure(_number(scores.typical_factor), "x", "typically between predicted and measured time", noise),
        Figure(_percent(scores.slowdown), "", "of the time is lost by following its picks", lost),
    ]


def _hundred(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.0f}"


def _percent(slowdown: float | None) -> str:
    return "–" if slowdown is None else f"{slowdown - 1:.1%}" if slowdown < 1.995 else f"{slowdown:.1f}x"


def times_in_ten(share: float) -> str:
    """Return a share in everyday words, finer where tenths would hide what matters.

    >>> times_in_ten(0.9), times_in_ten(0.713), times_in_ten(0.97), times_in_ten(1.0), times_in_ten(0.05)
    ('9 times in 10', '7 times in 10', '97 times in 100', 'every time', '5 times in 100')
    """
    if share in (0.0, 1.0):
        return "every time" if share else "never"
    return _times_in(10 if 0.05 < share < 0.95 else 100, share)


def _distinct(first: float, second: float) -> tuple[str, str]:
    """Return two shares in words that differ where the shares do."""
    words = times_in_ten(first), times_in_ten(second)
    return words if first == second or words[0] != words[1] else (_times_in(100, first), _times_in(100, second))


def _times_in(whole: int, share: float) -> str:
    often = min(max(round(share * whole), 1), whole - 1)
    return f"{often} {'time' if often == 1 else 'times'} in {whole}"


def of_scores(scores: Scores) -> str:
    """Return what a model's scores mean to somebody who follows it."""
    return (
        f"is off by a factor of {_number(scores.typical_factor)} typically; picks the fastest platform for "
        f"{scores.top1 or 0:.0%} of the cells and loses {(scores.slowdown or 1) - 1:.1%} of the time by its picks; "
        f"gets the whole order right for {scores.same_order or 0:.0%}"
    )


def of_intervals(scores: Scores) -> str:
    """Return how well a model's intervals cover the truth, and its error by how familiar a run looks."""
    by_word = ", ".join(
        f"{scores[f'factor_{word}']:.2f} where a run looks {word} ({scores[f'share_{word}']:.0%})"
        for word in LOOKS
        if scores[f"factor_{word}"] is not None
    )
    return (
        f"gives intervals for {LEVEL:.0%} that cover {scores.coverage:.1%} of the times, a factor of "
        f"{_number(scores.interval_factor)} to either side; it is off by {by_word}"
    )


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f}"


def _constant_choice(constant: ConstantAnswer) -> str:
    return f"{constant.fastest}{f' ({constant.otherwise[0]} where that cannot run)' if constant.otherwise else ''}"


def of_constant(constant: ConstantAnswer) -> str:
    """Return how often always giving the same answer would be right."""
    always = f"always taking {_constant_choice(constant)}: right for {constant.fastest_share:.0%} of the workloads"
    if constant.order_share is not None:
        always += f"; always answering {' < '.join(constant.order)}: {constant.order_share:.0%}"
    return always


def of_table(result: Evaluation) -> str:
    """Return what is in the table, in two sentences."""
    info = result.table.info
    whole = info or result.table
    counts = (
        f"{whole.runs:,} runs of {whole.workloads:,} workloads ({several(whole.apps, 'application')}) on "
        f"{len(whole.platforms)} platforms"
    )
    if not info:
        return f"{counts}."
    able = " that can run them" if info.limited_workloads else ""
    noise, what = (info.noise_between_visits, "visits") if info.noise_between_visits else (info.noise, "repeats")
    spread = "" if noise.median is None else f"; {what} vary by {noise.median:.1%} in the median"
    return (
        f"{counts}, with {info.counters} counters. {info.complete_workloads:,} workloads ran on every platform{able}. "
        f"Each workload was measured {how_often(info.repeats)} on a platform{spread}."
    )


def left_out(result: Evaluation) -> list[str]:
    """Return which rows of the table took no part, and why."""
    info, chosen = result.table.info, result.table.platforms
    if info is None:
        return ["No row was left out."]
    sentences = [f"{several(number, 'run')} failed with status '{status}'." for status, number in info.failed.items()]
    dropped = [platform.name for platform in info.platforms if platform.name not in chosen]
    if dropped:
        sentences.append(f"{', '.join(dropped)}: not among the platforms chosen.")
    incomplete = info.workloads - info.complete_workloads
    if incomplete and not dropped:  # of some platforms alone, the caveats tell how many
        lack = "lack a platform that can run them" if info.limited_workloads else "lack a platform"
        sentences.append(f"{incomplete:,} of {info.workloads:,} workloads {lack}; they count where they ran.")
    return sentences or ["No row was left out."]


def command(result: Evaluation, file: str = "evaluation.json") -> str | None:
    """Return the command that makes this evaluation again, into a file.

    ``None`` where none does: a trained model was asked, models of one's own took part, or none did.
    """
    models, facts = list(result.scores), result.table
    ablated = models == list(ablation())
    if not result.is_split or not models or not (ablated or set(models) <= set(MODELS)):
        return None
    words = ["crossperf", "evaluate", facts.path, "--split", result.split]
    words += ["--ablation"] if ablated else ["--models", ",".join(models)]
    words += ["--folds", str(result.folds), "--seed", str(result.seed)]
    if result.scored_folds is not None and result.scored_folds < result.folds:
        words += ["--scored-folds", str(result.scored_folds)]
    if facts.info and facts.platforms != tuple(platform.name for platform in facts.info.platforms):
        words += ["--platforms", ",".join(facts.platforms)]
    return shlex.join([*words, "--json", file])
