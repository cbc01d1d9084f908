import pytest
import torch
import torch.nn.functional as F

import literal
from helpers import random_store
from same.graphs.batch import Examples
from same.nn.heads import GraphHead, NodeHead, PairHead
from same.nn.pairs import pair_features
from same.nn.pooling import POOLS

SIZES = [6, 1, 9]


@pytest.fixture
def batch():
    return random_store(0, SIZES, density=0.4).cut([0, 1, 2]).to(torch.float64)


@pytest.fixture
def h():
    return torch.randn(sum(SIZES), 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def test_a_node_head_is_a_linear_layer_on_the_given_nodes(batch, h):
    head, index = NodeHead(4, 3).double(), torch.tensor([5, 0, 5])
    expected = h @ head.out.weight.T + head.out.bias
    torch.testing.assert_close(head(h, Examples(batch, torch.empty(0), index)), expected[index])
    torch.testing.assert_close(head(h, Examples(batch, torch.empty(0))), expected)


@pytest.mark.parametrize("linear", [False, True])
def test_a_graph_head_averages_the_nodes_of_each_graph(batch, h, linear):
    head = GraphHead(4, 3, linear=linear).double()
    hidden = h if linear else F.relu(h @ head.node.weight.T + head.node.bias)
    means = torch.stack([rows.mean(0) for rows in hidden.split(SIZES)])
    expected = means @ head.out.weight.T + head.out.bias
    torch.testing.assert_close(head(h, Examples(batch, torch.empty(0))), expected)


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("pool", [*POOLS, "mean+std+size"])
def test_a_graph_head_is_a_linear_layer_on_pooled_nodes(batch, h, pool, linear):
    head = GraphHead(4, 3, linear=linear, pool=pool).double()
    hidden = h if linear else F.relu(h @ head.node.weight.T + head.node.bias)
    pooled = literal.pooled(hidden, SIZES, pool)
    expected = pooled @ head.out.weight.T + head.out.bias
    torch.testing.assert_close(head(h, Examples(batch, torch.empty(0))), expected)


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("pair", ["concat", "symmetric"])
def test_a_pair_head_is_a_linear_layer_on_pair_features(batch, h, pair, linear):
    head, index = PairHead(4, pair, linear=linear).double(), torch.tensor([[0, 1, 7], [5, 0, 15]])
    hidden = 2 * h if linear else F.relu(h @ head.node.weight.T + head.node.bias)
    expected = pair_features(hidden, index, pair) @ head.out.weight[0] + head.out.bias
    torch.testing.assert_close(head(h, Examples(batch, torch.empty(3), index)), expected)
