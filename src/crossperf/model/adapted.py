"""A trained model with platforms added to it afterwards; what it knew before stays as it is."""

# N runs, K workloads measured on a new platform, F features, P platforms

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crossperf import model as models
from crossperf.errors import SettingsError
from crossperf.model.base import Floats, Predictor, State
from crossperf.model.head import Head
from crossperf.model.ranges import Forecast

_BASE = "adapted."
#: What an explanation asks a model for, and the base model may have.
_OF_BASE = ("background_bf_", "latent", "training_latent_nk_", "training_workload_n_")


class Adapted(Predictor):
    """A base model, and a head for each platform that was added to it.

    Made from a trained model with `added`, not with `fit`. The columns of the base model come first and are its
    own predictions, bit for bit; each head adds one. Runs can be asked about that were measured on the platforms
    of the base model, since it has learned no features of the others.
    """

    name: ClassVar[str] = "adapted"

    def __init__(self, base: str = "extra-trees", settings: Mapping[str, Any] | None = None) -> None:
        self.base = base
        self.settings = settings

    @classmethod
    def added(cls, to: Predictor, head: Head, platform: str) -> Adapted:
        """Return a trained model with one more platform, named for what the model says of itself."""
        before = to if isinstance(to, Adapted) else None
        base = before.base_ if before else to
        made = cls(base.name, base.get_params())
        heads = (*before.heads_, head) if before else (head,)
        return made._take(base, heads, (*before.added_, platform) if before else (platform,))

    def _take(self, base: Predictor, heads: tuple[Head, ...], added: tuple[str, ...]) -> Self:
        self.base_, self.heads_, self.added_ = base, heads, added
        self.n_features_in_ = base.n_features_in_
        self.n_outputs_, self._one_output_ = base.n_outputs_ + len(heads), False
        self.limits_2p_, self.contrast_limits_2p_ = base.limits_2p_, base.contrast_limits_2p_
        return self

    def __getattr__(self, name: str) -> Any:
        if name in _OF_BASE and "base_" in vars(self):
            return getattr(self.base_, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def n_added(self) -> int:
        """How many platforms were added after training."""
        return len(getattr(self, "heads_", ()))

    @property
    def summary_(self) -> dict[str, Any]:
        """What the base model says of itself, and how each added platform was learned."""
        return {
            **self.base_.summary_,
            "added": [
                {
                    "platform": platform,
                    "workloads": len(head.left_out_k),
                    "left_out_factor": float(np.exp(np.abs(head.left_out_k).mean())),
                }
                for platform, head in zip(self.added_, self.heads_, strict=True)
            ],
        }

    def fit(self, X: ArrayLike, y: ArrayLike, *, groups: ArrayLike | None = None, cpu: ArrayLike | None = None) -> Self:
        """Refuse: a model is trained first and adapted then."""
        raise SettingsError(
            "The model 'adapted' is not trained from runs. Train another with 'crossperf train', then add a platform "
            "with 'crossperf adapt'."
        )

    def predict(self, X: ArrayLike) -> Floats:
        """Return the log relative times of each cell: the base model's columns, then the platforms added."""
        base_np = self.base_.predict(X)
        features_nf = np.asarray(X, np.float64)
        return np.column_stack([base_np, *(head.predict(features_nf, base_np) for head in self.heads_)])

    @property
    def forecast(self) -> Callable[[ArrayLike], Forecast]:
        """The base model's forecast with the platforms added; models without one have none here."""
        of_base: Callable[[ArrayLike], Forecast] = self.base_.forecast

        def forecast(X: ArrayLike) -> Forecast:
            known = of_base(X)
            features_nf = np.asarray(X, np.float64)
            columns = [head.predict(features_nf, known.log_relative_np) for head in self.heads_]
            errors = [_head_errors(head, features_nf, known) for head in self.heads_]
            return replace(
                known,
                log_relative_np=np.column_stack([known.log_relative_np, *columns]),
                error_nbp=np.concatenate([known.error_nbp, *errors], axis=2),
            )

        return forecast

    def _get_state(self) -> State:
        state: State = {f"{_BASE}base.{name}": array for name, array in self.base_.get_state().items()}
        for i, head in enumerate(self.heads_):
            state |= {f"{_BASE}head{i}.{name}": array for name, array in head.state().items()}
        return state | {f"{_BASE}platforms": np.array(self.added_)}

    def _set_state(self, state: State) -> None:
        settings = {name: tuple(v) if isinstance(v, list) else v for name, v in (self.settings or {}).items()}
        base = models.make(self.base, **settings).set_state(_below(state, f"{_BASE}base."))
        added = tuple(str(platform) for platform in state[f"{_BASE}platforms"])
        heads = tuple(Head.from_state(_below(state, f"{_BASE}head{i}.")) for i in range(len(added)))
        self._take(base, heads, added)

    def _fit(self, features_nf: Floats, target_np: Floats, groups_n: NDArray[Any], cpu_n: NDArray[Any]) -> None:
        raise NotImplementedError  # `fit` refuses before

    def _predict(self, features_nf: Floats) -> Floats:
        return self.predict(features_nf)


def _head_errors(head: Head, features_nf: Floats, known: Forecast) -> Floats:
    """Return the errors of an added platform (N x B x 1): the base model's, as the head passes them on, and its own.

    The head's own are those of the workloads it was made from, each left out, dealt out in turn.
    """
    step = 1e-3
    there_n = head.predict(features_nf, known.log_relative_np)
    slope_np = np.stack(
        [
            (head.predict(features_nf, known.log_relative_np + step * unit_p) - there_n) / step
            for unit_p in np.eye(known.log_relative_np.shape[1])
        ],
        axis=1,
    )
    passed_nb = np.einsum("nbp,np->nb", known.error_nbp, slope_np)
    return np.asarray(passed_nb + np.resize(head.left_out_k, passed_nb.shape[1]))[:, :, None]


def _below(state: State, prefix: str) -> State:
    return {name.removeprefix(prefix): array for name, array in state.items() if name.startswith(prefix)}
