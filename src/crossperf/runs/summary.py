"""What a runs table holds: applications, platforms, completeness, repeats, noise, missing counters."""

from __future__ import annotations

from typing import Any

import polars as pl

from crossperf.records import OK
from crossperf.runs.rules import COUNTER_PREFIX
from crossperf.runs.table import RunsTable


def info(table: RunsTable) -> dict[str, Any]:
    """Return the facts of a table as JSON's own types.

    Noise is the coefficient of variation of the repeats of a cell: median and 90th percentile over the
    cells that have repeats, or ``None`` where none has.
    """
    ok = table.succeeded
    cells = ok.group_by("app", "input", "platform").agg(
        pl.len().alias("runs"), (pl.col("runtime_s").std() / pl.col("runtime_s").mean()).alias("variation")
    )
    workloads = cells.group_by("app", "input").agg(pl.len().alias("platforms"))
    n_platforms = cells["platform"].n_unique()
    failures = table.frame.filter(pl.col("status") != OK)["status"].value_counts().sort("status")
    return {
        "path": table.path,
        "fingerprint": table.fingerprint,
        "runs": table.frame.height,
        "failed": dict(failures.iter_rows()),
        "apps": ok["app"].n_unique(),
        "workloads": workloads.height,
        "complete_workloads": workloads.filter(pl.col("platforms") == n_platforms).height,
        "cells": cells.height,
        "repeats": {
            "min": cells["runs"].min(),
            "median": cells["runs"].median(),
            "max": cells["runs"].max(),
        },
        "noise": _noise(cells),
        "platforms": [_platform(table, name, cells) for name in sorted(ok["platform"].unique())],
        "counters": len(table.counters),
        "missing_counters": _missing(table, ok),
    }


def _noise(cells: pl.DataFrame) -> dict[str, float | None]:
    repeated = cells["variation"].drop_nulls().drop_nans()
    return {"median": repeated.median(), "p90": repeated.quantile(0.9)}  # type: ignore[dict-item]


def _platform(table: RunsTable, name: str, cells: pl.DataFrame) -> dict[str, Any]:
    own = cells.filter(pl.col("platform") == name)
    classes = (
        table.frame.filter(pl.col("platform") == name)["platform_class"].drop_nulls().unique().to_list()
        if "platform_class" in table.frame.columns
        else []
    )
    return {
        "name": name,
        "class": classes[0] if classes else None,
        "runs": int(own["runs"].sum()),
        "workloads": own.height,
        "noise": _noise(own)["median"],
    }


def _missing(table: RunsTable, ok: pl.DataFrame) -> dict[str, dict[str, float]]:
    """Return the share of runs that lack a counter, by counter and platform, where any does."""
    if not table.counters or ok.height == 0:
        return {}
    shares = ok.group_by("platform").agg(pl.col(name).is_null().mean() for name in table.counters).sort("platform")
    return {
        name.removeprefix(COUNTER_PREFIX): {
            platform: share for platform, share in zip(shares["platform"], shares[name], strict=True) if share > 0
        }
        for name in table.counters
        if (shares[name] > 0).any()
    }
