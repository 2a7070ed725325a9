"""Settings of the seed's networks that follow from the numbers of cells and features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

#: Each cell is seen so often that all are seen this often together, within limits.
SEEN_CELLS, EPOCHS = 400_000, (40, 60)
#: Long tables are learned from in one pass or few: no more cells are seen together than this, whatever the limits.
MOST_SEEN = 4_000_000
#: Very short tables are trained for some steps at least, one epoch in 20 of them.
FEWEST_STEPS = 200
#: Steps in an epoch, from which the size of a batch follows within limits.
STEPS_IN_EPOCH, BATCHES = 30, (32, 128)
#: Silenced units cost where another run of the workload is known and must be met exactly; elsewhere they bring little.
DROPOUT = 0.0
#: Bins of a feature: fine ones tell workloads apart that hardly differ. Fewer where tables are short, or so wide or
#: long that the first layer would have too many inputs: within limits, as many as make this with the cells.
BINS, CELLS_IN_BIN, INPUTS, PLACES = (4, 120), 8, (2500, 6000), 20_000_000
SMOOTH_BINS, SMOOTH_DROPOUT = 8, 0.25
LATENT = (8, 64)
#: The rate falls with the width of the layers, so that the outputs of a layer change as much in a step.
HIGHEST_RATE = 3e-3


@dataclass(frozen=True)
class Sized:
    """Settings for a table of some size; each can be chosen by hand instead."""

    epochs: float
    batch_size: int
    learning_rate: float | None
    latent_dim: int
    bins: int
    mask_share: float
    dropout: float

    @classmethod
    def of(cls, cells: int, features: int, chosen: Mapping[str, Any]) -> Self:
        """Return the settings of a table, but for those that were chosen.

        >>> [Sized.of(cells, 50, {}).epochs for cells in (1_000, 8_000, 20_000, 4_000_000)]
        [60, 50, 40, 1.0]
        >>> Sized.of(1_000, 50, {"epochs": 3}).epochs
        3
        """
        by_rule: dict[str, Any] = {
            "epochs": min(within(EPOCHS, SEEN_CELLS // cells), MOST_SEEN / cells),
            "batch_size": within(BATCHES, 1 << (cells // STEPS_IN_EPOCH).bit_length() - 1 if cells >= 100 else 0),
            "learning_rate": None,
            "latent_dim": within(LATENT, features),
            "bins": within(BINS, min(cells // CELLS_IN_BIN, within(INPUTS, PLACES // cells) // max(features, 1))),
            # Hidden features are a loss where the counters asked about are those of training.
            "mask_share": 0.0,
            "dropout": DROPOUT,
        }
        return cls(**{own.name: chosen.get(own.name, by_rule[own.name]) for own in fields(cls)})

    @classmethod
    def candidates(cls, cells: int, features: int, chosen: Mapping[str, Any]) -> list[Self]:
        """Return sharp settings, which meet another run of a known workload exactly, and smooth ones for new workloads.

        >>> [(own.bins, own.dropout, own.epochs) for own in Sized.candidates(1_000, 40, {})]
        [(120, 0.0, 60), (8, 0.25, 30.0)]
        >>> len(Sized.candidates(1_000, 40, {"bins": 4, "dropout": 0.0, "epochs": 5}))
        1
        """
        sharp = cls.of(cells, features, chosen)
        smooth = {"bins": min(sharp.bins, SMOOTH_BINS), "dropout": SMOOTH_DROPOUT, "epochs": sharp.epochs / 2}
        return list(dict.fromkeys([sharp, cls.of(cells, features, smooth | dict(chosen))]))

    def rate_of(self, width: int) -> float:
        """Return the learning rate of layers of a width, unless one was chosen.

        >>> [Sized.of(1_000, 50, chosen).rate_of(1000) for chosen in ({}, {"learning_rate": 0.5})]
        [0.001, 0.5]
        """
        return min(HIGHEST_RATE, 1.0 / width) if self.learning_rate is None else self.learning_rate

    def steps(self, cells: int) -> int:
        """Return the optimizer steps for a number of cells.

        >>> Sized.of(1_280, 50, {"epochs": 40, "batch_size": 128}).steps(1_280)
        400
        """
        asked = round(self.epochs * cells / self.batch_size)
        return max(asked, round(FEWEST_STEPS * min(1.0, self.epochs / 20)), 1)


def within(limits: tuple[Any, Any], value: Any) -> Any:
    """Return a value, or the limit that it is beyond."""
    return min(max(value, limits[0]), limits[1])
