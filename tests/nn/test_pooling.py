import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

import literal
from helpers import random_store
from same.errors import InputError
from same.nn.pooling import POOLS, parse_pool, pool_nodes, pooled_width

SIZES = [6, 1, 9]
JOINED = "size+max+mean+std+sum"


@pytest.fixture
def batch():
    return random_store(0, SIZES, density=0.4).cut([0, 1, 2]).to(torch.float64)


@pytest.fixture
def h():
    return torch.randn(sum(SIZES), 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


@pytest.mark.parametrize("pool", [*POOLS, JOINED])
def test_each_pooling_is_what_its_definition_says(batch, h, pool):
    pooled = pool_nodes(batch, h, pool)
    torch.testing.assert_close(pooled, literal.pooled(h, SIZES, pool), rtol=1e-12, atol=1e-12)
    assert pooled.shape == (len(SIZES), pooled_width(3, pool))
    assert pool_nodes(batch, h.float(), pool).dtype == torch.float32


def test_the_mean_keeps_its_bits(batch, h):
    assert torch.equal(pool_nodes(batch, h, "mean"), batch.mean(h))


@pytest.mark.parametrize("pool", [*POOLS, JOINED])
def test_first_and_second_derivatives_are_exact(batch, h, pool):
    h.requires_grad_()
    assert gradcheck(lambda h: pool_nodes(batch, h, pool).sin(), h)
    assert gradgradcheck(lambda h: pool_nodes(batch, h, pool).sin(), h)


@pytest.mark.parametrize("pool", POOLS)
def test_equal_nodes_have_finite_derivatives_and_share_them(batch, pool):
    h = torch.full((sum(SIZES), 3), -2.0, dtype=torch.float64, requires_grad=True)
    first = torch.autograd.grad(pool_nodes(batch, h, pool).square().sum(), h, create_graph=True)[0]
    second = torch.autograd.grad(first.square().sum(), h)[0]
    for derivative in (first, second):
        assert torch.isfinite(derivative).all()
        for rows in derivative.split(SIZES):
            torch.testing.assert_close(rows, rows[:1].expand_as(rows), rtol=1e-9, atol=1e-9)
    # d(max²) = 2 · max, shared by all nodes of the graph; a maximum of 0 is no exception.
    if pool == "max":
        torch.testing.assert_close(first, torch.cat([torch.full((n, 3), -4.0 / n).double() for n in SIZES]))
        zero = torch.zeros_like(h).requires_grad_()
        assert torch.autograd.grad(pool_nodes(batch, zero, pool).sum(), zero)[0].sum() == pytest.approx(3 * len(SIZES))


def test_the_order_of_nodes_and_graphs_does_not_matter(batch, h):
    order = torch.tensor([2, 0, 1])
    generator = torch.Generator().manual_seed(1)
    parts = [rows[torch.randperm(len(rows), generator=generator)] for rows in h.split(SIZES)]
    pooled = pool_nodes(batch.take(order.numpy()), torch.cat([parts[g] for g in order]), JOINED)
    torch.testing.assert_close(pooled, pool_nodes(batch, h, JOINED)[order], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("text", ["", "median", "mean+", "mean+mean", "mean,size", "mean + size", "Mean"])
def test_a_pooling_that_does_not_exist_is_refused_in_one_line(text):
    with pytest.raises(InputError, match=f"pool: {text!r} is not one of mean, sum, max, std, size".replace("+", "[+]")):
        parse_pool(text)
