"""One encoder and a head for each task."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn


class Model(nn.Module):
    """f_θ: an encoder θ_GCN shared by all tasks, and a head for each task.

    Args:
        encoder: module from the inputs of examples to rows of embeddings.
        heads: modules by task name, each from (embeddings, examples) to the outputs of its task.
    """

    def __init__(self, encoder: nn.Module, heads: Mapping[str, nn.Module]) -> None:
        super().__init__()
        self.encoder = encoder
        self.heads = nn.ModuleDict(heads)

    def forward(self, task: str, examples: Any) -> Tensor:
        """Return the outputs of one task for some examples, whose embeddings may have been computed already."""
        h = self.encoder(examples.inputs) if examples.embeddings is None else examples.embeddings
        return self.heads[task](h, examples)
