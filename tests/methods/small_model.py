"""A small set with its tasks, a model in double precision, and an episode."""

import numpy as np
import torch

import literal
from helpers import random_store
from same.episodes import EpisodeSampler, to_device
from same.methods.same import ESAME, ISAME
from same.nn import Encoder, Model
from same.tasks import make_tasks

TASKS = ("gc", "nc", "lp")
WEIGHTS = {"gc": 1.0, "nc": 0.5, "lp": 2.0}
VARIANTS = {"isame": ISAME, "esame": ESAME}
SIZES = [9, 4, 12, 7, 2, 10, 6, 8, 5, 11, 3, 7]


def make(tasks=TASKS, seed=0, width=6, pair="symmetric", unit_norm=True, kind="gcn", linear_heads=False, pool="mean"):
    """A small store, its tasks and a model in double precision."""
    store = random_store(seed, SIZES, density=0.35)
    torch.manual_seed(seed)
    tasks = make_tasks(tasks, store, pair=pair, linear_heads=linear_heads, pool=pool)
    encoder = Encoder(store.num_features, width=width, unit_norm=unit_norm, kind=kind)
    model = Model(encoder, {task.name: task.head(width) for task in tasks}).double()
    with torch.no_grad():
        for name, p in model.named_parameters():
            # Biases start at 0, where an isolated node with no active unit sits exactly on the corner of a ReLU.
            p += 0.3 * torch.randn_like(p) if "bias" in name else 0
    return store, tasks, model


def draw(store, tasks, seed=0):
    sampler = EpisodeSampler(store, np.arange(len(SIZES)), tasks, batch_size=len(SIZES), seed=seed)
    return to_device(sampler.draw(0, 0), torch.float64)


def total(method, model, episode):
    return torch.stack(list(method.losses(model, episode).values())).sum()


def gradients(loss, model):
    values = torch.autograd.grad(loss, list(model.parameters()), allow_unused=True)
    return {n: g for (n, _), g in zip(model.named_parameters(), values, strict=True)}


def directional_derivative(method, model, episode, direction, eps=1e-5):
    values = []
    for sign in (1, -1):
        with torch.no_grad():
            for p, d in zip(model.parameters(), direction, strict=True):
                p += sign * eps * d
        values.append(total(method, model, episode).item())
        with torch.no_grad():
            for p, d in zip(model.parameters(), direction, strict=True):
                p -= sign * eps * d
    return (values[0] - values[1]) / (2 * eps)


def to_batch(store, tasks, plain):
    """A literal batch as the package has it, in double precision."""
    return to_device([(t, literal.to_examples(store, t.name, plain[t.name])) for t in tasks], torch.float64)


def assert_agrees(loss, expected, model):
    """Two losses agree to rounding, and so do their gradients, which are returned."""
    torch.testing.assert_close(loss, expected, rtol=1e-9, atol=0)
    slow, fast = gradients(expected, model), gradients(loss, model)
    for name, g in slow.items():
        if g is not None:
            assert (fast[name] - g).norm() <= 1e-9 * g.norm(), name
    return slow
