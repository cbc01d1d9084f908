import numpy as np
import pytest
from small_model import SIZES, WEIGHTS, assert_agrees, gradients, make, to_batch

import literal
from same.methods.traditional import Traditional
from same.weighting import Weighting


@pytest.mark.parametrize("adapts", ["all", "head"])
def test_losses_and_gradients_are_those_of_the_literal_algorithm_3(adapts):
    """λ weighs the outer sum only: ADAPT minimises the plain sum of the losses."""
    store, tasks, model = make(seed=4)
    rng = np.random.default_rng(0)
    support, target = (
        literal.concurrent([literal.graph(store, g) for g in ids], rng) for ids in (range(7), range(7, len(SIZES)))
    )
    theta = dict(model.named_parameters())
    shape = {"unit_norm": True, "pair": "symmetric"}
    expected = literal.traditional_loss(theta, support, target, WEIGHTS, 0.3, adapts == "head", **shape)
    episode = (to_batch(store, tasks, support), to_batch(store, tasks, target))

    def outer(**options):
        losses = Traditional(adapts, inner_lr=0.3, **options).losses(model, episode)
        return Weighting(WEIGHTS).weigh(losses)

    exact = assert_agrees(outer(), expected, model)["heads.gc.out.weight"]
    rough = gradients(outer(first_order=True), model)["heads.gc.out.weight"]
    assert (rough - exact).norm() > 1e-3 * exact.norm()
