"""A model of one number and a method that minimises its square: training without graphs."""

import math

import torch
from torch import nn

from same.training import (
    Averaging,
    Checkpoint,
    EarlyStopping,
    Report,
    Rule,
    Schedule,
    TimeLimit,
    Training,
    Validation,
    train,
)
from same.training.distributed import ALONE
from same.weighting import Weighting


class Parabola(nn.Module):
    encoder = None

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.tensor([3.0]))


class Descent:
    """Minimises w² as task `a`, and shows validation a script of losses."""

    def __init__(self, script=None, bad_step=None):
        self.script, self.bad_step, self.calls = list(script or []), bad_step, 0

    def losses(self, model, episode):
        factor = math.nan if episode == self.bad_step else 1.0
        return {"a": (model.w * factor).square().sum(), "b": 0.0 * model.w.sum()}

    def evaluate(self, model, episode):
        self.calls += 1
        value = self.script.pop(0) if self.script else model.w.square().sum().item()
        return {"a": (value, -value), "b": (0.0, 0.0)}

    def parts(self, episode):
        return []


class Steps:
    steps = 2

    def draw(self, epoch, step):
        return epoch * self.steps + step


def descend(
    model=None,
    method=None,
    *,
    epochs=100,
    every=1,
    patience=50,
    probe=None,
    episodes=("v",),
    weights=None,
    average=0.0,
    lr=0.1,
    clip=10.0,
    folder=None,
    report=None,
    give_up=lambda history: False,
    seconds=60.0,
    max_seconds=None,
    ranks=ALONE,
):
    """Train a parabola; the options are those of the rules."""
    method = method or Descent()
    training = Training(model or Parabola(), lr=lr, clip=clip, weighting=Weighting(weights), ranks=ranks)
    rules: list[Rule] = [Averaging(average)] if average else []
    rules += [TimeLimit()]
    rules.append(Validation(method, episodes, probe=probe, weights=weights))
    rules += [Report(report)] if report else []
    if folder is not None:
        from same.training.checkpoint import restore

        restore(training, folder, "key")
        rules.append(Checkpoint(folder, "key", seconds=seconds))
    rules.append(EarlyStopping(patience, give_up))
    return train(training, method, Steps(), Schedule(epochs, Steps.steps, every, max_seconds=max_seconds), rules)
