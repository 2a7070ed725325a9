"""crossperf: I ran this application here; how fast would it be over there?

>>> import crossperf as xp
>>> runs = xp.read_runs(xp.datasets.toy.make_runs(apps=3, inputs=2, seed=1))
>>> model = xp.train(runs, "extra-trees", n_estimators=20)
>>> model.predict(runs).predictions[0].relative_to
'source'

The verbs are functions of this package (`read_runs`, `build`, `evaluate`, `train`, `predict`, `adapt`, `profile`), the
rooms behind them are nouns (`dataset`, `evaluation`, `prediction`, ...). Importing the package loads none of them; each
is loaded when first used, and PyTorch only when a network learns.
"""

__version__ = "0.1.0"

#: The names of the API by the module that holds them; `__init__.pyi` declares them to editors and type checkers.
_API = {
    "adaptation.adapt": ("Adaptation", "adapt", "suggest"),
    "adaptation.result": ("Transfer",),
    "adaptation.score": ("transfer",),
    "collect.mark": ("include_path", "region"),
    "collect.profile": ("profile",),
    "dataset.features": ("Columns", "Features"),
    "dataset.pairing": ("Dataset", "build"),
    "evaluation.result": ("Evaluation", "read_evaluation"),
    "evaluation.run": ("evaluate",),
    "evaluation.trained": ("assess",),
    "model.default": ("Crossperf",),
    "model.networks": ("Dnn", "VaeDnn"),
    "model.peers": ("ExtraTrees", "Median", "RandomForest", "Ridge", "XGBoost"),
    "model.store": ("load",),
    "model.trained": ("TrainedModel", "train"),
    "prediction.answer": ("Answer", "predict"),
    "prediction.explain": ("explain",),
    "records": ("Prediction", "Run"),
    "runs.table": ("RunsTable", "read_runs"),
}
_ROOMS = [
    *("campaign", "catalog", "collect", "errors", "importers", "platforms", "records", "runs"),  # measure
    *("adaptation", "dataset", "datasets", "evaluation", "model", "prediction"),  # learn
    *("report", "schedule", "workers"),  # show and place, by many
]
_HOMES = {name: module for module, names in _API.items() for name in names}
__all__ = ["__version__", *_HOMES, *_ROOMS]  # noqa: PLE0604, they are strings


def __getattr__(name: str) -> object:
    import importlib

    if name in _HOMES:
        return getattr(importlib.import_module(f"crossperf.{_HOMES[name]}"), name)
    if name in _ROOMS:
        return importlib.import_module(f"crossperf.{name}")
    raise AttributeError(f"module 'crossperf' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
