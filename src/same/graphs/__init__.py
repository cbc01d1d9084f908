"""Graphs: stores, batches, labels, inputs, splits, and the formats they come in.

>>> import same
>>> store = same.load("planted")
>>> split = same.graphs.split(store, 0)
>>> store = store.with_inputs(same.graphs.Inputs.fit(store, split.train, degree=8))
>>> batch = store.cut(split.test[:4])
>>> batch.num_graphs, batch.x.shape[1]
(4, 33)
"""

from same.graphs.batch import GraphBatch as GraphBatch
from same.graphs.examples import Examples as Examples
from same.graphs.inputs import Inputs as Inputs
from same.graphs.io.folder import open_store as open_store
from same.graphs.io.folder import save_store as save_store
from same.graphs.io.folder import write_store as write_store
from same.graphs.io.objects import from_networkx as from_networkx
from same.graphs.io.objects import from_pyg as from_pyg
from same.graphs.io.objects import to_pyg as to_pyg
from same.graphs.io.sources import as_store as as_store
from same.graphs.io.sources import load as load
from same.graphs.io.tu import read_tu as read_tu
from same.graphs.labels import Labels as Labels
from same.graphs.planted import planted as planted
from same.graphs.splits import Split as Split
from same.graphs.splits import hold_out as hold_out
from same.graphs.splits import split as split
from same.graphs.store import GraphStore as GraphStore
from same.graphs.summary import summarise as summarise
