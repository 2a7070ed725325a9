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

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crossperf import (
        adaptation,
        campaign,
        catalog,
        collect,
        dataset,
        datasets,
        errors,
        evaluation,
        importers,
        model,
        platforms,
        prediction,
        records,
        report,
        runs,
        schedule,
    )
    from crossperf.adaptation.adapt import Adaptation, adapt, suggest
    from crossperf.adaptation.result import Transfer
    from crossperf.adaptation.score import transfer
    from crossperf.collect.profile import profile
    from crossperf.dataset.features import Columns, Features
    from crossperf.dataset.pairing import Dataset, build
    from crossperf.evaluation.result import Evaluation, read_evaluation
    from crossperf.evaluation.run import evaluate
    from crossperf.evaluation.trained import assess
    from crossperf.model.default import Crossperf
    from crossperf.model.networks import Dnn, VaeDnn
    from crossperf.model.peers import ExtraTrees, Median, RandomForest, Ridge, XGBoost
    from crossperf.model.store import load
    from crossperf.model.trained import TrainedModel, train
    from crossperf.prediction.answer import Answer, predict
    from crossperf.prediction.explain import explain
    from crossperf.records import Prediction, Run
    from crossperf.runs.table import RunsTable, read_runs

__version__ = "0.1.0"

#: Where each name of the API lives.
_API = {
    "Adaptation": "adaptation.adapt",
    "Answer": "prediction.answer",
    "Columns": "dataset.features",
    "Crossperf": "model.default",
    "Dataset": "dataset.pairing",
    "Dnn": "model.networks",
    "Evaluation": "evaluation.result",
    "ExtraTrees": "model.peers",
    "Features": "dataset.features",
    "Median": "model.peers",
    "Prediction": "records",
    "RandomForest": "model.peers",
    "Ridge": "model.peers",
    "Run": "records",
    "RunsTable": "runs.table",
    "TrainedModel": "model.trained",
    "Transfer": "adaptation.result",
    "VaeDnn": "model.networks",
    "XGBoost": "model.peers",
    "adapt": "adaptation.adapt",
    "assess": "evaluation.trained",
    "build": "dataset.pairing",
    "evaluate": "evaluation.run",
    "explain": "prediction.explain",
    "load": "model.store",
    "predict": "prediction.answer",
    "profile": "collect.profile",
    "read_evaluation": "evaluation.result",
    "read_runs": "runs.table",
    "suggest": "adaptation.adapt",
    "train": "model.trained",
    "transfer": "adaptation.score",
}
__all__ = [
    "Adaptation",
    "Answer",
    "Columns",
    "Crossperf",
    "Dataset",
    "Dnn",
    "Evaluation",
    "ExtraTrees",
    "Features",
    "Median",
    "Prediction",
    "RandomForest",
    "Ridge",
    "Run",
    "RunsTable",
    "TrainedModel",
    "Transfer",
    "VaeDnn",
    "XGBoost",
    "__version__",
    "adapt",
    "adaptation",
    "assess",
    "build",
    "campaign",
    "catalog",
    "collect",
    "dataset",
    "datasets",
    "errors",
    "evaluate",
    "evaluation",
    "explain",
    "importers",
    "load",
    "model",
    "platforms",
    "predict",
    "prediction",
    "profile",
    "read_evaluation",
    "read_runs",
    "records",
    "report",
    "runs",
    "schedule",
    "suggest",
    "train",
    "transfer",
]


def __getattr__(name: str) -> Any:
    if name in _API:
        return getattr(importlib.import_module(f"crossperf.{_API[name]}"), name)
    if name in __all__:
        return importlib.import_module(f"crossperf.{name}")
    raise AttributeError(f"module 'crossperf' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
