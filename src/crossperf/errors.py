"""What can go wrong, by name, with the facts of each case as attributes.

A message says where, what was found, what was expected and what to do. Two places catch these errors:
the command line turns one into an exit code, a server into a status.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any


class CrossperfError(Exception):
    """The common ancestor; keyword arguments become attributes for the program that catches.

    >>> CrossperfError("runs.csv, row 3: no app", row=3).row
    3
    """

    def __init__(self, message: str, **facts: Any) -> None:
        super().__init__(shortened(message).translate(_ONE_LINE))
        self.facts = facts
        for name, value in facts.items():
            setattr(self, name, value)


#: A name that holds the end of a line starts no line of its own in a sentence.
_ONE_LINE = {ord("\n"): "\\n", ord("\r"): "\\r"}


def shortened(text: str, most: int = 2_000) -> str:
    """Return a text of at most `most` characters: of a longer one the start, and the end, where the advice stands.

    >>> shortened("a" * 30, 20)
    'aaaaaaaaaaaaaaa … aa'
    """
    return text if len(text) <= most else f"{text[: most * 3 // 4]} … {text[-(most // 4 - 3) :]}"


class RunsTableError(CrossperfError):
    """A runs table cannot be used; ``problems`` lists everything that must be fixed."""


class DatasetError(CrossperfError):
    """A sound runs table does not hold what this question needs."""


class SettingsError(CrossperfError, ValueError):
    """A setting of a model or a command is out of range; a ``ValueError`` too, as scikit-learn expects."""


class ModelFolderError(CrossperfError):
    """A saved model cannot be read or written."""


class PredictError(CrossperfError):
    """A model cannot answer for these runs."""


class CollectError(CrossperfError):
    """A command cannot be measured here."""


class ProfileFileError(CrossperfError):
    """A profiler's file cannot be read; ``path`` names it."""


class PlatformError(CrossperfError):
    """A platform is not known, or its entry cannot be used."""


class WorkerError(CrossperfError):
    """A worker cannot be reached, was lost, or is not fit for the work."""


class MissingDependencyError(CrossperfError):
    """An optional package is needed here; the message names the pip command."""


#: Longer words are compared with nothing: that takes a time that grows with the square of their length.
_LONGEST_WORD = 200


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return `` (did you mean 'x'?)`` for the known word nearest to `word`, or an empty string.

    >>> did_you_mean("platfrom", ["app", "platform"])
    " (did you mean 'platform'?)"
    >>> did_you_mean("zebra", ["app", "platform"])
    ''
    """
    if len(word) > _LONGEST_WORD:
        return ""
    by_lower_case = {name.lower(): name for name in known if len(name) <= _LONGEST_WORD}
    nearest = difflib.get_close_matches(word.lower(), by_lower_case, n=1, cutoff=0.7)
    return f" (did you mean {by_lower_case[nearest[0]]!r}?)" if nearest else ""


def some_of(names: Iterable[str], limit: int = 6) -> str:
    """Return the first names of a list in words, with a count of those left out.

    >>> some_of(["a", "b", "c"], limit=2)
    'a, b and 1 more'
    """
    listed = list(names)
    shown = ", ".join(listed[:limit])
    left_out = len(listed) - limit
    return f"{shown} and {left_out:,} more" if left_out > 0 else shown


def several(count: int, word: str) -> str:
    """Return a count with its noun.

    >>> several(1, "run"), several(1200, "run")
    ('1 run', '1,200 runs')
    """
    return f"{count:,} {word}{'' if count == 1 else 's'}"
