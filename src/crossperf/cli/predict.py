"""``crossperf predict``: the relative times of new runs on every platform that a model knows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from crossperf.cli.completion import completing, model_platforms
from crossperf.cli.options import CAN, NO_GPU, PATH, can_of, seed
from crossperf.cli.output import JSON, say, write_facts
from crossperf.records import Prediction

#: Runs of a table that are explained: each takes a second or so.
_EXPLAINED = 5


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
@CAN
@NO_GPU
@seed("the draws of --explain; predictions do not change with it")
@JSON
def predict(
    model_folder: Path | None,
    table: Path | None,
    explain: bool,
    platform: str | None,
    can: tuple[str, ...],
    no_gpu: bool,
    seed: int,
    json_file: Path | None,
    **how: Any,
) -> None:
    """Predict the relative times of the runs in TABLE on every platform that MODEL knows.

    Without MODEL, the model that comes with crossperf answers.
    """
    from crossperf.model import store
    from crossperf.prediction import answer
    from crossperf.report import terminal as show

    if table is None:  # click fills arguments from the left, and the one that may be left out stands there
        model_folder, table = None, model_folder
    if table is None:
        raise click.UsageError("Missing argument 'TABLE'.")
    model = store.load(model_folder)
    result = answer.predict(model, table, can=can_of(can, no_gpu, model.cells.platform_classes), **how)
    show.predictions(result)
    reasons = result.explain(platform, limit=_EXPLAINED, seed=seed) if explain or platform else None
    for reason in reasons.explanations if reasons else ():
        show.explanation(reason)
    notes = list(dict.fromkeys([*result.notes, *(reasons.notes if reasons else ())]))
    for note in notes:
        say(f"note: {note}")
    explained = {"explanations": [reason.to_json() for reason in reasons.explanations]} if reasons else {}
    predictions = map(Prediction.to_json, result.predictions)
    write_facts(json_file, lambda: {"notes": notes, "predictions": list(predictions), **explained})
