"""The network probe: a task's own head, trained on frozen embeddings (question Q3 and the transfer figures)."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from same.graphs.batch import GraphBatch, pointers, ranges
from same.probes.svm import column_scaling
from same.tasks.task import Examples, GraphTask

Array = np.ndarray


@dataclass(frozen=True)
class NetworkProbe:
    """Adam on the task's loss, with early stopping on the validation graphs.

    Node embeddings are standardised on the training graphs: columns of rows of length 1 are so small that a hundred
    epochs would not be enough.

    Args:
        max_epochs: passes over the training graphs, at most.
        patience: epochs without a better validation loss before it stops.
        batch_size: graphs a step.
        lr: of Adam.
    """

    max_epochs: int = 100
    patience: int = 15
    batch_size: int = 32
    lr: float = 2e-3

    def fit_predict(
        self, task: GraphTask, train: Examples, validation: Examples, test: Examples, rng: np.random.Generator
    ) -> Array:
        """[examples] what the head tells about the test examples: classes, decision values, or numbers.

        Args:
            task: gives head and loss.
            train: with their embeddings, like the others.
            validation: decides when to stop.
            test: what to tell.
            rng: of initialisation and order.
        """
        train, validation, test = standardised(train, validation, test)
        assert train.embeddings is not None
        torch.manual_seed(int(rng.integers(2**63)))
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
            since = 0 if now < best_loss else since + 1
            if now < best_loss:
                best, best_loss = {name: value.clone() for name, value in head.state_dict().items()}, now
            if since >= self.patience:
                break
        head.load_state_dict(best)
        with torch.no_grad():
            output = head(test.embeddings, test)
        return (output.argmax(dim=1) if task.kind == "classes" else output).numpy()


def standardised(train: Examples, *others: Examples) -> tuple[Examples, ...]:
    """The examples with embeddings whose columns have mean 0 and standard deviation 1 on the nodes of the first."""
    assert train.embeddings is not None
    mean, std = (torch.from_numpy(values).float() for values in column_scaling(train.embeddings.numpy()))

    def scaled(examples: Examples) -> Examples:
        assert examples.embeddings is not None
        return replace(examples, embeddings=(examples.embeddings - mean) / std)

    return tuple(map(scaled, (train, *others)))


def take(examples: Examples, ids: Array) -> Examples:
    """The examples of some graphs of a batch, by their places in it, with their embeddings.

    Args:
        examples: of all graphs of a batch: one label a graph, one a node, or one a pair of nodes.
        ids: places 0..g-1.
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
    here = (index >= 0).reshape(-1, index.shape[-1]).all(dim=0)
    return replace(taken, y=examples.y[here], index=index[..., here])
