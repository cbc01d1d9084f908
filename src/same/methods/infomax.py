"""Deep Graph Infomax (Veličković et al., ICLR 2019), as a self-supervised reference on the same encoder."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from same.graphs.batch import GraphBatch
from same.graphs.store import GraphStore
from same.tasks.task import GraphTask


def infomax_batch(
    store: GraphStore, tasks: Sequence[GraphTask], ids: np.ndarray, rng: np.random.Generator
) -> tuple[GraphBatch, GraphBatch]:
    """Graphs, and the same graphs with the inputs of their nodes shuffled."""
    batch = store.cut(ids)
    return batch, replace(batch, x=batch.x[torch.from_numpy(rng.permutation(batch.num_nodes))])


def add_infomax(model: nn.Module, width: int) -> None:
    """Gives a model PyG's discriminator between true and shuffled nodes."""
    from torch_geometric.nn import DeepGraphInfomax

    # The encoder is called by us: PyG's module would set it to its own initialisation.
    model.infomax = DeepGraphInfomax(width, nn.Identity(), summary=nn.Identity(), corruption=nn.Identity())


class Infomax:
    """Tell nodes of true graphs from nodes of shuffled ones by a summary of the true graphs; no labels are used."""

    def losses(self, model: Any, batch: tuple[GraphBatch, GraphBatch]) -> dict[str, Tensor]:
        """The one loss."""
        true, shuffled = (model.encoder(graphs) for graphs in batch)
        return {"infomax": model.infomax.loss(true, shuffled, torch.sigmoid(true.mean(dim=0)))}

    def adapted(self, model: Any, batch: Any, task: Any) -> dict[str, Tensor]:
        """Nothing is adapted."""
        return {}

    def evaluate(self, model: Any, batch: tuple[GraphBatch, GraphBatch]) -> dict[str, tuple[float, float]]:
        """The one loss, and its negative as the score."""
        with torch.no_grad():
            loss = self.losses(model, batch)["infomax"].item()
        return {"infomax": (loss, -loss)}
