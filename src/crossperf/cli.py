"""One command per stage, one sentence per error: the result first, then doubts, then the files written."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crossperf import __version__
from crossperf.errors import CrossperfError, SettingsError

if TYPE_CHECKING:
    from crossperf.dataset import Dataset
    from crossperf.evaluate import Evaluation, Progress
    from crossperf.model.base import Predictor
    from crossperf.predict import Answer

TABLE = click.argument("table", type=click.Path(path_type=Path))
JSON = click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write the same facts as JSON.")
SEED = click.option(
    "--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="Seed of folds and models."
)
PLATFORMS = click.option("--platforms", help="Use these platforms only: a,b,c.")
SETTINGS = click.option(
    "--set", "settings", multiple=True, metavar="NAME=VALUE", help="A setting of the model; may be repeated."
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; what goes wrong is one sentence and an exit code."""
    try:
        status = commands.main(arguments, prog_name="crossperf", standalone_mode=False)
    except CrossperfError as error:
        _fail(str(error))
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        sys.exit(error.exit_code)
    except click.ClickException as error:
        _fail(f"{error.format_message()} 'crossperf --help' and 'crossperf COMMAND --help' tell more.", error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        _fail("interrupted; nothing was written.", status=130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(141)
    except OSError as error:
        _fail(f"{error.filename or 'a file'}: {error.strerror or error}.")
    else:
        sys.exit(status if isinstance(status, int) else 0)


def _fail(sentence: str, status: int = 1) -> None:
    click.echo(f"error: {sentence}", err=True)
    sys.exit(status)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, package_name="crossperf")
def commands() -> None:
    """I ran this application here; how fast would it be over there?"""


@commands.group()
def runs() -> None:
    """Look at a runs table: what is wrong with it, and what it holds."""


@runs.command("check")
@TABLE
@JSON
def runs_check(table: Path, json_file: Path | None) -> int:
    """List every problem of TABLE, each with its place and what to do."""
    from crossperf.files import write_json
    from crossperf.runs.table import check

    problems = check(table)
    for problem in problems:
        click.echo(f"{problem.severity}: {table}: {problem}")
    errors = sum(problem.severity == "error" for problem in problems)
    verdict = "cannot be used" if errors else "can be used"
    click.echo(f"{table} {verdict}; errors: {errors:,}, warnings: {len(problems) - errors:,}")
    if json_file:
        write_json(json_file, {"format": 1, "problems": [problem.to_json() for problem in problems]})
        _wrote(json_file)
    return 1 if errors else 0


@runs.command("info")
@TABLE
@JSON
def runs_info(table: Path, json_file: Path | None) -> None:
    """Tell what TABLE holds: applications, platforms, completeness, repeats, noise, missing counters."""
    from crossperf import show
    from crossperf.files import write_json
    from crossperf.runs.summary import info
    from crossperf.runs.table import read

    sound = read(table, need_runtime=False)
    facts = info(sound)
    show.info(facts)
    for problem in sound.warnings:
        _say(f"warning: {problem}")
    if json_file:
        write_json(json_file, {"format": 1, **facts})
        _wrote(json_file)


@commands.command()
@TABLE
@click.option("--split", type=click.Choice(["row", "workload", "app"]), default="workload", show_default=True)
@click.option("--models", default="vae-dnn,random-forest", show_default=True, help="Models to compare: a,b,c.")
@click.option("--folds", default=5, show_default=True, help="Number of folds.")
@SEED
@PLATFORMS
@click.option("--ablation", is_flag=True, help="Compare vae-dnn with each of its stages switched off.")
@JSON
def evaluate(
    table: Path,
    split: Any,
    models: str,
    folds: int,
    seed: int,
    platforms: str | None,
    ablation: bool,
    json_file: Path | None,
) -> None:
    """Fit models on the training part of each fold of TABLE and score the part held out."""
    from crossperf import dataset, evaluate, show

    names = _names(models)
    if not names:
        raise SettingsError(f"--models: found {models!r}, expected names of models, such as vae-dnn,ridge.")
    data = dataset.build(table, platforms=_names(platforms))
    with progress_bar(f"evaluating, split {split}") as progress:
        result = evaluate.evaluate(
            data,
            evaluate.ablation(seed) if ablation else names,
            split=split,
            n_folds=folds,
            seed=seed,
            progress=progress,
        )
    show.evaluation(result)
    _doubts(result)
    if json_file:
        result.write(json_file)
        _wrote(json_file)


@commands.command()
@TABLE
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="The model folder to make.")
@click.option("--model", "model_name", default="vae-dnn", show_default=True, help="Which model to train.")
@SEED
@PLATFORMS
@SETTINGS
@click.option("--overwrite", is_flag=True, help="Replace the model that stands at OUTPUT.")
def train(
    table: Path,
    output: Path,
    model_name: str,
    seed: int,
    platforms: str | None,
    settings: tuple[str, ...],
    overwrite: bool,
) -> None:
    """Train a model on all of TABLE and save it as a folder."""
    from crossperf import dataset, model, show
    from crossperf.model import store

    chosen = _settings(settings)
    made = model.make(model_name, **chosen)
    if "seed" in made.get_params() and "seed" not in chosen:
        made.set_params(seed=seed)
    store.refuse_unless_free(output, overwrite=overwrite)
    data = dataset.build(table, platforms=_names(platforms))
    with progress_bar(f"training {model_name}") as progress:
        progress(f"{len(data):,} cells", 0, 1)
        _learn(made, data, settings)
    store.save(store.Saved.of(made, data), output, overwrite=overwrite)
    show.training(made, data)
    _wrote(output)


@commands.command()
@click.argument("model_folder", metavar="MODEL", type=click.Path(path_type=Path))
@TABLE
@click.option("--relative-to", default="source", show_default=True, help="source, fastest, or a platform.")
@JSON
def predict(model_folder: Path, table: Path, relative_to: str, json_file: Path | None) -> None:
    """Predict the relative times of the runs in TABLE on every platform that MODEL knows."""
    from crossperf import show
    from crossperf.files import write_json
    from crossperf.model import store
    from crossperf.predict import predict

    answer: Answer = predict(store.load(model_folder), table, relative_to=relative_to)
    show.predictions(answer)
    for note in answer.notes:
        _say(f"note: {note}")
    if json_file:
        predictions = [prediction.to_json() for prediction in answer.predictions]
        write_json(json_file, {"format": 1, "notes": list(answer.notes), "predictions": predictions})
        _wrote(json_file)


@commands.command()
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help=".jsonl, .csv or .parquet")
@click.option("--apps", default=12, show_default=True)
@click.option("--inputs", default=8, show_default=True, help="Inputs of each application.")
@click.option("--platforms", default=4, show_default=True)
@click.option("--repeats", default=3, show_default=True)
@click.option("--noise", default=0.03, show_default=True, help="Standard deviation of log runtime.")
@SEED
def toy(output: Path, apps: int, inputs: int, platforms: int, repeats: int, noise: float, seed: int) -> None:
    """Write a runs table drawn from a known law, for tests and first steps."""
    from crossperf.toy import make_table

    _refuse_existing(output)
    make_table(apps, inputs, platforms, repeats, noise, seed).write(output)
    _wrote(output)


@commands.command()
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default=Path("demo"),
    show_default=True,
    help="Where files go.",
)
@SEED
def demo(output: Path, seed: int) -> None:
    """Run the main job end to end on made-up runs: check, evaluate, train, predict."""
    from crossperf.demo import run

    run(output, seed, progress_bar)


@contextmanager
def progress_bar(title: str) -> Iterator[Progress]:
    """Show on stderr how far a job is; a plain line a step where nobody watches a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda step, done, total: click.echo(f"{title}: {done}/{total} {step}", err=True)
        return
    text = TextColumn("{task.description}")
    with Progress(
        text, BarColumn(), TimeElapsedColumn(), TimeRemainingColumn(), console=console, transient=True
    ) as bar:
        task = bar.add_task(title, total=None)
        yield lambda step, done, total: bar.update(
            task, description=f"{title}: {step}", completed=done, total=total if total > 1 else None
        )


def _names(text: str | None) -> list[str] | None:
    return [name.strip() for name in text.split(",") if name.strip()] if text else None


def _learn(made: Predictor, data: Dataset, settings: Sequence[str]) -> None:
    """Fit a model; what a library underneath says about a value of --set becomes one sentence."""
    try:
        made.learn(data)
    except CrossperfError:
        raise
    except (ValueError, TypeError) as error:
        if not settings:
            raise
        reason = str(error).splitlines()[0].rstrip(".")
        found = f"--set {' --set '.join(settings)}"
        raise SettingsError(f"{found}: the model {made.name!r} does not fit with it ({reason}). Correct it.") from error


def _settings(pairs: Sequence[str]) -> dict[str, Any]:
    """Return settings from NAME=VALUE, each value read as a number, true, false, or text."""
    found: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise SettingsError(f"--set: found {pair!r}, expected NAME=VALUE, such as latent_dim=8.")
        found[name] = _read_value(value)
    return found


def _read_value(text: str) -> Any:
    words: dict[str, Any] = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    readers: tuple[Callable[[str], Any], ...] = (int, float)
    for reader in readers:
        try:
            return reader(text)
        except ValueError:
            continue
    return text


def _refuse_existing(path: Path) -> None:
    if path.exists():
        raise CrossperfError(f"{path}: exists already and was left as it is. Choose another name with -o.")


def _doubts(result: Evaluation) -> None:
    for doubt in result.doubts:
        _say(f"doubt: {doubt}")


def _say(text: str) -> None:
    click.echo(text, err=True)


def _wrote(path: Path) -> None:
    _say(f"wrote {path}")
