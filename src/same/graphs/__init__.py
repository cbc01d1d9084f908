"""Graphs: the store they live in, where they come from, what an encoder sees of them, and how they are split.

>>> import same
>>> store = same.load("planted")
>>> split = same.graphs.split(store, 0)
>>> store = store.with_inputs(same.graphs.Inputs.fit(store, split.train, degree=8))
>>> batch = store.cut(split.test[:4])
>>> batch.num_graphs, batch.x.shape[1]
(4, 33)
"""

from same.graphs.batch import GraphBatch
from same.graphs.inputs import Inputs
from same.graphs.nx import from_networkx
from same.graphs.planted import planted
from same.graphs.pyg import from_pyg, to_pyg
from same.graphs.sources import as_store, load
from same.graphs.splits import Split, hold_out, split
from same.graphs.store import GraphStore
from same.graphs.tu import read_tu

__all__ = [
    "GraphBatch",
    "GraphStore",
    "Inputs",
    "Split",
    "as_store",
    "from_networkx",
    "from_pyg",
    "hold_out",
    "load",
    "planted",
    "read_tu",
    "split",
    "to_pyg",
]
