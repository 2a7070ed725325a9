"""A feature matrix that never travels without its column names.

Everything that turns measurements into model inputs goes through `Features`: the columns know by name which of them
are counters, events, rates, the runtime, and the one-hot source platform. Nobody counts offsets or guesses by values.
"""

# N cells, F features

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from crossperf.arrays import Floats, Integers, Mask
from crossperf.catalog import COUNTERS
from crossperf.errors import SettingsError, did_you_mean, some_of
from crossperf.runs.events import EVENT_PREFIX

#: What a column is.
COUNTER, EVENT, RUN_TIME, SOURCE, RATE, SHARE = "counter", "event", "runtime", "source", "rate", "share"
#: The kinds that a profiler measures.
MEASURED = (COUNTER, EVENT)
RUNTIME = "runtime_s"
SOURCE_PREFIX = "source="
RATE_SUFFIX, SHARE_SUFFIX = "/s", "/instruction"
#: The counter that events are set against: what a program does for each instruction, whatever the size of its input.
INSTRUCTIONS = "instructions"
#: The counters of the paper's Table I.
TABLE_1 = tuple(name for name, counter in COUNTERS.items() if not counter.optional)
#: Which measurements become features: those of Table I, all counters, or raw events as well.
FeatureSet = Literal["table1", "counters", "all"]
FEATURE_SETS: tuple[FeatureSet, ...] = ("table1", "counters", "all")


@dataclass(frozen=True)
class Columns:
    """The names and kinds of the columns of a feature matrix, in their order.

    >>> Columns.of(["instructions"], ["cpu-a", "gpu-a"]).names
    ('instructions', 'runtime_s', 'source=cpu-a', 'source=gpu-a')
    """

    names: tuple[str, ...]
    kinds: tuple[str, ...]

    @classmethod
    def of(cls, measured: Sequence[str], sources: Sequence[str]) -> Columns:
        """Return the columns of cells: counters and events, the runtime on the source, the source platform one-hot."""
        names = (*measured, RUNTIME, *(SOURCE_PREFIX + name for name in sources))
        kinds = [EVENT if name.startswith(EVENT_PREFIX) else COUNTER for name in measured]
        return cls(names, (*kinds, RUN_TIME, *[SOURCE] * len(sources)))

    @classmethod
    def named(cls, names: Sequence[str]) -> Columns:
        """Return columns whose kinds follow from their names, as a data frame brings them.

        >>> Columns.named(["uses_avx", "event.valgrind.Ir", "runtime_s", "source=cpu-a"]).kinds
        ('counter', 'event', 'runtime', 'source')
        """
        return cls(tuple(names), tuple(map(_kind_of, names)))

    @classmethod
    def unnamed(cls, count: int) -> Columns:
        """Return columns of a matrix without names: all are counters, and no source or runtime is known."""
        return cls(tuple(f"x{i}" for i in range(count)), (COUNTER,) * count)

    @property
    def are_unnamed(self) -> bool:
        """Whether these are the columns of a bare matrix."""
        return self == Columns.unnamed(len(self))

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def counters(self) -> tuple[str, ...]:
        """The counters, by name."""
        return self._of_kind(COUNTER)

    @cached_property
    def measured(self) -> tuple[str, ...]:
        """The counters and events, by name."""
        return self._of_kind(*MEASURED)

    @cached_property
    def events(self) -> tuple[str, ...]:
        """The raw events, by name."""
        return self._of_kind(EVENT)

    @cached_property
    def sources(self) -> tuple[str, ...]:
        """The platforms that a run may have been measured on."""
        return tuple(name.removeprefix(SOURCE_PREFIX) for name in self._of_kind(SOURCE))

    def _of_kind(self, *kinds: str) -> tuple[str, ...]:
        return tuple(name for name, own in zip(self.names, self.kinds, strict=True) if own in kinds)

    def without(self, dropped: Collection[str]) -> Columns:
        """Return the columns but for some."""
        kept = [(name, kind) for name, kind in zip(self.names, self.kinds, strict=True) if name not in dropped]
        return Columns(tuple(name for name, _ in kept), tuple(kind for _, kind in kept))

    @cached_property
    def _kind_f(self) -> NDArray[np.str_]:
        return np.array(self.kinds, dtype=np.str_)

    @cached_property
    def _masks(self) -> dict[tuple[str, ...], Mask]:
        return {}

    def mask(self, *kinds: str) -> Mask:
        """Return which columns are of these kinds."""
        if kinds not in self._masks:
            mask_f = np.isin(self._kind_f, kinds)
            mask_f.setflags(write=False)  # every caller gets the same
            self._masks[kinds] = mask_f
        return self._masks[kinds]

    @cached_property
    def derived(self) -> Columns:
        """These columns, each measurement once more as a rate per second, and each event as a share of instructions.

        There are no rates where no runtime is known, and no shares without a counter of instructions.
        """
        rates = [name + RATE_SUFFIX for name in self.measured] if RUN_TIME in self.kinds else []
        shares = [name + SHARE_SUFFIX for name in self.events] if INSTRUCTIONS in self.counters else []
        kinds = [RATE] * len(rates) + [SHARE] * len(shares)
        return Columns((*self.names, *rates, *shares), (*self.kinds, *kinds))


def _kind_of(name: str) -> str:
    starts = {SOURCE_PREFIX: SOURCE, EVENT_PREFIX: EVENT}
    own = (kind for start, kind in starts.items() if name.startswith(start))
    return RUN_TIME if name == RUNTIME else next(own, COUNTER)


@dataclass(frozen=True, eq=False)
class Features:
    """Cells as a model sees them: a matrix, its columns, and the group of each row.

    A counter or an event that was not measured is NaN. Indexing selects rows, so that scikit-learn's splitters and
    ``cross_val_score`` take it as their ``X``; ``numpy.asarray`` returns the matrix alone.

    Parameters
    ----------
    workload_n, app_n
        The workload and the application of each row, as numbers: what a split keeps whole. ``None``: not known.
    cpu_n
        Which rows were measured on a platform of class ``cpu``. ``None``: not known.
    noise_np
        How far two measurements of the targets of each row lie apart: log times of the earlier half of the visits less
        those of the later half. NaN, or ``None`` for all: not known.

    >>> features = Features.of(np.array([[5e9]]), np.array([2.0]), np.array([1]), Columns.of(["flop"], ["a", "b"]))
    >>> features.column("runtime_s"), features.source_n
    (array([2.]), array([1]))
    """

    values_nf: Floats
    columns: Columns
    workload_n: Integers | None = None
    app_n: Integers | None = None
    cpu_n: Mask | None = None
    noise_np: Floats | None = None

    @classmethod
    def of(cls, measured_nc: Floats, runtime_s_n: Floats, source_n: Integers, columns: Columns) -> Features:
        """Return the features of cells: counters and events as measured, the runtime, the source platform one-hot."""
        values_nf = np.zeros((len(runtime_s_n), len(columns)))
        values_nf[:, : len(columns.measured)] = measured_nc.reshape(len(values_nf), len(columns.measured))
        return cls.filled(values_nf, runtime_s_n, source_n, columns)

    @classmethod
    def filled(cls, values_nf: Floats, runtime_s_n: Floats, source_n: Integers, columns: Columns) -> Features:
        """Return features in a matrix that holds what was measured, and zeros where the rest is written here."""
        runtime = len(columns.measured)
        values_nf[:, runtime] = runtime_s_n
        values_nf[np.arange(len(values_nf)), runtime + 1 + source_n] = 1.0
        return cls(values_nf, columns)

    @classmethod
    def joined(cls, parts: Sequence[Features]) -> Features:
        """Return the rows of several with the same columns, one after the other, without their groups."""
        return cls(np.concatenate([part.values_nf for part in parts]), parts[0].columns)

    @classmethod
    def read(cls, X: Any) -> Features:
        """Return features from what scikit-learn takes as ``X``: features, a data frame with names, or a matrix."""
        if isinstance(X, Features):
            return X
        names = getattr(X, "columns", None)
        values_nf = np.ascontiguousarray(X, np.float64)
        known = names is not None and all(isinstance(name, str) for name in names)
        return cls(values_nf, Columns.named(list(names)) if known else Columns.unnamed(values_nf.shape[1]))  # type: ignore[arg-type]

    def __len__(self) -> int:
        return len(self.values_nf)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.values_nf, dtype=dtype) if copy else np.asarray(self.values_nf, dtype=dtype)

    def __getitem__(self, rows: Any) -> Features:
        rows = rows[0] if isinstance(rows, tuple) else rows
        rows = [rows] if isinstance(rows, int | np.integer) else rows
        of_rows = (self.workload_n, self.app_n, self.cpu_n, self.noise_np)
        return Features(self.values_nf[rows], self.columns, *(None if own is None else own[rows] for own in of_rows))

    def __repr__(self) -> str:
        counters, events, sources = self.columns.counters, self.columns.events, self.columns.sources
        return (
            f"Features: {len(self):,} cells x {len(self.columns):,} columns\n"
            f"  {len(counters)} counters: {some_of(counters)}\n"
            + (f"  {len(events)} events: {some_of(events)}\n" if events else "")
            + f"  measured on {some_of(sources) or 'unknown platforms'}"
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.values_nf), self.values_nf.shape[1]

    @property
    def dtype(self) -> Any:
        """The type of the numbers."""
        return self.values_nf.dtype

    def column(self, name: str) -> Floats:
        """Return one column by its name."""
        return np.asarray(self.values_nf[:, self.columns.names.index(name)])

    @cached_property
    def measured_nc(self) -> Floats:
        """The counters and events alone."""
        return self.values_nf[:, self.columns.mask(*MEASURED)]

    @cached_property
    def source_n(self) -> Integers:
        """The number of each row's source platform, in the order of ``columns.sources``; -1 where none is marked."""
        one_hot_np = np.nan_to_num(self.values_nf[:, self.columns.mask(SOURCE)])
        if not one_hot_np.shape[1]:
            return np.full(len(self), -1)
        return np.where(one_hot_np.any(axis=1), one_hot_np.argmax(axis=1), -1)

    @cached_property
    def log_time_n(self) -> Floats:
        """The log of each row's runtime in seconds; NaN where it is not known."""
        if RUN_TIME not in self.columns.kinds:
            return np.full(len(self), np.nan)
        runtime_s_n = self.values_nf[:, self.columns.mask(RUN_TIME)][:, 0]
        return np.log(np.where(runtime_s_n > 0, runtime_s_n, np.nan))

    def derived(self) -> Features:
        """Return the features with rates and shares beside them: by runtime, and events by instructions."""
        parts_nf, columns = [self.values_nf], self.columns
        if RUN_TIME in columns.kinds:
            parts_nf.append(_ratio(self.measured_nc, self.values_nf[:, columns.mask(RUN_TIME)]))
        if columns.events and INSTRUCTIONS in columns.counters:
            parts_nf.append(_ratio(self.values_nf[:, columns.mask(EVENT)], self.column(INSTRUCTIONS)[:, None]))
        return replace(self, values_nf=np.column_stack(parts_nf), columns=columns.derived)

    def matched(self, columns: Columns) -> Features:
        """Return the features in the order of a model's columns, matched by name; raise where one is absent.

        Features without names (a bare matrix) are taken by position.
        """
        if self.columns == columns:
            return self
        if self.columns == Columns.unnamed(len(columns)):
            return replace(self, columns=columns)
        if self.columns.are_unnamed:
            raise SettingsError(
                f"X: found {len(self.columns)} columns without names, expected the {len(columns)} of the fitted model "
                f"({some_of(columns.names)}).",
                argument="X",
            )
        place = {name: i for i, name in enumerate(self.columns.names)}
        absent = [name for name in columns.names if name not in place]
        if absent:
            raise SettingsError(
                f"X: found no column {absent[0]!r}{did_you_mean(absent[0], place)}, expected the {len(columns)} "
                f"columns of the fitted model ({some_of(columns.names)}). Add it, NaN where it was not measured.",
                argument="X",
                columns=absent,
            )
        # In the same layout as measured: matrix products in single precision round by it.
        values_nf = np.ascontiguousarray(self.values_nf[:, [place[name] for name in columns.names]])
        return replace(self, values_nf=values_nf, columns=columns)

    def to_frame(self) -> Any:
        """Return the matrix as a data frame of pandas where it is installed, otherwise of Polars."""
        from crossperf.runs.frames import to_frame

        return to_frame(dict(zip(self.columns.names, self.values_nf.T.tolist(), strict=True)))


def _ratio(values_nc: Floats, whole_n1: Floats) -> Floats:
    """Return values over what they are a part of; NaN where that is 0 or was not measured."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio_nc = values_nc / whole_n1
    # Boosted trees take numbers of single precision.
    most = float(np.finfo(np.float32).max)
    return np.where(np.isfinite(ratio_nc), np.clip(ratio_nc, -most, most), np.nan)
