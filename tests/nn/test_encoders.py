import copy
import pickle

import numpy as np
import pytest
import torch
from small_model import VARIANTS, directional_derivative, draw, gradients, make, total
from torch import nn
from torch_geometric.nn import GCN, GCNConv, GPSConv, GraphNorm, SAGEConv

from helpers import random_store
from same.config import Config
from same.errors import InputError
from same.experiment import run
from same.nn import Encoder, PyGEncoder
from same.nn.encoders import KINDS, BatchNorm, Dropout, GCNLayer, check_encoder, make_encoder, seed_dropout
from same.saved import load_trained


@pytest.fixture
def batch():
    return random_store(0, [6, 1, 9, 4], density=0.4).cut([0, 1, 2, 3]).to(torch.float64)


@pytest.mark.parametrize(("columns", "width"), [(3, 8), (8, 3)])
def test_the_gcn_layer_equals_that_of_pyg(batch, columns, width):
    ours, theirs = GCNLayer(columns, width).double(), GCNConv(columns, width).double()
    with torch.no_grad():
        theirs.lin.weight.copy_(ours.weight.T)
        theirs.bias.copy_(ours.bias.normal_())
    h = torch.randn(20, columns, dtype=torch.float64)
    torch.testing.assert_close(ours(batch, h), theirs(h, batch.edge_index))
    if columns == 3:
        torch.testing.assert_close(ours(batch, batch.x), theirs(batch.x, batch.edge_index))


@pytest.mark.parametrize("kind", KINDS)
def test_embeddings_have_the_width_of_the_encoder_and_length_1(batch, kind):
    torch.manual_seed(0)
    h = Encoder(3, kind=kind, layers=2, width=32).double()(batch)
    assert h.shape == (20, 32)
    torch.testing.assert_close(h.norm(dim=1), torch.ones(20, dtype=torch.float64), atol=1e-4, rtol=0)


def test_an_unknown_kind_is_refused():
    with pytest.raises(InputError, match="'gnn' is not one of gcn, gin"):
        Encoder(3, kind="gnn")


def test_the_residual_connection_changes_the_embeddings(batch):
    torch.manual_seed(0)
    plain = Encoder(3, width=5, unit_norm=False, residual=False).double()
    residual = Encoder(3, width=5, unit_norm=False).double()
    residual.load_state_dict(plain.state_dict())
    assert not torch.allclose(plain(batch), residual(batch))


def test_a_configuration_names_every_option_of_the_encoder():
    config = Config(encoder="gin", layers=2, width=5, residual=False, unit_norm=False, batch_norm=True, dropout=0.2)
    encoder = make_encoder(config, 3)
    assert [type(layer.layer).__name__ for layer in encoder.layers] == ["GINConv", "GINConv"]
    assert (encoder.width, encoder.residual, encoder.unit_norm, encoder.dropout.p) == (5, False, False, 0.2)
    assert len(encoder.norms) == 2


def test_dropout_acts_in_training_only_and_keeps_the_mean():
    dropout, h = Dropout(0.3), torch.ones(4000, 5)
    seed_dropout(dropout, 0)
    dropped = dropout(h)
    torch.testing.assert_close(dropped[dropped > 0], torch.full_like(dropped[dropped > 0], 1 / 0.7))
    assert dropped.mean().item() == pytest.approx(1, abs=0.02)
    assert torch.equal(dropout.eval()(h), h)


def test_seeded_dropout_repeats_and_leaves_the_global_generator_alone(batch):
    encoder = Encoder(3, width=50, dropout=0.5).double()
    before = torch.get_rng_state()
    rows = []
    for seed in (0, 0, 1):
        seed_dropout(encoder, seed)
        rows.append(encoder(batch))
    assert torch.equal(rows[0], rows[1])
    assert not torch.equal(rows[0], rows[2])
    assert not torch.equal(encoder(batch), rows[2])  # Every call draws anew.
    assert torch.equal(torch.get_rng_state(), before)


def test_an_encoder_with_seeded_dropout_can_be_copied_and_pickled(batch):
    encoder = Encoder(3, width=5, dropout=0.5).double()
    seed_dropout(encoder, 0)
    for other in (copy.deepcopy(encoder), pickle.loads(pickle.dumps(encoder))):  # noqa: S301
        assert torch.equal(other.eval()(batch), encoder.eval()(batch))


def test_second_derivatives_are_finite_where_a_row_is_zero():
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
    with pytest.raises(InputError, match=r"encoder: returned \(20, 7\), expected one row for each of 20 nodes"):
        PyGEncoder(SAGEConv(3, 7).double(), width=8)(batch)


@pytest.mark.parametrize("variant", ["isame", "esame"])
def test_the_outer_gradient_is_exact_with_batch_normalisation(variant):
    """Second derivatives include those of the means and variances of a batch."""
    store, tasks, model = make()
    torch.manual_seed(0)
    model.encoder = Encoder(store.num_features, width=6, batch_norm=True).double()
    episode = draw(store, tasks)
    method = VARIANTS[variant](inner_lr=0.5)
    g = gradients(total(method, model, episode), model)
    generator = torch.Generator().manual_seed(1)
    for _ in range(3):
        direction = [torch.randn(p.shape, generator=generator, dtype=torch.float64) for p in model.parameters()]
        expected = directional_derivative(method, model, episode, direction, eps=1e-6)
        along = sum((a * b).sum() for a, b in zip(g.values(), direction, strict=True)).item()
        assert along == pytest.approx(expected, rel=1e-4, abs=1e-6)


def test_with_batch_normalisation_embeddings_do_not_depend_on_the_rest_of_the_batch():
    store = random_store(0, [6, 1, 9, 4], density=0.4)
    encoder = Encoder(3, width=5, batch_norm=True)
    together = encoder(store.cut([0, 1, 2, 3]))
    assert not torch.allclose(together[:6], encoder(store.cut([0])))  # In training they do.
    encoder.eval()
    together = encoder(store.cut([0, 1, 2, 3]))
    torch.testing.assert_close(together[:6], encoder(store.cut([0])))


def test_a_batch_of_one_node_is_normalised_by_the_running_statistics():
    norm = BatchNorm(3)
    norm.running_mean.fill_(2.0)
    torch.testing.assert_close(norm(torch.full((1, 3), 3.0)), torch.ones(1, 3))
    assert norm.running_mean.tolist() == [2.0, 2.0, 2.0]


def test_a_run_keeps_the_running_means(tmp_path):
    run(Config(batch_norm=True, width=8, max_epochs=2, batch_size=100), tmp_path / "run")
    encoder = load_trained(tmp_path / "run").encoder
    assert np.abs(encoder.norms[0].running_mean.numpy()).max() > 0


class Mixing(nn.Module):
    """Normalises over all nodes of the batch."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = SAGEConv(3, 6), GraphNorm(6)

    def forward(self, x, edge_index):
        return self.norm(self.conv(x, edge_index))


class Separating(Mixing):
    def forward(self, x, edge_index, batch=None):
        return self.norm(self.conv(x, edge_index), batch)


class Attending(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.layer = nn.Linear(3, 6), GPSConv(6, SAGEConv(6, 6), heads=2)

    def forward(self, x, edge_index, batch):
        return self.layer(self.first(x), edge_index, batch)


def check(module, *, second_order=False):
    store = random_store(0, [6, 9], density=0.4)
    encoder = PyGEncoder(module)
    state = {name: value.clone() for name, value in encoder.state_dict().items()}
    check_encoder(encoder, store.cut([0]), store.cut([1]), second_order=second_order)
    assert all(torch.equal(value, state[name]) for name, value in encoder.state_dict().items())


def test_an_encoder_that_mixes_graphs_is_refused_in_one_line():
    with pytest.raises(InputError, match=r"change by up to .* with the other graphs of its batch") as caught:
        check(Mixing())
    assert "\n" not in str(caught.value)
    check(Separating(), second_order=True)


def test_an_encoder_without_second_derivatives_is_refused_where_they_are_needed():
    check(Attending())
    with pytest.raises(InputError, match=r"no second derivatives .* use first_order=True or method='esame'") as caught:
        check(Attending(), second_order=True)
    assert "\n" not in str(caught.value)


def test_batch_norm_is_not_taken_for_mixing():
    check(GCN(3, 6, num_layers=2, norm="BatchNorm"), second_order=True)
