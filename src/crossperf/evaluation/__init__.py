"""How good models are: metrics, cross-validation, held-out predictions, the latent map, trained models."""

from crossperf.evaluation.result import Evaluation
from crossperf.evaluation.result import read_evaluation as read
from crossperf.evaluation.run import ablation, evaluate
from crossperf.evaluation.scores import ModelScores, Scoreboard, Scores

__all__ = ["Evaluation", "ModelScores", "Scoreboard", "Scores", "ablation", "evaluate", "read"]
