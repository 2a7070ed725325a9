"""What a person sees of an evaluation: one page, and its figures as files."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["FOLDER", "PAGE", "render", "write"]

_HOMES = {"FOLDER": "folder", "PAGE": "folder", "render": "page", "write": "folder"}


def __getattr__(name: str) -> Any:
    # The page needs Jinja2, the terminal's tables next door do not: whoever asks for the page pays for it.
    if name in _HOMES:
        return getattr(importlib.import_module(f"crossperf.report.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'crossperf.report' has no attribute {name!r}")
