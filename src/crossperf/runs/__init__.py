"""Runs tables: read, append, check and describe them, in JSONL, CSV or Parquet.

``append``, ``read_jsonl``, ``check_runs`` and ``checked`` need nothing but the standard library; the functions over
columns are loaded when first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from crossperf.runs.checking import check_runs, checked
from crossperf.runs.jsonl import append
from crossperf.runs.jsonl import read as read_jsonl
from crossperf.runs.rules import Problem

if TYPE_CHECKING:
    from crossperf.runs.moving import add, convert
    from crossperf.runs.summary import TableInfo, info
    from crossperf.runs.table import RunsTable, check, from_frame, from_runs, read, read_runs

__all__ = [
    "Problem",
    "RunsTable",
    "TableInfo",
    "add",
    "append",
    "check",
    "check_runs",
    "checked",
    "convert",
    "from_frame",
    "from_runs",
    "info",
    "read",
    "read_jsonl",
    "read_runs",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'crossperf.runs' has no attribute {name!r}")
    homes = {"TableInfo": "summary", "info": "summary", "add": "moving", "convert": "moving"}
    return getattr(importlib.import_module(f"crossperf.runs.{homes.get(name, 'table')}"), name)
