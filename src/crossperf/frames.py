"""Results as data frames, in whichever library the user has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def to_frame(columns: Mapping[str, Any]) -> Any:
    """Return columns as a data frame of pandas where it is installed, otherwise of Polars.

    >>> to_frame({"platform": ["cpu-a", "gpu-a"], "relative_time": [1.0, 0.4]}).shape
    (2, 2)
    """
    try:
        import pandas
    except ImportError:
        import polars

        return polars.DataFrame(dict(columns))
    return pandas.DataFrame(dict(columns))
