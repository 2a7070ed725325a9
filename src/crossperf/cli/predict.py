"""``crossperf predict``: the relative times of new runs on every platform that a model knows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crossperf.cli.completion import completing, model_platforms
from crossperf.cli.options import CAN, NO_GPU, PATH, SERVER, can_of, client_of, seed
from crossperf.cli.output import JSON, say, write_facts
from crossperf.records import Prediction

if TYPE_CHECKING:
    from crossperf.prediction.answer import Answer
    from crossperf.prediction.explain import Explanations

#: Runs of a table that are explained, each in some seconds, and the walks of each, here and by a server.
_EXPLAINED, _WALKS = 5, 256


@click.command()
@click.argument("model_folder", metavar="[MODEL]", required=False, type=PATH)
@click.argument("table", metavar="TABLE", required=False, type=PATH)
@click.option(
    "--relative-to",
    "--rpv",
    default="source",
    help="What times are relative to: source, fastest, slowest, or a platform.",
    shell_complete=completing(lambda context: ["source", "fastest", "slowest", *model_platforms(context)]),
)
@click.option("--level", default=0.8, help="How often the intervals should hold the truth.")
@click.option("--joint", is_flag=True, help="Intervals of a run hold all at once that often; they are wider.")
@click.option("--explain", is_flag=True, help="Show the contribution of each counter, and the nearest known workloads.")
@click.option(
    "--explain-platform",
    "platform",
    metavar="PLATFORM",
    help="Explain this platform instead of the fastest predicted.",
    shell_complete=completing(model_platforms),
)
@SERVER
@CAN
@NO_GPU
@seed("the draws of --explain; predictions do not change with it")
@JSON
def predict(
    model_folder: Path | None,
    table: Path | None,
    explain: bool,
    platform: str | None,
    server: str | None,
    can: tuple[str, ...],
    no_gpu: bool,
    seed: int,
    json_file: Path | None,
    **how: Any,
) -> None:
    """Predict the relative times of the runs in TABLE on every platform that MODEL knows.

    Without MODEL, the model that comes with crossperf answers. With --server, MODEL is the id of one of its models.
    """
    from crossperf.report import terminal as show

    if table is None:  # click fills arguments from the left, and the one that may be left out stands there
        model_folder, table = None, model_folder
    if table is None:
        raise click.UsageError("Missing argument 'TABLE'.")
    asked = _Asked(table, can, no_gpu, how)
    result, reasons_of = _ask_server(server, model_folder, asked) if server else _ask_here(model_folder, asked)
    show.predictions(result)
    reasons = reasons_of(platform, seed) if explain or platform else None
    for reason in reasons.explanations if reasons else ():
        show.explanation(reason)
    notes = list(dict.fromkeys([*result.notes, *(reasons.notes if reasons else ())]))
    for note in notes:
        say(f"note: {note}")
    explained = {"explanations": [reason.to_json() for reason in reasons.explanations]} if reasons else {}
    predictions = map(Prediction.to_json, result.predictions)
    write_facts(json_file, lambda: {"notes": notes, "predictions": list(predictions), **explained})


@dataclass(frozen=True)
class _Asked:
    """What is asked, of a model here or of a server."""

    table: Path
    can: tuple[str, ...]
    no_gpu: bool
    how: dict[str, Any]


#: Returns the reasons for an answer, given a platform and a seed.
_Reasons = Callable[[str | None, int], "Explanations"]


def _ask_here(folder: Path | None, asked: _Asked) -> tuple[Answer, _Reasons]:
    from crossperf.model import store
    from crossperf.prediction import answer

    model = store.load(folder)
    can = can_of(asked.can, asked.no_gpu, model.cells.platform_classes)
    result = answer.predict(model, asked.table, can=can, **asked.how)
    return result, lambda platform, seed: result.explain(platform, samples=_WALKS, limit=_EXPLAINED, seed=seed)


def _ask_server(server: str, name: Path | None, asked: _Asked) -> tuple[Answer, _Reasons]:
    client, model = client_of(server), None if name is None else str(name)
    classes: list[str] = []
    if asked.no_gpu:
        known = {own["id"]: own for own in client.models()}
        chosen = known.get(model or "") or next(iter(known.values()))
        classes = [str(platform["platform_class"]) for platform in chosen["platforms"]]
    can = can_of(asked.can, asked.no_gpu, classes)
    result = client.predict(asked.table, model=model, can=can, **asked.how)

    def explained(platform: str | None, seed: int) -> Explanations:
        from crossperf.runs import read_runs

        first = {(own.app, own.input, own.source) for own in result.predictions[:_EXPLAINED]}
        runs = read_runs(asked.table, need_runtime=False).runs()
        few = [run for run in runs if (run.app, run.input, run.platform) in first]
        return client.explain(few, platform, samples=_WALKS, model=model, can=can, seed=seed)

    return result, explained
