"""Training: the loop around any method, and the rules that act between its steps."""

from same.training.averaging import Averaging as Averaging
from same.training.checkpoint import Checkpoint as Checkpoint
from same.training.loop import DivergedError as DivergedError
from same.training.loop import GivenUpTraining as GivenUpTraining
from same.training.loop import InterruptedTraining as InterruptedTraining
from same.training.loop import Rule as Rule
from same.training.loop import Schedule as Schedule
from same.training.loop import Training as Training
from same.training.loop import train as train
from same.training.progress import Report as Report
from same.training.stopping import EarlyStopping as EarlyStopping
from same.training.stopping import Validation as Validation
