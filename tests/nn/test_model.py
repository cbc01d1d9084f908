import torch

from helpers import random_store
from same.graphs.batch import Examples
from same.nn import Encoder, Model
from same.nn.heads import GraphHead, NodeHead


def test_a_task_is_computed_by_its_head_from_shared_embeddings():
    batch = random_store(0, [6, 4]).cut([0, 1])
    model = Model(Encoder(3, width=5), {"gc": GraphHead(5, 2), "nc": NodeHead(5, 3)})
    examples = Examples(batch, torch.empty(0))
    h = model.encoder(batch)
    for task in ("gc", "nc"):
        torch.testing.assert_close(model(task, examples), model.heads[task](h, examples))


def test_embeddings_that_were_computed_already_are_used():
    batch = random_store(0, [6, 4]).cut([0, 1])
    model = Model(Encoder(3, width=5), {"nc": NodeHead(5, 3)})
    h = torch.randn(10, 5)
    examples = Examples(batch, torch.empty(0), embeddings=h)
    torch.testing.assert_close(model("nc", examples), model.heads["nc"](h, examples))
