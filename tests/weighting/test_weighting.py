import torch
from torch import nn
from two_tasks import two_tasks

from same.nn import Encoder, Model
from same.weighting.weighting import Weighting, last_shared_weight, shared_parameters


def test_fixed_weights_scale_gradients():
    model, losses = two_tasks()
    Weighting({"a": 3.0}).backward(losses(), model)
    gradient = model.encoder.weight.grad.clone()
    a, b = (torch.autograd.grad(losses()[t], model.encoder.weight)[0] for t in ("a", "b"))
    torch.testing.assert_close(gradient, 3 * a + b)


def test_shared_parameters_are_those_of_the_encoder():
    model = Model(Encoder(3, layers=2, width=4), {"a": nn.Linear(4, 1)})
    model.encoder.layers[0].weight.requires_grad_(False)
    shared = {name for name, p in model.named_parameters() if any(p is other for other in shared_parameters(model))}
    assert shared == {"encoder.layers.0.bias", "encoder.layers.1.weight", "encoder.layers.1.bias"}
    assert last_shared_weight(model) is model.encoder.layers[1].weight
