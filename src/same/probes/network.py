"""The network probe: a task's head, trained on frozen embeddings (question Q3 and the transfer figures)."""

from dataclasses import replace
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from same.graphs.batch import Examples
from same.graphs.flat import Array, ranges
from same.linear.rows import column_scaling
from same.seeding import forked_torch
from same.tasks.task import GraphTask

_EPOCHS, _PATIENCE, _GRAPHS, _LR = 100, 15, 32, 2e-3


def predict_network(
    task: GraphTask, train: Examples, validation: Examples, test: Examples, rng: np.random.Generator
) -> Array:
    """[n] predictions by a head that Adam trains, with early stopping: classes, decision values of links, or numbers.

    Node embeddings are standardised on the training graphs: columns of unit-norm rows are so small that a hundred
    epochs would not be enough.
    """
    train, validation, test = standardised(train, validation, test)
    with forked_torch(int(rng.integers(2**63))):
        head: Any = task.head(cast(Tensor, train.embeddings).shape[1])
    optimiser = torch.optim.Adam(head.parameters(), _LR, fused=True)
    best, best_loss, since = head.state_dict(), float("inf"), 0
    for _ in range(_EPOCHS):
        order = rng.permutation(train.inputs.num_graphs)
        for ids in np.array_split(order, max(1, round(len(order) / _GRAPHS))):
            batch = take(train, ids)
            if not len(batch.y):
                continue
            optimiser.zero_grad()
            task.loss(head(batch.embeddings, batch), batch).backward()
            optimiser.step()
        with torch.no_grad():
            now = task.loss(head(validation.embeddings, validation), validation).item()
        if now < best_loss:
            best, best_loss, since = {name: value.clone() for name, value in head.state_dict().items()}, now, 0
        elif (since := since + 1) >= _PATIENCE:
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
    """The examples of some graphs of a batch."""
    batch, h = examples.inputs, cast(Tensor, examples.embeddings)
    starts = batch.node_ptr.numpy()
    nodes = ranges(starts[:-1][ids], np.diff(starts)[ids])
    taken = replace(examples, inputs=batch.take(ids), embeddings=h[nodes])
    if examples.index is None:
        return replace(taken, y=examples.y[nodes if len(examples.y) == batch.num_nodes else ids])
    place = np.full(batch.num_nodes, -1)
    place[nodes] = np.arange(len(nodes))
    index = torch.from_numpy(place[examples.index.numpy()])
    inside = (index >= 0).reshape(-1, index.shape[-1]).all(dim=0)
    return replace(taken, y=examples.y[inside], index=index[..., inside])
