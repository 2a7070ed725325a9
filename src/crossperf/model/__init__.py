"""The seed's model and its peers behind one `fit` and `predict`; saving and loading.

>>> make("ridge", penalties=(1.0,)).name
'ridge'
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from crossperf.errors import SettingsError, did_you_mean

if TYPE_CHECKING:
    from crossperf.model.adapted import Adapted
    from crossperf.model.base import Predictor
    from crossperf.model.default import Crossperf
    from crossperf.model.networks import Dnn, VaeDnn
    from crossperf.model.optional import CatBoost, LightGBM, RealMLP, TabM
    from crossperf.model.peers import ExtraTrees, Median, RandomForest, Ridge, XGBoost
    from crossperf.model.store import Saved, load, save

#: Where each model lives, by its name on the command line. Nothing is imported before it is asked for.
MODELS: dict[str, tuple[str, str]] = {
    "crossperf": ("default", "Crossperf"),
    "vae-dnn": ("networks", "VaeDnn"),
    "dnn": ("networks", "Dnn"),
    "random-forest": ("peers", "RandomForest"),
    "extra-trees": ("peers", "ExtraTrees"),
    "xgboost": ("peers", "XGBoost"),
    "lightgbm": ("optional", "LightGBM"),
    "catboost": ("optional", "CatBoost"),
    "tabm": ("optional", "TabM"),
    "realmlp": ("optional", "RealMLP"),
    "ridge": ("peers", "Ridge"),
    "median": ("peers", "Median"),
}
DEFAULT = "crossperf"

#: The package behind each optional peer; 'crossperf[more-peers]' brings them all.
PACKAGES = {"lightgbm": "lightgbm", "catboost": "catboost", "tabm": "pytabkit", "realmlp": "pytabkit"}

#: Models that are made from a trained one, and so are saved and loaded but not trained.
DERIVED: dict[str, tuple[str, str]] = {"adapted": ("adapted", "Adapted")}

_PLACES = {class_name: module for module, class_name in (MODELS | DERIVED).values()} | {
    "Predictor": "base",
    "Saved": "store",
    "load": "store",
    "save": "store",
}
__all__ = [
    "DEFAULT",
    "DERIVED",
    "MODELS",
    "PACKAGES",
    "Adapted",
    "CatBoost",
    "Crossperf",
    "Dnn",
    "ExtraTrees",
    "LightGBM",
    "Median",
    "Predictor",
    "RandomForest",
    "RealMLP",
    "Ridge",
    "Saved",
    "TabM",
    "VaeDnn",
    "XGBoost",
    "load",
    "make",
    "save",
]


def make(name: str, **settings: Any) -> Predictor:
    """Return a new, untrained model by its name; settings that it does not have are refused by name."""
    if name not in MODELS | DERIVED:
        raise SettingsError(
            f"Found the model {name!r}{did_you_mean(name, MODELS)}, expected one of {', '.join(MODELS)}.",
            model=name,
        )
    module, class_name = (MODELS | DERIVED)[name]
    kind = getattr(importlib.import_module(f"crossperf.model.{module}"), class_name)
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


def __getattr__(name: str) -> Any:
    if name in _PLACES:
        return getattr(importlib.import_module(f"crossperf.model.{_PLACES[name]}"), name)
    raise AttributeError(f"module 'crossperf.model' has no attribute {name!r}")
