"""What a person sees of an evaluation: one page, and its figures as files."""

from __future__ import annotations

import importlib
from typing import Any

#: Where each name lives; loaded when first used, so that a table in a terminal needs no template.
_HOMES = {"FOLDER": "folder", "PAGE": "folder", "render": "page", "write": "folder"}
__all__ = ["FOLDER", "PAGE", "render", "write"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'crossperf.report' has no attribute {name!r}")
    return getattr(importlib.import_module(f"crossperf.report.{_HOMES[name]}"), name)
