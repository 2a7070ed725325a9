"""Tables that come with the package: runs drawn from a known law, and the measured testbed."""

import importlib
from typing import Any

__all__ = ["testbed", "toy"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return importlib.import_module(f"crossperf.datasets.{name}")
    raise AttributeError(f"module 'crossperf.datasets' has no attribute {name!r}")
