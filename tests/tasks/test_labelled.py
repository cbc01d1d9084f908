import math

import numpy as np
import pytest
import torch

from helpers import random_store
from same.errors import InputError
from same.graphs.batch import Examples
from same.nn.pooling import pool_nodes
from same.tasks import GraphClassification, GraphRegression, NodeClassification, make_tasks


def test_classification_minimises_the_cross_entropy_and_is_scored_by_accuracy():
    task, logits = NodeClassification(), torch.tensor([[0.0, 0.0, 0.0], [9.0, 0.0, 0.0], [0.0, 0.0, 9.0]])
    examples = Examples(None, torch.tensor([0, 0, 1]))
    sums = [math.log(3), math.log(math.exp(9) + 2) - 9, math.log(math.exp(9) + 2)]
    assert task.loss(logits, examples).item() == pytest.approx(sum(sums) / 3)
    assert task.score(logits, examples) == pytest.approx(2 / 3)
    assert task.score(logits[:0], Examples(None, torch.empty(0, dtype=torch.int64))) == 0


def test_regression_minimises_the_squared_error_and_is_scored_by_r2():
    task, output, y = GraphRegression(), torch.tensor([[1.0], [2.0], [4.0]]), torch.tensor([1.0, 2.0, 3.0])
    assert task.loss(output, Examples(None, y)).item() == pytest.approx(1 / 3)
    assert task.score(output, Examples(None, y)) == pytest.approx(1 - 1 / 2)
    assert task.score(output[:1], Examples(None, y[:1])) == 0  # No variance to explain.


def test_a_task_takes_its_classes_from_a_set_and_leaves_itself_unchanged():
    task = GraphClassification()
    bound = task.bind(random_store(0, [4, 5, 6]).with_labels("y", ["a", "c", "a"]))
    assert (bound.classes, bound.outputs) == (("a", "c"), 2)
    assert task.classes is None


def test_graphs_without_the_labels_of_a_task_are_refused():
    store = random_store(0, [4, 5]).with_labels("kind", ["a", "b"])
    (task,) = make_tasks([GraphClassification("kind")], store)
    with pytest.raises(InputError, match="gc: the graphs have no graph labels 'kind'"):
        task.examples(random_store(0, [4]).cut([0]), np.random.default_rng(0))


@pytest.mark.parametrize("kind", [GraphClassification, GraphRegression])
def test_a_graph_task_with_another_pooling_is_a_copy(kind):
    batch = random_store(0, [4, 1, 6]).cut([0, 1, 2])
    task, examples = kind(), Examples(batch, torch.empty(3))
    assert task.pools[0] == task.pool == "mean"
    assert torch.equal(task.features(batch.x, examples), batch.mean(batch.x))
    for pool in task.pools:
        other = task.pooled(pool)
        assert isinstance(other, kind)
        assert torch.equal(other.features(batch.x, examples), pool_nodes(batch, batch.x, pool))
    assert task.pool == "mean"


def test_the_poolings_to_choose_from_show_the_size_and_a_single_node():
    """Graphs that agree in their mean differ in their size, or in one node."""
    rows = torch.tensor([[2.0]] * 6 + [[2.0]] * 12 + [[0.0]] * 5 + [[12.0]])
    batch = random_store(0, [6, 12, 6]).cut([0, 1, 2])
    task, examples = GraphClassification(), Examples(batch, torch.empty(3))
    shown = {pool: task.pooled(pool).features(rows, examples) for pool in task.pools}
    sees = [{pool for pool, x in shown.items() if not torch.allclose(x[0], x[i])} for i in (1, 2)]
    assert sees == [{"sum", "mean+std+size"}, {"mean+max", "mean+std+size"}]


def test_a_task_without_poolings_stays_as_it_is():
    task = NodeClassification()
    assert task.pools == ()
    assert task.pooled("sum") is task
