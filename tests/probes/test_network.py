from dataclasses import replace

import numpy as np
import pytest
import torch

from helpers import random_store
from same.graphs import planted, split
from same.probes.network import predict_network, standardised, take
from same.tasks import make_tasks


def test_the_network_probe_learns_and_stops():
    store = planted()
    task = make_tasks(["gc"], store)[0]
    parts = split(store, 0)

    # Embeddings that give the class away.
    def sets(ids):
        examples = task.examples(store.cut(ids), np.random.default_rng(0))
        h = torch.nn.functional.one_hot(examples.y, 3).float()[examples.inputs.batch]
        return replace(examples, embeddings=h + 0.1 * torch.randn(h.shape, generator=torch.Generator().manual_seed(0)))

    train, validation, test = (sets(ids) for ids in (parts.train, parts.validation, parts.test))
    predicted = predict_network(task, train, validation, test, np.random.default_rng(0))
    assert (predicted == test.y.numpy()).mean() > 0.95
    again = predict_network(task, train, validation, test, np.random.default_rng(0))
    assert (predicted == again).all()
    # Whatever scale an encoder gives its columns.
    small = [replace(s, embeddings=0.001 * s.embeddings + 2) for s in (train, validation, test)]
    assert (predict_network(task, *small, np.random.default_rng(0)) == predicted).mean() > 0.98


@pytest.mark.parametrize("name", ["gc", "nc", "lp"])
def test_taking_graphs_of_a_batch_is_cutting_them(name):
    store = random_store(0, [5, 9, 1, 7], density=0.5)
    task = make_tasks([name], store)[0]
    examples = task.examples(store.cut([0, 1, 2, 3]), np.random.default_rng(0))
    examples = replace(examples, embeddings=examples.inputs.x * 2)
    some = take(examples, np.array([3, 1]))
    head = task.head(3)
    whole, part = (head(e.embeddings, e) for e in (examples, some))
    if name == "gc":
        torch.testing.assert_close(part, whole[[3, 1]])
    elif name == "nc":
        torch.testing.assert_close(part, torch.cat([whole[15:22], whole[5:14]]))
    else:
        graph = examples.inputs.batch[examples.index[0]]
        torch.testing.assert_close(part, whole[(graph == 3) | (graph == 1)])
        assert len(some.y) == len(part)


def test_all_parts_are_scaled_as_the_training_nodes_are():
    store = random_store(0, [5, 9])
    task = make_tasks(["gc"], store)[0]
    first, second = (task.examples(store.cut([i]), np.random.default_rng(0)) for i in (0, 1))
    train, other = (replace(e, embeddings=3 * e.inputs.x + 7) for e in (first, second))
    scaled = standardised(train, other)
    torch.testing.assert_close(scaled[0].embeddings.mean(0), torch.zeros(3), atol=1e-6, rtol=0)
    torch.testing.assert_close(scaled[0].embeddings.std(0, correction=0), torch.ones(3))
    mean, std = train.embeddings.mean(0), train.embeddings.std(0, correction=0)
    torch.testing.assert_close(scaled[1].embeddings, (other.embeddings - mean) / std)
