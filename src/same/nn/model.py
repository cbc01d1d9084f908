"""One encoder and a head for each task."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from same.weighting import Weighting


class Model(nn.Module):
    """f_θ: an encoder θ_GCN shared by all tasks, and a head for each of them.

    Args:
        encoder: from the inputs of examples to rows of embeddings.
        heads: by the name of the task, from (embeddings, examples) to the task's outputs.
        weighting: how the losses of the tasks become one, where it is not their sum.
    """

    def __init__(self, encoder: nn.Module, heads: Mapping[str, nn.Module], weighting: Weighting | None = None) -> None:
        super().__init__()
        self.encoder = encoder
        self.heads = nn.ModuleDict(heads)
        self.weighting = weighting or Weighting()

    def forward(self, task: str, examples: Any) -> Tensor:
        """The outputs of one task for some examples, whose embeddings may be known already."""
        h = self.encoder(examples.inputs) if examples.embeddings is None else examples.embeddings
        return self.heads[task](h, examples)
