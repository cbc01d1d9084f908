"""Methods: from a model and an episode to the losses to minimise."""

from same.methods.adapt import adapt, descend, learn_inner_rates, test
from same.methods.classical import Classical
from same.methods.infomax import Infomax
from same.methods.same import SAME, esame, isame, outer_losses
from same.methods.traditional import Traditional

__all__ = [
    "SAME",
    "Classical",
    "Infomax",
    "Traditional",
    "adapt",
    "descend",
    "esame",
    "isame",
    "learn_inner_rates",
    "outer_losses",
    "test",
]
