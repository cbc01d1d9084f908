"""Graphs: stores, batches, labels, inputs, splits, and the formats they come in.

>>> import same
>>> store = same.load("planted")
>>> split = same.graphs.split(store, 0)
>>> store = store.with_inputs(same.graphs.Inputs.fit(store, split.train, degree=8))
>>> batch = store.cut(split.test[:4])
>>> batch.num_graphs, batch.x.shape[1]
(4, 33)
"""

from same.graphs.batch import Examples, GraphBatch
from same.graphs.inputs import Inputs
from same.graphs.io.folder import open_store, save_store, write_store
from same.graphs.io.objects import from_networkx, from_pyg, to_pyg
from same.graphs.io.sources import as_store, load
from same.graphs.io.tu import read_tu
from same.graphs.labels import Labels
from same.graphs.planted import planted
from same.graphs.splits import Split, hold_out, split
from same.graphs.store import GraphStore
from same.graphs.summary import summarise

__all__ = ["Examples", "GraphBatch", "GraphStore", "Inputs", "Labels", "Split"]
__all__ += ["as_store", "from_networkx", "from_pyg", "load", "open_store", "read_tu", "save_store", "to_pyg"]
__all__ += ["hold_out", "planted", "split", "summarise", "write_store"]
