"""The seed's model and its peers behind one `fit` and `predict`; saving and loading.

>>> make("ridge", penalties=(1.0,)).name
'ridge'
"""

from __future__ import annotations

import functools
import importlib
from typing import TYPE_CHECKING, Any

from crossperf import plugins
from crossperf.errors import SettingsError, did_you_mean

if TYPE_CHECKING:
    from crossperf.model.base import Predictor
    from crossperf.model.default import Crossperf
    from crossperf.model.networks import Dnn, VaeDnn
    from crossperf.model.optional import CatBoost, LightGBM, RealMLP, TabM
    from crossperf.model.peers import ExtraTrees, Median, RandomForest, Ridge, XGBoost
    from crossperf.model.store import load, save
    from crossperf.model.trained import TrainedModel, train
    from crossperf.model.wrapped import Wrapped

#: Where each model lives, by its name on the command line. Nothing is imported before it is asked for.
MODELS: dict[str, str] = {
    "crossperf": "default.Crossperf",
    "vae-dnn": "networks.VaeDnn",
    "dnn": "networks.Dnn",
    "random-forest": "peers.RandomForest",
    "extra-trees": "peers.ExtraTrees",
    "xgboost": "peers.XGBoost",
    "lightgbm": "optional.LightGBM",
    "catboost": "optional.CatBoost",
    "tabm": "optional.TabM",
    "realmlp": "optional.RealMLP",
    "ridge": "peers.Ridge",
    "median": "peers.Median",
}
DEFAULT = "crossperf"

#: The package behind each optional peer; 'crossperf[more-peers]' brings them all.
PACKAGES = {"lightgbm": "lightgbm", "catboost": "catboost", "tabm": "pytabkit", "realmlp": "pytabkit"}

_PLACES = {place.partition(".")[2]: place for place in MODELS.values()} | {
    "Predictor": "base.Predictor",
    "TrainedModel": "trained.TrainedModel",
    "Wrapped": "wrapped.Wrapped",
    "load": "store.load",
    "save": "store.save",
    "train": "trained.train",
}
__all__ = ["DEFAULT", "MODELS", "PACKAGES", "Predictor", "TrainedModel", "Wrapped", "load", "make", "save", "train"]
__all__ += ["CatBoost", "Crossperf", "Dnn", "ExtraTrees", "LightGBM", "Median", "RandomForest", "RealMLP", "Ridge"]
__all__ += ["TabM", "VaeDnn", "XGBoost"]


def make(name: str, **settings: Any) -> Predictor:
    """Return a new, untrained model by its name; settings that it does not have are refused by name.

    Parameters
    ----------
    name
        One of `MODELS`, or a model that an installed package offers under the entry points ``crossperf.models``: a
        class or a function without arguments that returns an object with ``fit`` and ``predict``.
    """
    if name not in MODELS:
        from crossperf.model.wrapped import maker_of

        offered = plugins.load(name, "model", known=MODELS)
        return maker_of(functools.partial(offered, **settings) if settings and callable(offered) else offered)()
    kind = _class_of(MODELS[name])
    known = kind._get_param_names()
    for setting in settings:
        if setting not in known:
            raise SettingsError(
                f"The model {name!r} has no setting {setting!r}{did_you_mean(setting, known)}, "
                f"expected one of {', '.join(known) or 'none'}.",
                setting=setting,
            )
    model: Predictor = kind(**settings)
    return model


def _class_of(place: str) -> Any:
    module, _, name = place.partition(".")
    return getattr(importlib.import_module(f"crossperf.model.{module}"), name)


def __getattr__(name: str) -> Any:
    if name in _PLACES:
        return _class_of(_PLACES[name])
    raise AttributeError(f"module 'crossperf.model' has no attribute {name!r}")
