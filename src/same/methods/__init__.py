"""Methods: from a model and an episode to the losses to minimise."""

from same.methods.adapt import adapt, test
from same.methods.same import SAME, esame, isame, outer_losses

__all__ = ["SAME", "adapt", "esame", "isame", "outer_losses", "test"]
