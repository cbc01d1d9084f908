"""Linear models of embeddings: exact, and chosen by validation loss."""

from same.linear.choice import GRID, Choose, LinearModel, fit_linear, predict_linear
from same.linear.head import Features, LinearHead, fit_head
from same.linear.ridge import Ridge
from same.linear.svm import LinearSVM

__all__ = ["GRID", "Choose", "Features", "LinearHead", "LinearModel", "LinearSVM", "Ridge"]
__all__ += ["fit_head", "fit_linear", "predict_linear"]
