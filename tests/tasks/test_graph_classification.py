"""Support and target sets of graphs: the properties that Algorithm 4 promises."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import literal
from helpers import stores
from same.tasks import GraphClassification


@settings(max_examples=150, deadline=None)
@given(store=stores, seed=st.integers(0, 2**32 - 1))
def test_cut(store, seed):
    ids = np.arange(store.num_graphs)
    if len(ids) < 2:
        return
    support, target = GraphClassification().cut(store, ids, np.random.default_rng(seed))
    sides = [e.inputs.graph_ids.tolist() for e in (support, target)]
    assert sorted(sides[0] + sides[1]) == ids.tolist()
    assert len(sides[0]) == literal.part_of(len(ids), 0.6)
    for e, side in zip((support, target), sides, strict=True):
        assert e.y.tolist() == store.graph_y[side].tolist()
