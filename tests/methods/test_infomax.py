import numpy as np
import torch
from small_model import SIZES, make

from same.methods.infomax import Infomax


def test_training_separates_nodes_from_shuffled_ones():
    store, _, model = make(width=16)
    model, method = model.float(), Infomax()
    torch.manual_seed(0)
    method.extend(model, 16)
    rng = np.random.default_rng(0)
    batch = method.draw(store, [], np.arange(len(SIZES)), rng)
    assert sorted(batch[0].x[:, 0].tolist()) == sorted(batch[1].x[:, 0].tolist())
    before = method.evaluate(model, batch)["infomax"][0]
    optimiser = torch.optim.Adam(model.parameters(), 5e-3)
    for _ in range(150):
        loss = method.losses(model, method.draw(store, [], np.arange(len(SIZES)), rng))["infomax"]
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert method.evaluate(model, batch)["infomax"][0] < before - 0.1
