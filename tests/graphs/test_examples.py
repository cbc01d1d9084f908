from dataclasses import FrozenInstanceError

import pytest
import torch

from same.graphs.examples import Examples


def test_examples_stand_for_all_rows_and_cannot_be_changed():
    examples = Examples("inputs", torch.ones(3))
    assert examples.index is None
    assert examples.embeddings is None
    with pytest.raises(FrozenInstanceError):
        examples.y = torch.zeros(3)
