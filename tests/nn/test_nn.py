import numpy as np
import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch_geometric.nn import GCNConv, SAGEConv

from helpers import random_store
from same.errors import InputError
from same.graphs import GraphBatch
from same.nn import Encoder, PyGEncoder, propagate
from same.nn.encoders import GCNLayer
from same.nn.norm import unit_norm
from same.nn.pairs import pair_features, pair_scores


@pytest.fixture
def batch():
    return random_store(0, [6, 1, 9, 4], density=0.4).cut([0, 1, 2, 3]).to(torch.float64)


def test_propagate_is_its_own_derivative(batch):
    h = torch.randn(20, 3, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(propagate(batch.adjacency, h), batch.adjacency.to_dense() @ h)
    assert gradcheck(lambda h: propagate(batch.adjacency, h).square(), h)
    assert gradgradcheck(lambda h: propagate(batch.adjacency, h).square(), h)


@pytest.mark.parametrize(("columns", "width"), [(3, 8), (8, 3)])
def test_our_gcn_layer_is_pygs(batch, columns, width):
    ours, theirs = GCNLayer(columns, width).double(), GCNConv(columns, width).double()
    with torch.no_grad():
        theirs.lin.weight.copy_(ours.weight.T)
        theirs.bias.copy_(ours.bias.normal_())
    h = torch.randn(20, columns, dtype=torch.float64)
    torch.testing.assert_close(ours(batch, h), theirs(h, batch.edge_index))
    if columns == 3:
        torch.testing.assert_close(ours(batch, batch.x), theirs(batch.x, batch.edge_index))


@pytest.mark.parametrize("kind", ["gcn", "gin", "gat", "sage", "cheb"])
def test_encoders_by_name(batch, kind):
    torch.manual_seed(0)
    h = Encoder(3, kind=kind, layers=2, width=32).double()(batch)
    assert h.shape == (20, 32)
    torch.testing.assert_close(h.norm(dim=1), torch.ones(20, dtype=torch.float64), atol=1e-4, rtol=0)


def test_options(batch):
    torch.manual_seed(0)
    plain = Encoder(3, width=5, unit_norm=False, residual=False).double()
    residual = Encoder(3, width=5, unit_norm=False).double()
    residual.load_state_dict(plain.state_dict())
    assert not torch.allclose(plain(batch), residual(batch))
    dropping = Encoder(3, width=50, dropout=0.5).double()
    assert not torch.equal(dropping(batch), dropping(batch))
    dropping.eval()
    assert torch.equal(dropping(batch), dropping(batch))
    with pytest.raises(InputError, match="'gnn' is not one of gcn, gin"):
        Encoder(3, kind="gnn")


def test_second_derivatives_are_numbers_where_a_row_is_zero():
    """A node whose attributes and bias are 0 has the embedding 0, where a plain norm has no derivative."""
    batch = random_store(0, [3], density=0.0).cut([0])
    batch.x.zero_()
    encoder = Encoder(3, width=4)
    loss = encoder(batch).square().sum()
    first = torch.autograd.grad(loss, list(encoder.parameters()), create_graph=True)
    second = torch.autograd.grad(sum(g.sum() for g in first), list(encoder.parameters()), allow_unused=True)
    assert all(torch.isfinite(g).all() for g in (*first, *(s for s in second if s is not None)))


def test_any_pyg_module_is_an_encoder(batch):
    assert PyGEncoder(SAGEConv(3, 7).double(), width=7)(batch).shape == (20, 7)
    with pytest.raises(InputError, match=r"encoder: returned \(20, 7\), expected \(20, 8\)"):
        PyGEncoder(SAGEConv(3, 7).double(), width=8)(batch)


def test_encoding_many_batches_as_one_is_encoding_each():
    store = random_store(0, [6, 1, 9, 4], density=0.4)
    batches = [store.cut([0]), store.cut([2, 1]), store.cut([3])]
    joined, sizes = GraphBatch.concat(batches)
    encoder = Encoder(3, width=5)
    for h, batch in zip(encoder(joined).split(sizes), batches, strict=True):
        torch.testing.assert_close(h, encoder(batch))
    assert joined.graph_ids.tolist() == [0, 2, 1, 3]
    assert torch.equal(joined.node_ptr, torch.tensor([0, 6, 15, 16, 20]))
    torch.testing.assert_close(joined.mean(joined.x)[2], batches[1].x[9])
    np.testing.assert_array_equal(joined.edge_ptr.diff(), [b for x in batches for b in x.edge_ptr.diff()])


def test_unit_norm_has_exact_first_and_second_derivatives():
    torch.manual_seed(0)
    s = torch.randn(5, 4, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(unit_norm(s), s / s.norm(dim=1, keepdim=True))
    assert gradcheck(lambda s: unit_norm(s).exp(), s)
    assert gradgradcheck(lambda s: unit_norm(s).exp(), s)
    tiny = (1e-6 * torch.randn(5, 4, dtype=torch.float64)).requires_grad_()
    assert gradcheck(unit_norm, tiny, eps=1e-9, rtol=1e-2)


@pytest.mark.parametrize("pair", ["concat", "symmetric"])
def test_pair_scores_are_the_features_times_the_weights(pair):
    torch.manual_seed(0)
    pairs = torch.tensor([[0, 1, 4, 4, 2, 3], [1, 0, 2, 0, 3, 3]])  # Both ways round, often, never, with itself.
    h = torch.randn(6, 3, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(6, dtype=torch.float64, requires_grad=True)

    def scores(h, weight):
        return pair_scores(h, weight, pairs, pair)

    torch.testing.assert_close(scores(h, weight), pair_features(h, pairs, pair) @ weight)
    apart = h + torch.arange(6.0)[:, None]  # |u − v| has a corner at 0; node 3 with itself stays there.
    apart = apart.detach().requires_grad_()
    others = [0, 1, 2, 3, 4]
    assert gradcheck(lambda h, w: scores(h, w)[others], (apart, weight))
    assert gradgradcheck(lambda h, w: scores(h, w)[others].square(), (apart, weight))
    plain = torch.autograd.grad((pair_features(h, pairs, pair) @ weight).square().sum(), (h, weight))
    for ours, theirs in zip(torch.autograd.grad(scores(h, weight).square().sum(), (h, weight)), plain, strict=True):
        torch.testing.assert_close(ours, theirs)
