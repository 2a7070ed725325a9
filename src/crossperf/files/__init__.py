"""The one careful way to write: regular files and folders that appear whole or not at all, and lines that are added."""

from __future__ import annotations

from crossperf.files.folders import Folder
from crossperf.files.lines import add_lines, refuse_unless_lines, settled_size
from crossperf.files.locks import alone, locked
from crossperf.files.replacing import (
    naming,
    refuse_unless_json,
    refuse_unless_ours,
    refuse_unless_reachable,
    refuse_unless_regular,
    whole,
    write_json,
)

__all__ = [
    "Folder",
    "add_lines",
    "alone",
    "locked",
    "naming",
    "refuse_unless_json",
    "refuse_unless_lines",
    "refuse_unless_ours",
    "refuse_unless_reachable",
    "refuse_unless_regular",
    "settled_size",
    "whole",
    "write_json",
]
