"""Does this run look like what the model has learned from? A VAE's likelihood and distances in its latent space."""

# N cells, F features, K latent units, B known cells

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crossperf.arrays import Floats, Integers, Mask
from crossperf.model.fitted.network import Mlp, seen_beside
from crossperf.records import looks

#: What a feature that must agree weighs beside the others.
_MUST_AGREE = 1e3
_ROWS = 512


@dataclass(frozen=True)
class NoveltyScores:
    """How novel runs are: two measures, each 1 at the edge of the ordinary, and the share of each feature in them."""

    surprise_n: Floats
    distance_n: Floats
    by_feature_nf: Floats

    @property
    def score_n(self) -> Floats:
        """The greater of the two measures: up to 1 is ordinary."""
        return np.maximum(self.surprise_n, self.distance_n)

    @property
    def words(self) -> tuple[str, ...]:
        """A plain word for each run."""
        return tuple(looks(score) for score in self.score_n.tolist())


@dataclass(frozen=True)
class Novelty:
    """A VAE of standard features, the latent places of known cells, and what is ordinary among held-out workloads.

    ``row_b`` numbers the known cells among the training cells; ``sigma`` is the decoder's calibrated one.
    """

    encoder: Mlp
    decoder: Mlp
    sigma: float
    known_bk: Floats
    known_bf: Floats
    row_b: Integers
    ordinary_surprise: float
    ordinary_distance: float
    active_units: int

    def latent(self, standard_nf: Floats) -> Floats:
        """Return the latent mean of each cell: the first half of the encoder's outputs."""
        return self.encoder(seen_beside(standard_nf))[:, : self.known_bk.shape[1]].astype(np.float64)

    def impute(self, standard_nf: Floats, exact_f: Mask) -> Floats:
        """Return the cells with the values of the nearest known cell where nothing was measured.

        Nearest is meant in the features that were measured; those marked `exact` (the source) must agree before
        any other counts. Values of a real cell go together; what the decoder expects, feature by feature, does not.
        """
        completed_nf = standard_nf.copy()
        seen_nf = ~np.isnan(standard_nf)
        weight_f = np.where(exact_f, _MUST_AGREE, 1.0)
        first_u, number_n = distinct(seen_nf)
        for pattern, seen_f in enumerate(seen_nf[first_u]):
            rows = np.flatnonzero(number_n == pattern)
            asked, known = ((values * weight_f)[:, seen_f] for values in (standard_nf[rows], self.known_bf))
            near_n = np.concatenate(
                [_square_distance(asked[i : i + _ROWS], known).argmin(axis=1) for i in range(0, len(asked), _ROWS)]
            )
            completed_nf[np.ix_(rows, ~seen_f)] = self.known_bf[near_n][:, ~seen_f]
        return completed_nf

    def scores(self, standard_nf: Floats) -> NoveltyScores:
        """Return how each cell differs from what is known."""
        error_nf, latent_nk = self.surprise(standard_nf)
        nearest_n, distance_n = self.nearest(latent_nk)
        apart_nf = np.nan_to_num(standard_nf - self.known_bf[nearest_n]) ** 2
        return NoveltyScores(
            error_nf.mean(axis=1) / self.ordinary_surprise,
            distance_n / self.ordinary_distance,
            error_nf / self.ordinary_surprise + apart_nf,
        )

    def surprise(self, standard_nf: Floats) -> tuple[Floats, Floats]:
        """Return the squared error of the decoder in its own sigmas (twice its negative log likelihood), and places."""
        latent_nk = self.latent(standard_nf)
        decoded_nf = self.decoder(latent_nk.astype(np.float32)).astype(np.float64)
        return np.nan_to_num((standard_nf - decoded_nf) / self.sigma) ** 2, latent_nk

    def nearest(
        self, latent_nk: Floats, own_n: Integers | None = None, group_b: Integers | None = None
    ) -> tuple[Integers, Floats]:
        """Return the nearest known cell of each, and its distance; cells of a run's own group can be left out."""
        nearest, distance = [], []
        for start in range(0, len(latent_nk), _ROWS):
            rows = slice(start, start + _ROWS)
            apart_nb = _square_distance(latent_nk[rows], self.known_bk)
            if own_n is not None and group_b is not None:
                apart_nb[own_n[rows, None] == group_b[None]] = np.inf
            nearest.append(apart_nb.argmin(axis=1))
            distance.append(np.sqrt(apart_nb.min(axis=1)))
        return np.concatenate(nearest), np.nan_to_num(np.concatenate(distance), posinf=0.0)


def _square_distance(left_nf: Floats, right_bf: Floats) -> Floats:
    square_nb = left_nf @ right_bf.T
    square_nb *= -2.0
    square_nb += np.square(left_nf).sum(axis=1)[:, None]
    square_nb += np.square(right_bf).sum(axis=1)
    return np.maximum(square_nb, 0.0, out=square_nb)


def distinct(rows_nf: Mask) -> tuple[Integers, Integers]:
    """Return the number of one row of each pattern, and the pattern of each row."""
    packed_nb = np.packbits(rows_nf, axis=1)
    patterns = np.ascontiguousarray(packed_nb).view(f"V{packed_nb.shape[1]}").ravel()
    _, first_u, number_n = np.unique(patterns, return_index=True, return_inverse=True)
    return first_u, number_n
