"""What the shell offers for a word that is not complete yet: models, figures, formats, policies, platforms.

``eval "$(_CROSSPERF_COMPLETE=bash_source crossperf)"`` switches it on in bash; zsh and fish have sources of their own.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from crossperf.documents import MEGABYTE, parse, read_bytes
from crossperf.text import is_safe

Choices = Callable[[click.Context], Iterable[str]]
Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def completing(choices: Choices, *, several: bool = False) -> Completer:
    """Return an option's ``shell_complete``: offers `choices`, or nothing where gathering them goes wrong.

    With `several` the value is a list such as ``a,b``, of which the last name is completed.
    """

    def complete(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
        before, comma, word = incomplete.rpartition(",") if several else ("", "", incomplete)
        try:
            words = sorted(choices(context))
        except Exception:  # an error message in the middle of a command line helps nobody
            words = []
        taken = before.split(",")
        offered = (name for name in words if name.startswith(word) and name not in taken and is_safe(name))
        return [CompletionItem(before + comma + name) for name in offered]

    return complete


def _names_in(module: str, attribute: str, plugin: str | None = None) -> Choices:
    """Return the names of a mapping that is imported when the shell asks, with those of installed packages."""

    def choices(_: click.Context) -> list[str]:
        from crossperf import plugins

        own = getattr(importlib.import_module(f"crossperf.{module}"), attribute)
        return [*own, *(plugins.names(plugin) if plugin else [])]

    return choices


models = _names_in("model", "MODELS", "model")
figures = _names_in("report.figures", "FIGURES")
policies = _names_in("schedule.policies", "POLICIES", "policy")
formats = _names_in("importers.detect", "FORMATS")


def kept_platforms(context: click.Context) -> Iterable[str]:
    """Return the platforms that are kept on this machine."""
    from crossperf import platforms
    from crossperf.cli.options import registry_path

    parent = context.parent.params if context.parent else {}
    path = context.params.get("registry") or parent.get("registry") or registry_path()
    return [entry.name for entry in platforms.read(path)]


def _argument(context: click.Context, name: str) -> str:
    """Return a positional argument; click leaves them all in `args` where the last option lacks its value yet."""
    positions = [parameter.name for parameter in context.command.params if isinstance(parameter, click.Argument)]
    return str(context.params.get(name) or context.args[positions.index(name)])


def model_platforms(context: click.Context) -> Iterable[str]:
    """Return the platforms of the model that the command line names."""
    description = Path(_argument(context, "model_folder")) / "model.json"
    return [str(name) for name in parse(read_bytes(description, 256 * MEGABYTE))["platforms"]]


def table_platforms(context: click.Context) -> Iterable[str]:
    """Return the platforms of the table that the command line names."""
    from crossperf.runs import read

    return read(_argument(context, "table"), need_runtime=False).platforms
