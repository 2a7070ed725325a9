"""Chooses among raw events on training cells: those that vary, repeat no other column, and tell most of the targets.

Counters are a choice that was made already; events are whatever a tool counts, many of them the terms of a counter or
the same count under two names.
"""

# N cells, F features, E events, P platforms

from __future__ import annotations

import numpy as np

from crossperf.arrays import Floats, Integers, Mask
from crossperf.dataset.features import EVENT, MEASURED, Columns, Features
from crossperf.model.fitted.scales import Encoder, fill_targets

#: An event whose logarithm correlates with that of another column by this much, wherever it was measured, repeats it.
SAME = 0.9999
#: The most events that are kept; of more, those that correlate best with the targets.
MOST_EVENTS = 96
#: Cells that are looked at, evenly spaced: more change no choice.
_CELLS = 4000


def selected(features: Features, target_np: Floats) -> Features:
    """Return the features without events that tell nothing of their own; the same where there are no events.

    The columns that are left are a model's own, so that what it is asked later is matched to them by name.
    """
    if not features.columns.events:
        return features
    rows_n = np.linspace(0, len(features) - 1, min(len(features), _CELLS)).astype(np.int64)
    return features.matched(_columns(features[rows_n], target_np[rows_n]))


def _columns(features: Features, target_np: Floats) -> Columns:
    columns = features.columns
    measured_f, event_f = np.flatnonzero(columns.mask(*MEASURED)), columns.mask(EVENT)
    kept = _different(features.values_nf[:, measured_f], np.flatnonzero(event_f[measured_f]))
    events_e = measured_f[kept]
    if len(events_e) > MOST_EVENTS:
        share_e = _explained(features.values_nf[:, events_e], target_np)
        events_e = events_e[np.argsort(-share_e, kind="stable")[:MOST_EVENTS]]
    names = {columns.names[f] for f in events_e}
    return columns.without({name for name in columns.events if name not in names})


def _different(values_nc: Floats, events_e: Integers) -> Integers:
    """Return the events that vary and repeat neither a counter nor an event before them."""
    known_nc = ~np.isnan(values_nc)
    standing_c = np.ones(values_nc.shape[1], bool)
    standing_c[events_e] = False
    # Events with the same gaps are compared at once; of a tool all are counted together, so that patterns are few.
    patterns, number_e = np.unique(known_nc[:, events_e].T, axis=0, return_inverse=True)
    correlation = {u: _correlation(values_nc[known_n]) for u, known_n in enumerate(patterns) if known_n.sum() > 1}
    for event, pattern in zip(events_e, number_e.ravel().tolist(), strict=True):
        if pattern in correlation:
            own_c = correlation[pattern][event]
            standing_c[event] = own_c[event] > 0 and not (np.abs(own_c[standing_c]) > SAME).any()
    return events_e[standing_c[events_e]]


def _correlation(values_nc: Floats) -> Floats:
    """Return the correlations of columns on their log scales; 0 for one that is constant or has a gap."""
    standard_nc = np.nan_to_num(_standard(_log(values_nc)))
    whole_c: Mask = np.asarray(~np.isnan(values_nc).any(axis=0))
    return np.asarray(standard_nc.T @ standard_nc / len(values_nc) * whole_c * whole_c[:, None])


def _explained(values_ne: Floats, target_np: Floats) -> Floats:
    """Return how much of the targets each event tells: its mean squared correlation with them, a gap at the mean."""
    standard_ne, standard_np = (np.nan_to_num(_standard(own)) for own in (_log(values_ne), fill_targets(target_np)))
    return np.asarray(np.square(standard_ne.T @ standard_np / len(values_ne)).mean(axis=1))


def _log(values_nf: Floats) -> Floats:
    return Encoder.fit(values_nf).log(values_nf)


def _standard(values_nf: Floats) -> Floats:
    known_nf: Mask = ~np.isnan(values_nf)
    count_f = np.maximum(known_nf.sum(axis=0), 1)
    centred_nf = values_nf - np.where(known_nf, values_nf, 0.0).sum(axis=0) / count_f
    spread_f = np.sqrt(np.where(known_nf, np.square(centred_nf), 0.0).sum(axis=0) / count_f)
    return np.asarray(centred_nf / np.where(spread_f > 1e-9, spread_f, np.inf))
