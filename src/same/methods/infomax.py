"""Deep Graph Infomax (Veličković et al., ICLR 2019), a self-supervised reference on the same encoder."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from same.graphs.batch import GraphBatch
from same.graphs.store import GraphStore
from same.methods.base import Method, Scores
from same.tasks.task import GraphTask

Pair = tuple[GraphBatch, GraphBatch]


def shuffled_batch(store: GraphStore, tasks: Sequence[GraphTask], ids: np.ndarray, rng: np.random.Generator) -> Pair:
    """Draw graphs, and the same graphs with the inputs of their nodes shuffled."""
    batch = store.cut(ids)
    return batch, replace(batch, x=batch.x[torch.from_numpy(rng.permutation(batch.num_nodes))])


class Infomax(Method):
    """Tell nodes of true graphs from nodes of shuffled ones by a summary of the true graphs; no labels are used."""

    name: ClassVar[str] = "infomax"
    draw = staticmethod(shuffled_batch)
    has_heads: ClassVar[bool] = False

    def losses(self, model: Any, batch: Pair) -> dict[str, Tensor]:
        """Return the one loss."""
        true, shuffled = (model.encoder(graphs) for graphs in batch)
        return {self.name: model.infomax.loss(true, shuffled, torch.sigmoid(true.mean(dim=0)))}

    def evaluate(self, model: Any, batch: Pair) -> Scores:
        """Return the one loss, and its negative as the score."""
        with torch.no_grad():
            loss = self.losses(model, batch)[self.name].item()
        return {self.name: (loss, -loss)}

    def extend(self, model: nn.Module, width: int) -> None:
        """Add PyG's discriminator between true and shuffled nodes."""
        from torch_geometric.nn import DeepGraphInfomax

        # We call the encoder ourselves: PyG's module would reset its initialisation.
        model.infomax = DeepGraphInfomax(width, nn.Identity(), summary=nn.Identity(), corruption=nn.Identity())
