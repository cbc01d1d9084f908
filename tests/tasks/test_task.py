import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from same.tasks.task import loss_of, ranks, share


@given(st.lists(st.integers(0, 100), min_size=1), st.floats(0.05, 0.95))
def test_shares_leave_something_on_both_sides(counts, part):
    counts = np.array(counts)
    shares = share(counts, part)
    assert ((shares >= 0) & (shares <= counts)).all()
    assert ((shares[counts > 1] > 0) & (shares[counts > 1] < counts[counts > 1])).all()
    rounded = np.floor(part * counts + 0.5)
    inner = (rounded > 0) & (rounded < counts)
    assert (shares[inner] == rounded[inner]).all()


@given(st.lists(st.integers(0, 5), min_size=1), st.integers(0, 99))
def test_ranks_are_permutations_within_groups(groups, seed):
    groups = np.sort(groups)
    rank = ranks(groups, np.random.default_rng(seed))
    for group in np.unique(groups):
        members = rank[groups == group]
        assert sorted(members.tolist()) == list(range(len(members)))


def test_no_examples_are_no_loss_and_no_gradient():
    output = torch.empty(0, 3, requires_grad=True)
    loss = loss_of(torch.nn.functional.cross_entropy, output, torch.empty(0, dtype=torch.int64))
    loss.backward()
    assert float(loss.detach()) == 0
