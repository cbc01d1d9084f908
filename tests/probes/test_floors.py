import numpy as np
import pytest
import torch

from same.config import Config
from same.experiment import prepare
from same.probes.floors import floor_encoders, majority


def test_the_majority_is_a_constant():
    assert majority("classes", np.array([2, 0, 2]), np.zeros(4)).tolist() == [2, 2, 2, 2]
    assert majority("links", np.array([0.0, 1.0]), np.zeros(3)).tolist() == [0.5, 0.5, 0.5]
    assert majority("numbers", np.array([[1.0, 4.0], [3.0, 4.0]]), np.zeros((2, 2))).tolist() == [
        [2.0, 4.0],
        [2.0, 4.0],
    ]


@pytest.mark.parametrize("settings", [{"dropout": 0.5}, {"batch_norm": True}])
def test_floor_encoders_embed_each_graph_alone_and_without_dropout(settings):
    setting = prepare(Config(width=8, **settings))
    both, one = setting.store.cut([0, 1]), setting.store.cut([0])
    for encode in floor_encoders(setting.model).values():
        with torch.no_grad():
            torch.testing.assert_close(encode(both)[: one.num_nodes], encode(one))
    assert torch.equal(floor_encoders(setting.model)["raw"](both), both.x)
