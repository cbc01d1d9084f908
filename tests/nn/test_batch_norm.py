import numpy as np
import pytest
import torch
from small_model import VARIANTS, directional_derivative, draw, gradients, make, total

from helpers import random_store
from same.config import Config
from same.experiment import run
from same.nn import Encoder
from same.saved import load_trained


@pytest.mark.parametrize("variant", ["isame", "esame"])
def test_the_outer_gradient_is_exact(variant):
    """Second derivatives go through the means and spreads of a batch, too."""
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


def test_embeddings_do_not_depend_on_what_is_embedded_together():
    store = random_store(0, [6, 1, 9, 4], density=0.4)
    encoder = Encoder(3, width=5, batch_norm=True)
    together = encoder(store.cut([0, 1, 2, 3]))
    assert not torch.allclose(together[:6], encoder(store.cut([0])))  # In training they do.
    encoder.eval()
    together = encoder(store.cut([0, 1, 2, 3]))
    torch.testing.assert_close(together[:6], encoder(store.cut([0])))
    encoder.train()
    assert encoder(store.cut([1])).isfinite().all()  # A single node has no spread.


def test_a_run_keeps_the_running_means(tmp_path):
    config = Config(batch_norm=True, width=8, max_epochs=2, batch_size=100)
    run(config, tmp_path / "run")
    encoder = load_trained(tmp_path / "run").encoder
    assert np.abs(encoder.norms[0].running_mean.numpy()).max() > 0
