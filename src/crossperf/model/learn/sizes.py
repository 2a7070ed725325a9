"""Settings of the seed's networks that follow from the numbers of cells and features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

#: Very short tables are trained for some steps at least.
FEWEST_STEPS = 200


@dataclass(frozen=True)
class Sized:
    """Settings for a table of some size; each can be chosen by hand instead."""

    epochs: float
    batch_size: int
    learning_rate: float
    latent_dim: int
    bins: int
    mask_share: float
    dropout: float

    @classmethod
    def of(cls, cells: int, features: int, chosen: Mapping[str, Any]) -> Self:
        """Return the settings of a table, but for those that were chosen.

        >>> Sized.of(1_000, 50, {}).epochs > Sized.of(10_000, 50, {}).epochs
        True
        >>> Sized.of(1_000, 50, {"epochs": 3}).epochs
        3
        """
        by_rule: dict[str, Any] = {
            "epochs": 100,
            "batch_size": 128,
            "learning_rate": 1e-3,
            "latent_dim": 64,
            "bins": 12,
            "mask_share": 0.0,
            "dropout": 0.1,
        }
        return cls(**{own.name: chosen.get(own.name, by_rule[own.name]) for own in fields(cls)})

    def steps(self, cells: int) -> int:
        """Return the optimizer steps in which so many cells are seen in every epoch.

        >>> Sized.of(1_280, 50, {"epochs": 40, "batch_size": 128}).steps(1_280)
        400
        """
        asked = round(self.epochs * cells / self.batch_size)
        return max(asked, round(FEWEST_STEPS * min(1.0, self.epochs / 20)), 1)
