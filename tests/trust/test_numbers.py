"""Precision of single-precision numbers, and the same bits in every process."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from helpers import random_store
from same.episodes import concurrent_batch, concurrent_episode, multi_task_episode, to_device
from same.experiment import run
from same.methods import Classical, Traditional
from same.methods.same import ESAME, ISAME
from same.nn import Encoder, Model
from same.tasks import make_tasks
from trust.faults import CONFIG, outcome

METHODS = {
    "isame": (ISAME(), multi_task_episode),
    "esame": (ESAME(), multi_task_episode),
    "classical": (Classical(), concurrent_batch),
    "traditional": (Traditional(), concurrent_episode),
}


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_single_precision_is_close_to_double(name, seed):
    """Losses to 1e-5, and gradients, with their second derivatives, to 1e-3 of their norm."""
    method, build = METHODS[name]
    store = random_store(seed, [9, 4, 12, 7, 2, 10, 6, 8, 5, 11, 3, 7] * 2, density=0.35)
    tasks = make_tasks(("gc", "nc", "lp"), store)
    torch.manual_seed(seed)
    model = Model(Encoder(store.num_features, width=16), {task.name: task.head(16) for task in tasks})
    episode = build(store, tasks, np.arange(len(store)), np.random.default_rng(seed))
    results = {}
    for kind in (torch.float32, torch.float64):
        model = model.to(kind)
        losses = method.losses(model, to_device(episode, kind))
        total = torch.stack(list(losses.values())).sum()
        gradient = torch.cat([g.reshape(-1) for g in torch.autograd.grad(total, list(model.parameters()))])
        assert gradient.dtype == kind
        results[kind] = {task: loss.item() for task, loss in losses.items()}, gradient.double()
    (rough, g), (exact, g_exact) = results.values()
    for task, loss in exact.items():
        assert rough[task] == pytest.approx(loss, rel=1e-5)
    assert (g - g_exact).norm() <= 1e-3 * g_exact.norm()


def test_another_process_computes_the_same_bits(tmp_path):
    code = (
        "import sys; from pathlib import Path; from same.config import Config; from same.experiment import run; "
        "run(Config.model_validate_json(sys.argv[1]), Path(sys.argv[2]))"
    )
    run(CONFIG, tmp_path / "one")
    subprocess.run([sys.executable, "-c", code, CONFIG.model_dump_json(), tmp_path / "other"], check=True)
    assert outcome("train", tmp_path / "one") == outcome("train", tmp_path / "other")
