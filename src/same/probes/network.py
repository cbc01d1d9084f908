"""The network probe: a task's head, trained on frozen embeddings (question Q3 and the transfer figures)."""

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from same.graphs.batch import GraphBatch
from same.graphs.examples import Examples
from same.graphs.flat import pointers, ranges
from same.linear.rows import column_scaling
from same.seeding import forked_torch
from same.tasks.task import GraphTask

Array = np.ndarray


@dataclass(frozen=True)
class NetworkProbe:
    """Adam on the task's loss, with early stopping on the validation graphs.

    Node embeddings are standardised on the training graphs: columns of unit-norm rows are so small that a hundred
    epochs would not be enough.

    Args:
        max_epochs: largest number of passes over the training graphs.
        patience: epochs without a better validation loss before training stops.
        batch_size: graphs per step.
        lr: learning rate of Adam.
    """

    max_epochs: int = 100
    patience: int = 15
    batch_size: int = 32
    lr: float = 2e-3

    def fit_predict(
        self, task: GraphTask, train: Examples, validation: Examples, test: Examples, rng: np.random.Generator
    ) -> Array:
        """[n] predictions for the test examples: classes, decision values, or numbers.

        Args:
            task: task with the head and the loss.
            train: training examples, with embeddings like the others.
            validation: examples for early stopping.
            test: examples to predict.
            rng: generator of the initialisation and the order of graphs.
        """
        train, validation, test = standardised(train, validation, test)
        assert train.embeddings is not None
        with forked_torch(int(rng.integers(2**63))):
            head: Any = task.head(train.embeddings.shape[1])
        optimiser = torch.optim.Adam(head.parameters(), self.lr, fused=True)
        best, best_loss, since = head.state_dict(), float("inf"), 0
        for _ in range(self.max_epochs):
            order = rng.permutation(train.inputs.num_graphs)
            for ids in np.array_split(order, max(1, round(len(order) / self.batch_size))):
                batch = take(train, ids)
                if not len(batch.y):
                    continue
                loss = task.loss(head(batch.embeddings, batch), batch)
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
            with torch.no_grad():
                now = task.loss(head(validation.embeddings, validation), validation).item()
            since += 1
            if now < best_loss:
                best, best_loss, since = {name: value.clone() for name, value in head.state_dict().items()}, now, 0
            if since >= self.patience:
                break
        head.load_state_dict(best)
        with torch.no_grad():
            output = head(test.embeddings, test)
        return (output.argmax(dim=1) if task.kind == "classes" else output).numpy()


def standardised(train: Examples, *others: Examples) -> list[Examples]:
    """The same examples with embeddings whose columns have mean 0 and standard deviation 1 on the training nodes."""
    rows = [cast(Tensor, examples.embeddings) for examples in (train, *others)]
    mean, std = (torch.from_numpy(values).float() for values in column_scaling(rows[0].numpy()))
    return [replace(each, embeddings=(h - mean) / std) for each, h in zip((train, *others), rows, strict=True)]


def take(examples: Examples, ids: Array) -> Examples:
    """The examples of some graphs of a batch, with their embeddings.

    Args:
        examples: examples of a batch: one label per graph, per node or per pair of nodes.
        ids: places of the graphs in the batch.
    """
    batch: GraphBatch = examples.inputs
    assert examples.embeddings is not None
    starts = batch.node_ptr.numpy()
    sizes = np.diff(starts)[ids]
    nodes = ranges(starts[:-1][ids], sizes)
    part = GraphBatch(
        x=batch.x[nodes],
        edges=batch.edges[:, :0],
        node_ptr=torch.from_numpy(pointers(sizes)),
        edge_ptr=torch.zeros(len(ids) + 1, dtype=torch.int64),
        graph_ids=batch.graph_ids[ids],
    )
    taken = replace(examples, inputs=part, embeddings=examples.embeddings[nodes])
    if examples.index is None:
        return replace(taken, y=examples.y[nodes if len(examples.y) == batch.num_nodes else ids])
    place = np.full(batch.num_nodes, -1)
    place[nodes] = np.arange(len(nodes))
    index = torch.from_numpy(place[examples.index.numpy()])
    inside = (index >= 0).reshape(-1, index.shape[-1]).all(dim=0)
    return replace(taken, y=examples.y[inside], index=index[..., inside])
