"""What the commands share: their common options, how they read settings, and how they speak."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crossperf.errors import CrossperfError, SettingsError

if TYPE_CHECKING:
    from crossperf.evaluation.run import Progress

TABLE = click.argument("table", type=click.Path(path_type=Path))
JSON = click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write the same facts as JSON.")
SEED = click.option(
    "--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="Seed of folds and models."
)
PLATFORMS = click.option("--platforms", help="Use these platforms only: a,b,c.")
SETTINGS = click.option(
    "--set", "settings", multiple=True, metavar="NAME=VALUE", help="A setting or fact; may be repeated."
)


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


def names(text: str | None) -> list[str] | None:
    """Return the names of a list such as ``a,b,c``; ``None`` where there is none."""
    return [name.strip() for name in text.split(",") if name.strip()] if text else None


def settings_of(pairs: Sequence[str]) -> dict[str, Any]:
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


def refuse_existing(path: Path) -> None:
    """Raise where a file stands already."""
    if path.exists():
        raise CrossperfError(f"{path}: exists already and was left as it is. Choose another name with -o.")


def say(text: str) -> None:
    """Speak to the person at the terminal, apart from the result."""
    click.echo(text, err=True)


def wrote(path: Path) -> None:
    """Name a file that was written."""
    say(f"wrote {path}")
