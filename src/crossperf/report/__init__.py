"""What a person sees of an evaluation: one page, and its figures as files."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["FOLDER", "PAGE", "render", "write"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'crossperf.report' has no attribute {name!r}")
    # Loaded when first used, so that a table in a terminal needs no template.
    return getattr(importlib.import_module("crossperf.report.page"), name)
