import json

import numpy as np

from same.graphs import GraphStore, planted, summarise


def test_counts_and_balance():
    summary = summarise(planted(12))
    assert (summary["graphs"], summary["attributes"]) == (12, 24)
    assert summary["graph_classes"] == {"alike": 4, "unlike": 4, "any": 4}
    assert sum(summary["node_classes"].values()) == summary["nodes"]
    assert summary["nodes_per_graph"]["min"] >= 16
    assert summary["as_known"] is None
    assert summary["notes"] == [
        "graph classes with fewer than 10 graphs, absent from some splits: alike (4), unlike (4), any (4)"
    ]
    json.dumps(summary)


def test_oddities_are_named():
    x = np.array([[1.0, 2.0, 2.0], [1.0, 3.0, 3.0], [1.0, 4.0, 4.0]])
    summary = summarise(GraphStore.build("odd", x=x, sizes=[2, 1], edge_index=[[0, 1], [1, 1]], graph_y=[-1, 1]))
    assert summary["constant_columns"] == [0]
    assert summary["duplicate_columns"] == [[1, 2]]
    assert summary["isolated_nodes"] == 1
    assert summary["graph_classes"] == {"-1": 1, "1": 1}
    assert summary["node_classes"] is None
    assert summary["notes"][:2] == ["1 self-loops were dropped", "fewer than 10 graphs: the set cannot be split"]
    bare = GraphStore.build("bare", x=np.empty((2, 0)), sizes=[1, 1], edge_index=[[], []])
    assert summarise(bare)["notes"][-1] == "no attributes: an encoder sees a constant and the degree"
