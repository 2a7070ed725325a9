"""How commands speak: the result on stdout, the talk on stderr, the same facts as JSON."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crossperf.cli.options import NEW_FILE
from crossperf.errors import CrossperfError
from crossperf.files import refuse_unless_json, write_json
from crossperf.text import safe

if TYPE_CHECKING:
    from crossperf.dataset import Dataset
    from crossperf.workers import Progress

#: Where the context of a command keeps the file whose content goes to stdout.
_STDOUT = "crossperf.stdout"
_HELP = "Write the same facts as JSON; - is stdout, and the tables then go to stderr."


def JSON(function: Callable[..., Any]) -> Callable[..., Any]:  # noqa: N802, it stands among the options
    """Add the option ``--json FILE``; with ``-`` the facts go to stdout, and what people read to stderr."""

    @click.option("--json", "json_file", metavar="FILE", type=NEW_FILE, help=_HELP)
    @functools.wraps(function)
    def command(*arguments: Any, json_file: Path | None, **others: Any) -> Any:
        if str(json_file) != "-":
            if json_file is not None:
                refuse_unless_json(json_file)  # before the work whose facts it is to hold
            return function(*arguments, json_file=json_file, **others)
        with _json_on_stdout() as path:
            return function(*arguments, json_file=path, **others)

    return command


@contextlib.contextmanager
def _json_on_stdout() -> Iterator[Path]:
    """Yield a file whose content is written to stdout at the end; what is printed meanwhile goes to stderr."""
    stdout = sys.stdout
    with tempfile.TemporaryDirectory(prefix="crossperf-") as folder:
        path = Path(folder) / "facts.json"
        click.get_current_context().meta[_STDOUT] = path
        try:
            with contextlib.redirect_stdout(sys.stderr):
                yield path
        finally:
            if path.exists():
                stdout.write(path.read_text(encoding="utf-8"))
                stdout.flush()


def json_on_stdout() -> bool:
    """Tell whether stdout is kept for the facts."""
    return _STDOUT in click.get_current_context().meta


def write_facts(path: Path | None, facts: Callable[[], Mapping[str, Any]]) -> None:
    """Write facts where ``--json`` asks for them, and name the file; otherwise they are not even gathered."""
    if path:
        write_json(path, {"format": 1, **facts()})
        wrote(path)


@contextlib.contextmanager
def progress_bar(title: str) -> Iterator[Progress]:
    """Show on stderr how far a job is; a plain line a step where nobody watches a terminal."""
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda step, done, total: say(f"{title}: {done}/{total} {step}")
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(escape(safe(title)), total=None)

        def show(step: str, done: int, total: int) -> None:
            bar.update(
                task, description=escape(safe(f"{title}: {step}")), completed=done, total=total if total > 1 else None
            )

        yield show


@contextlib.contextmanager
def announced(sentence: str, after_s: float = 2.0) -> Iterator[None]:
    """Say a sentence on stderr if what is done meanwhile takes longer than `after_s` seconds."""
    timer = threading.Timer(after_s, say, [sentence])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextlib.contextmanager
def progress_line() -> Iterator[Callable[[str | None], None]]:
    """Yield what shows a text on the last line of a terminal, and takes it away for ``None``.

    Where stderr is no terminal nothing is shown. A text appears after a second at the earliest, and
    changes once a second at most.
    """
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    shown_at: float | None = None
    since = time.monotonic()

    def show(text: str | None) -> None:
        nonlocal shown_at, since
        now = time.monotonic()
        if text is None:
            if shown_at is not None:
                click.echo("\r\x1b[K", nl=False, err=True)
            shown_at, since = None, now
        elif now - since >= 1.0 and (shown_at is None or now - shown_at >= 1.0):
            width = shutil.get_terminal_size().columns - 1
            click.echo(f"\r\x1b[K{safe(text)[:width]}", nl=False, err=True)
            shown_at = now

    try:
        yield show
    finally:
        show(None)


def draw_into_files() -> None:
    """Let Matplotlib draw into files alone, whatever windows the user's environment asks it for."""
    os.environ["MPLBACKEND"] = "agg"


def refuse_existing(path: Path) -> None:
    """Raise where a file stands already."""
    if path.exists():
        raise CrossperfError(f"{path}: exists already and was left as it is. Choose another name with -o.")


def tell(*lines: object) -> None:
    """Print lines of the result to stdout; whatever names they hold, a terminal only shows them."""
    for line in lines:
        click.echo(safe(line))


def say(text: str) -> None:
    """Speak to the person at the terminal in one line, apart from the result."""
    click.echo(safe(text), err=True)


def tell_needs(models: Iterable[str], data: Dataset) -> None:
    """Say how much memory the fits of models take, before they start; nothing where that is little."""
    from crossperf.model import needs

    free = needs.free_bytes()
    for name in models:
        if words := needs.advice(name, len(data), data.X.shape[1], len(data.platforms), free):
            say(f"note: {words}")


def wrote(path: Path) -> None:
    """Name a file that was written."""
    context = click.get_current_context(silent=True)
    if context is None or context.meta.get(_STDOUT) != path:
        say(f"wrote {path}")
