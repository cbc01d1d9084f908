"""Training: the loop around any method, and the rules that act between its steps.

>>> from same.training import Schedule
>>> Schedule(epochs=10, steps_per_epoch=4).steps
40
"""

from same.training.averaging import Averaging
from same.training.checkpoint import Checkpoint
from same.training.loop import DivergedError, GivenUpTraining, InterruptedTraining, Rule, Schedule, Training, train
from same.training.progress import Report
from same.training.stopping import EarlyStopping, Validation

__all__ = [
    "Averaging",
    "Checkpoint",
    "DivergedError",
    "EarlyStopping",
    "GivenUpTraining",
    "InterruptedTraining",
    "Report",
    "Rule",
    "Schedule",
    "Training",
    "Validation",
    "train",
]
