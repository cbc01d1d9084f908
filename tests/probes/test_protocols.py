import numpy as np
import pytest
import torch

from same.config import Config
from same.episodes import part_examples
from same.errors import InputError
from same.experiment import prepare
from same.graphs import GraphStore, planted
from same.probes.protocols import ReleasedLinks, make_cases, probe_examples
from same.tasks import make_tasks


def test_released_links_are_the_last_edges_and_the_first_gaps():
    store = GraphStore.build(
        "path",
        x=np.zeros((6, 1)),
        sizes=[6],
        edge_index=[[0, 1, 2, 3, 4, 0, 0, 0, 1, 1], [1, 2, 3, 4, 5, 2, 3, 4, 4, 5]],
    )
    links = ReleasedLinks().examples(store.cut([0]), np.random.default_rng(0))
    pairs = {y: [tuple(p) for p in links.index[:, links.y == y].T.tolist()] for y in (1, 0)}
    assert pairs == {1: [(3, 4), (4, 5)], 0: [(0, 5), (1, 3)]}
    assert links.inputs.edges.shape[1] == 10


def test_held_out_edges_are_in_no_adjacency_used_to_embed():
    experiment = prepare(Config(width=8, split=2))
    (case,) = make_cases(make_tasks(["lp"], experiment.store), ["paper"])
    sets = probe_examples(experiment, [case])
    for part, examples in sets[case].items():
        held_out = examples.index[:, examples.y == 1].T.tolist()
        adjacency = examples.inputs.adjacency.to_dense()
        assert held_out
        assert all(adjacency[u, v] == 0 == adjacency[v, u] for u, v in held_out), part
        assert (examples.y == 1).sum() == (examples.y == 0).sum()


def test_only_link_prediction_differs_between_protocols():
    store = planted(30)
    cases = make_cases(make_tasks(["gc", "nc", "lp"], store), ["paper", "released"])
    assert [(case.protocol, case.task.name) for case in cases] == [
        ("paper", "gc"),
        ("paper", "nc"),
        ("paper", "lp"),
        ("released", "lp"),
    ]
    (alone,) = make_cases(make_tasks(["gc"], store), ["released"])
    assert (alone.protocol, alone.task.name) == ("released", "gc")
    assert [type(case.task) is ReleasedLinks for case in cases] == [False, False, False, True]
    with pytest.raises(InputError, match="protocol: 'x' is not one of paper, released"):
        make_cases([], ["paper", "x"])


def test_examples_do_not_depend_on_the_other_tasks_and_share_their_graphs():
    experiment = prepare(Config(width=8, split=1))
    store, parts = experiment.store, experiment.split
    tasks = make_tasks(["gc", "nc", "lp"], store)
    gc, nc, lp, released = make_cases(tasks, ["paper", "released"])
    sets = probe_examples(experiment, [gc, nc, lp, released])
    alone = probe_examples(experiment, [lp])
    for part in ("train", "validation", "test"):
        assert torch.equal(sets[lp][part].index, alone[lp][part].index)
        # What is encoded once serves all of them.
        assert sets[gc][part].inputs is sets[nc][part].inputs is sets[released][part].inputs
        ((task, examples),) = part_examples(store, getattr(parts, part), [tasks[2]], part, seed=0, split=1)
        assert task is tasks[2]
        assert torch.equal(examples.index, sets[lp][part].index)
