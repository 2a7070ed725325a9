"""The names of the API with their types, for editors and type checkers; `__init__.py` loads each when first used."""

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
    workers,
)
from crossperf.adaptation.adapt import Adaptation, adapt, suggest
from crossperf.adaptation.result import Transfer
from crossperf.adaptation.score import transfer
from crossperf.collect.mark import include_path, region
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

__version__: str

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
    "include_path",
    "load",
    "model",
    "platforms",
    "predict",
    "prediction",
    "profile",
    "read_evaluation",
    "read_runs",
    "records",
    "region",
    "report",
    "runs",
    "schedule",
    "suggest",
    "train",
    "transfer",
    "workers",
]
