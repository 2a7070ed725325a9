"""crossperf: I ran this application here; how fast would it be over there?

The stages are modules: ``runs``, ``dataset``, ``model``, ``evaluate``, ``report``; ``predict`` and ``schedule``.
Importing the package loads none of them; each is loaded when first used, and torch only when a network is.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

__all__ = [
    "__version__",
    "adaptation",
    "catalog",
    "dataset",
    "datasets",
    "errors",
    "evaluation",
    "model",
    "prediction",
    "records",
    "report",
    "runs",
    "schedule",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return importlib.import_module(f"crossperf.{name}")
    raise AttributeError(f"module 'crossperf' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
