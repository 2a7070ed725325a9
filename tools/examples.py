"""Tells the reference that a doctest is an example: docstrings here need no heading that every reader can see."""

from __future__ import annotations

import re
from typing import Any

import griffe

_FIRST_DOCTEST = re.compile(r"(?<=\n\n)(?=>>> )")


class Examples(griffe.Extension):
    """Puts a heading before the first doctest of a docstring, so that it is not read as part of `Parameters`."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of an object after it was read."""
        if obj.docstring is not None:
            obj.docstring.value = _FIRST_DOCTEST.sub("Examples\n--------\n", obj.docstring.value, count=1)
