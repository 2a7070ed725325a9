"""Runs tables: read, append, check and describe them, in JSONL, CSV or Parquet alike.

``append`` and ``read_jsonl`` need nothing but the standard library; the columnar functions are loaded
when first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crossperf.runs.jsonl import append
from crossperf.runs.jsonl import read as read_jsonl
from crossperf.runs.rules import Problem

if TYPE_CHECKING:
    from crossperf.runs.summary import info
    from crossperf.runs.table import RunsTable, check, from_frame, from_runs, read

__all__ = ["Problem", "RunsTable", "append", "check", "from_frame", "from_runs", "info", "read", "read_jsonl"]


def __getattr__(name: str) -> Any:
    if name == "info":
        from crossperf.runs.summary import info

        return info
    if name in __all__:
        from crossperf.runs import table

        return getattr(table, name)
    raise AttributeError(f"module 'crossperf.runs' has no attribute {name!r}")
