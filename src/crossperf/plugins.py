"""Objects of the user's own, by name: from ``FILE.py:NAME``, or from an entry point of an installed package.

A package offers a model or a policy in its ``pyproject.toml``::

    [project.entry-points."crossperf.policies"]
    emptiest = "their_package.policies:emptiest"
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from crossperf.errors import SettingsError, did_you_mean, some_of

#: The group of entry points for each kind of object.
GROUPS = {"model": "crossperf.models", "policy": "crossperf.policies"}


def load(spec: str, kind: str, *, argument: str | None = None, known: Iterable[str] = ()) -> object:
    """Return the object that ``FILE.py:NAME`` or an installed entry point names.

    Parameters
    ----------
    kind
        ``model`` or ``policy``: which entry points are looked at.
    argument
        What errors call the setting; ``None`` calls it by its kind.
    known
        Names that the caller knows besides, for the error where nothing has this name.

    Raises
    ------
    SettingsError
        There is no such file or name, or the code failed while it was imported.

    >>> load("no-such-policy", "policy", known=["fastest"])
    Traceback (most recent call last):
    crossperf.errors.SettingsError: policy: found 'no-such-policy', expected FILE.py:NAME or one of fastest.
    """
    argument = argument or kind
    if is_file_spec(spec):
        return _from_file(spec, argument)
    installed = _installed(kind)
    if spec not in installed:
        names = [*known, *sorted(installed)]
        also = f" or one of {some_of(names, 30)}" if names else ""
        raise _refusal(argument, f"found {spec!r}{did_you_mean(spec, names)}, expected FILE.py:NAME{also}.")
    try:
        return installed[spec].load()
    except Exception as error:  # it is another's code, and may raise anything
        cause = f"({type(error).__name__}: {error})"
        raise _refusal(argument, f"{spec!r} ({installed[spec].value}) cannot be imported {cause}.") from error


def is_file_spec(spec: str) -> bool:
    """Tell whether a text is written as ``FILE.py:NAME``.

    >>> is_file_spec("./mine.py:make"), is_file_spec("ridge")
    (True, False)
    """
    return ".py:" in spec


def names(kind: str) -> list[str]:
    """Return the names that installed packages offer for a kind, sorted."""
    return sorted(_installed(kind))


def _installed(kind: str) -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUPS[kind])}


def _from_file(spec: str, argument: str) -> object:
    file, _, name = spec.rpartition(":")
    path = Path(file).expanduser()
    if not path.is_file():
        raise _refusal(argument, f"{file}: no such file, expected FILE.py:NAME. Check the path.")
    # The module has a name that hides no other; dataclasses and pickle look a class up by it.
    module_name = f"crossperf_plugin_{path.stem}"
    module_spec = importlib.util.spec_from_file_location(module_name, path.resolve())
    if module_spec is None or module_spec.loader is None:
        raise _refusal(argument, f"{path}: is no Python file, expected FILE.py:NAME.")
    sys.modules[module_name] = module = importlib.util.module_from_spec(module_spec)
    try:
        module_spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # it is the user's own, and may raise anything
        del sys.modules[module_name]
        raise _refusal(argument, f"{path} cannot be imported ({type(error).__name__}: {error}).") from error
    if name not in vars(module):
        public = [word for word in vars(module) if not word.startswith("_")]
        raise _refusal(argument, f"{file} defines no {name!r}{did_you_mean(name, public)}, expected FILE.py:NAME.")
    return vars(module)[name]


def _refusal(argument: str, sentence: str) -> SettingsError:
    return SettingsError(f"{argument}: {sentence}", argument=argument)
