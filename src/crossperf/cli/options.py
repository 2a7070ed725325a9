"""Options that several commands share, and how their values are read."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crossperf.cli.completion import completing, table_platforms
from crossperf.cli.paths import PathOfCommand
from crossperf.errors import SettingsError, shortened

if TYPE_CHECKING:
    from crossperf.client import Client

PATH = PathOfCommand()
#: What a command writes, checked before it works.
NEW_FILE, NEW_FOLDER = PathOfCommand("file"), PathOfCommand("folder")
TABLE = click.argument("table", type=PATH)
MODEL = click.argument("model_folder", metavar="MODEL", type=PATH)
PLATFORMS = click.option(
    "--platforms", help="Use these platforms only: a,b,c.", shell_complete=completing(table_platforms, several=True)
)
FEATURES = click.option(
    "--features",
    type=click.Choice(["table1", "counters", "all"]),
    default="all",
    show_default=True,
    help="What models see: the counters of the paper's Table I, all counters, or raw events as well.",
)
SAMPLE = click.option(
    "--sample",
    type=click.IntRange(1),
    metavar="CELLS",
    help="Use about as many cells: whole workloads, drawn at random. A cell is a workload on a platform.",
)
SETTINGS = click.option(
    "--set", "settings", multiple=True, metavar="NAME=VALUE", help="A setting or fact; may be repeated."
)

CAN = click.option(
    "--can",
    multiple=True,
    metavar="CLASS|PLATFORM",
    help="There is a version of the program for these: a class such as gpu, or a platform; may be repeated.",
)


def _statuses(_: click.Context, __: click.Parameter, text: str) -> tuple[int, ...]:
    try:
        return tuple(int(number) for number in text.split(","))
    except ValueError:
        raise SettingsError(f"--success: found {text!r}, expected exit statuses with commas between: 0,1.") from None


SUCCESS = click.option(
    "--success", default="0", callback=_statuses, help="Exit statuses that are no failure: 0,1 for diff."
)
NO_GPU = click.option("--no-gpu", is_flag=True, help="There is no version of the program for a GPU.")


def can_of(given: Sequence[str], no_gpu: bool, classes: Sequence[str]) -> tuple[str, ...] | None:
    """Return where a program can run, of --can and --no-gpu; ``None`` where neither was given.

    >>> can_of(["cpu,gpu"], False, ["cpu"]), can_of([], True, ["cpu", "gpu"]), can_of([], False, ["cpu"])
    (('cpu', 'gpu'), ('cpu',), None)
    """
    if given and no_gpu:
        raise SettingsError("--no-gpu: found with --can, expected one of them: --can names all that can run it.")
    if no_gpu:
        return tuple(dict.fromkeys(own for own in classes if own != "gpu"))
    return tuple(word for text in given for word in text.replace(",", " ").split()) or None


def registry_path() -> Path:
    """Return where platforms are kept unless the user names another file."""
    settings = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return settings / "crossperf" / "platforms.json"


REGISTRY = click.option(
    "--file",
    "registry",
    type=PATH,
    envvar="CROSSPERF_PLATFORMS",
    default=registry_path,
    show_default="platforms.json in the folder for settings",
    help="Where platforms are kept.",
)


def seed(seeds: str) -> Callable[[Any], Any]:
    """Return the option ``--seed``, with what it seeds in this command."""
    return click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, help=f"Seed of {seeds}.")


SEED = seed("folds and models")
SERVER = click.option(
    "--server", metavar="URL", help="Ask a server ('crossperf serve'); a token is taken from CROSSPERF_TOKEN."
)


def client_of(server: str) -> Client:
    """Return a client of a server, with the token of the environment."""
    from crossperf.client import TOKEN_VARIABLE, Client

    return Client(server, os.environ.get(TOKEN_VARIABLE))


def overwrite(noun: str, place: str = "OUTPUT") -> Callable[[Any], Any]:
    """Return the flag ``--overwrite``, with what it replaces."""
    return click.option("--overwrite", is_flag=True, help=f"Replace the {noun} that stands at {place}.")


def names(text: str | None) -> list[str] | None:
    """Return the names of a list such as ``a,b,c``; ``None`` where there is none."""
    return [name.strip() for name in text.split(",") if name.strip()] if text else None


class FiniteRange(click.FloatRange):
    """A number within bounds; what is none (nan), which click takes, is refused."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number, checked."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is no finite number.", param, ctx)
        return number


def settings_of(pairs: Sequence[str]) -> dict[str, Any]:
    """Return settings from NAME=VALUE, each value read as a number, true, false, or text."""
    settings: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise SettingsError(f"--set: found {pair!r}, expected NAME=VALUE, such as latent_dim=8.")
        settings[name] = _read_value(value)
        if isinstance(settings[name], int) and abs(settings[name]) >= 1 << 63:
            raise SettingsError(f"--set: found {shortened(pair, 60)!r}, expected a number of at most 64 bits.")
    return settings


def _read_value(text: str) -> Any:
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for number in (int, float):
        with suppress(ValueError):
            return number(text)
    return text
