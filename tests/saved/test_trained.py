from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from same import GraphEncoder, InputError
from same.config import Config
from same.experiment import run
from same.graphs import Labels, planted
from same.saved import finished, load_trained

SMALL = {"width": 8, "max_epochs": 1, "validate_every": 1, "batch_size": 60}


def test_the_folder_of_a_run_is_that_of_a_model(tmp_path):
    config = Config(**SMALL)
    run(config, tmp_path / "run")
    model = GraphEncoder.load(tmp_path / "run")
    model.save(tmp_path / "model")
    one, other = (load_file(tmp_path / name / "model.safetensors") for name in ("run", "model"))
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert load_trained(tmp_path / "model").config == config
    assert finished(tmp_path / "model")["key"] == finished(tmp_path / "run")["key"] == config.key


def test_the_node_classes_that_a_model_is_shown_are_saved_with_it(tmp_path):
    """In their order, whichever columns the set has and which classes it lists."""
    store = planted(60)
    extra = Labels("node", store.node_y, (*store.node_classes, "never"))
    store = store.with_labels("node_y", extra).with_labels("more", np.arange(store.num_nodes) % 2)
    model = GraphEncoder(tasks=("gc", "lp"), node_labels="input", **SMALL).fit(store)
    model.save(tmp_path / "model")
    loaded = GraphEncoder.load(tmp_path / "model")
    assert loaded.trained_.inputs.classes == model.trained_.inputs.classes == planted().node_classes
    assert np.array_equal(loaded.predict_proba(store, task="gc"), model.predict_proba(store, task="gc"))
    loaded.save(tmp_path / "again")
    again = GraphEncoder.load(tmp_path / "again")
    assert np.array_equal(again.transform(store), model.transform(store))
    few = store[store.graph_y == 0]
    other = few.with_labels("node_y", Labels.of(few.labels["node_y"].values[::-1], "node"))
    assert not np.array_equal(again.transform(other), again.transform(few))
    bare = replace(store, labels={})
    for use in (again.transform, again.score, lambda graphs: again.predict(graphs, task="gc")):
        with pytest.raises(InputError, match=r"planted: node_labels=input .*, and its nodes have none"):
            use(bare)
