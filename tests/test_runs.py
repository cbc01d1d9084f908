import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from same.config import Config, make_config
from same.errors import InputError
from same.graphs import GraphStore, planted, save_store, split
from same.runs import prepare, run

SMALL = Config(width=8, max_epochs=2, validate_every=1, batch_size=60)


def small(**changes) -> Config:
    return make_config(SMALL.model_dump() | changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"method": "classical"},
        {"method": "classical", "tasks": "nc"},
        {"method": "classical", "weighting": "gradnorm"},
        {"method": "classical", "weighting": "uncertainty"},
        {"method": "classical", "weighting": "upgrad"},
        {"method": "esame", "weighting": "uncertainty"},
        {"method": "isame", "weighting": "gradnorm", "tasks": "gc,lp"},
        {"method": "esame", "tasks": "lp"},
        {"method": "traditional"},
        {"method": "traditional", "adapts": "heads", "weighting": "uncertainty"},
        {"method": "finetuned", "tasks": "gc,nc"},
        {"method": "infomax"},
        {"method": "untrained"},
        {"method": "isame", "encoder": "gin", "walk": 3, "scaling": "row"},
        {"method": "esame", "inner_steps": 2},
        {"method": "finetuned", "tasks": "gc,nc", "weighting": "gradnorm"},
    ],
    ids=lambda changes: ",".join(map(str, changes.values())),
)
def test_everything_trains_and_repeats(tmp_path, changes):
    config = small(**changes)
    result = run(config, tmp_path / "a")
    run(config, tmp_path / "b")
    a, b = (load_file(tmp_path / name / "model.safetensors") for name in "ab")
    assert all(torch.equal(a[name], b[name]) for name in a)
    assert result["epochs"] == (0 if config.method == "untrained" else 2)
    first = next(name for name in a if name.startswith("encoder.layers.0.") and name.endswith("weight"))
    trained = not torch.equal(a[first], prepare(config).model.get_parameter(first))
    assert trained == (result["best"]["step"] > 0)


def test_all_methods_start_from_the_same_encoder_and_split():
    methods = ("isame", "classical", "traditional", "infomax", "finetuned")
    models = [prepare(small(method=method, tasks="gc,nc")) for method in methods]
    for other in models[1:]:
        assert (other.split.test == models[0].split.test).all()
        for a, b in zip(models[0].model.encoder.parameters(), other.model.encoder.parameters(), strict=True):
            assert torch.equal(a, b)


def test_scaling_is_fitted_on_training_graphs_alone():
    setting = prepare(small(split=3))
    of = np.repeat(np.arange(len(setting.store)), np.diff(setting.store.node_ptr))
    nodes = np.isin(of, setting.split.train)
    np.testing.assert_allclose(setting.store.inputs.mean, setting.store.x[nodes].mean(0), atol=1e-6)
    np.testing.assert_allclose(setting.store.inputs.scale, setting.store.x[nodes].std(0), atol=1e-6)


def test_fine_tuning_reuses_the_three_task_run_beside_it(tmp_path):
    config = small(method="finetuned", tasks="gc,lp")
    run(config, tmp_path / "alone")
    assert (tmp_path / "alone" / "first" / "result.json").is_file()

    first = small(method="classical")
    run(first, tmp_path / "study" / first.key)
    run(config, tmp_path / "study" / config.key)
    assert not (tmp_path / "study" / config.key / "first").exists()
    a, b = (load_file(path / "model.safetensors") for path in (tmp_path / "alone", tmp_path / "study" / config.key))
    assert all(torch.equal(a[name], b[name]) for name in a)

    history = (tmp_path / "alone" / "history.jsonl").read_text().splitlines()
    end_of_first = json.loads((tmp_path / "alone" / "first" / "result.json").read_text())["best"]["tasks"]
    for task in ("gc", "lp"):
        assert json.loads(history[0])["tasks"][task] == end_of_first[task]


def test_validation_graphs_without_examples_of_a_task_are_said(tmp_path):
    """Otherwise a loss of nothing would make the untrained model the best."""
    base = planted(60)
    ids = np.arange(60)
    lonely = split(base, 0).validation
    keep = np.repeat(~np.isin(ids, lonely), np.diff(base.edge_ptr))
    edges = base.edges + np.repeat(base.node_ptr[:-1], np.diff(base.edge_ptr))
    store = GraphStore.build(
        "lonely",
        x=base.x,
        sizes=np.diff(base.node_ptr),
        edge_index=edges[:, keep],
        graph_y=base.graph_y,
        node_y=base.node_y,
    )
    save_store(store, tmp_path / "lonely")
    config = small(dataset=str(tmp_path / "lonely"), batch_size=20)
    with pytest.raises(InputError, match="no examples of lp"):
        run(config, tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"method": "finetuned"}, "fine-tuning on all three tasks is classical training"),
        ({"weighting": "gradnorm", "tasks": "gc"}, "gradnorm balances several tasks, and there is only one"),
        ({"weighting": "uncertainty", "weights": {"gc": 2.0}}, "weights go with weighting=fixed"),
        ({"weighting": "upgrad", "method": "esame"}, "aggregators of gradients are for classical training"),
        ({"weighting": "gradnorm", "method": "infomax"}, "no task losses to weigh"),
        ({"learn_inner_lr": True, "method": "classical"}, "has no inner loop"),
        ({"learn_inner_lr": True, "first_order": True}, "needs second derivatives"),
        ({"adapts": "heads"}, "adapts is an option of method=traditional"),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_reason(changes, reason):
    with pytest.raises(InputError, match=reason):
        small(**changes)


def test_the_papers_caps():
    assert small(method="classical", tasks="gc", max_epochs=None).epochs == 1_000
    assert small(method="classical", max_epochs=None).epochs == 5_000
    assert small(method="esame", tasks="gc", max_epochs=None).epochs == 5_000
    assert small(method="traditional", max_epochs=None).epochs == 15_000
