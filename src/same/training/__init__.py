"""Training: the loop around any method, and the rules that act between its steps."""

from same.training.averaging import Averaging
from same.training.checkpoint import Checkpoint
from same.training.loop import DivergedError, GivenUpTraining, InterruptedTraining, Rule, Schedule, Training, train
from same.training.progress import Report
from same.training.stopping import EarlyStopping, TimeLimit, Validation

__all__ = ["Averaging", "Checkpoint", "DivergedError", "EarlyStopping", "GivenUpTraining", "InterruptedTraining"]
__all__ += ["Report", "Rule", "Schedule", "TimeLimit", "Training", "Validation", "train"]
