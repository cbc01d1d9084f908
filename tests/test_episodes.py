import numpy as np
import pytest

from helpers import random_store
from same.episodes import (
    EpisodeSampler,
    concurrent_batch,
    concurrent_episode,
    sample_graphs,
    validation_episodes,
    whole_episode,
)
from same.errors import InputError
from same.tasks import make_tasks


@pytest.fixture
def store():
    return random_store(0, [6] * 40, density=0.4)


def graphs_of(episode):
    """The graphs of each task."""
    graphs = {}
    for task, support, target in episode:
        graphs[task.name] = sorted({*support.inputs.graph_ids.tolist(), *target.inputs.graph_ids.tolist()})
    return graphs


def test_an_epoch_deals_every_graph_to_one_task_once(store):
    tasks = make_tasks(["gc", "nc", "lp"], store)
    sampler = EpisodeSampler(store, np.arange(5, 40), tasks, batch_size=10)
    assert sampler.steps == 4
    seen = []
    for step in range(sampler.steps):
        dealt = graphs_of(sampler.draw(0, step))
        sizes = [len(ids) for ids in dealt.values()]
        assert max(sizes) - min(sizes) <= 1
        seen += [g for ids in dealt.values() for g in ids]
    assert sorted(seen) == list(range(5, 40))


def test_over_many_epochs_every_graph_serves_every_task_equally(store):
    sampler = EpisodeSampler(store, np.arange(40), make_tasks(["gc", "nc", "lp"], store), batch_size=10)
    counts = {name: np.zeros(40) for name in ("gc", "nc", "lp")}
    for epoch in range(150):
        for step in range(sampler.steps):
            for name, ids in graphs_of(sampler.draw(epoch, step)).items():
                counts[name][ids] += 1
    for name in counts:
        assert abs(counts[name].sum() / 150 - 40 / 3) < 0.5
        assert counts[name].min() > 25


def test_draws_depend_on_seed_split_epoch_and_step_alone(store):
    tasks = make_tasks(["gc", "nc", "lp"], store)

    def drawn(*, seed=0, split=0, epoch=0, step=0, before=()):
        sampler = EpisodeSampler(store, np.arange(40), tasks, batch_size=10, seed=seed, split=split)
        for other in before:
            sampler.draw(*other)
        return [e.index.tolist() for _, s, t in sampler.draw(epoch, step) for e in (s, t) if e.index is not None]

    assert drawn() == drawn(before=[(3, 1), (0, 2)])
    others = [drawn(seed=1), drawn(split=1), drawn(epoch=1), drawn(step=1)]
    assert all(drawn() != other for other in others)


def test_validation_uses_all_graphs_for_every_task_and_never_changes(store):
    tasks = make_tasks(["gc", "nc", "lp"], store)
    ids = np.array([3, 9, 17, 20, 31])
    first, second = (validation_episodes(whole_episode, store, tasks, ids, count=2) for _ in range(2))
    for a, b in zip(first, second, strict=True):
        assert graphs_of(a) == graphs_of(b) == dict.fromkeys(("gc", "nc", "lp"), ids.tolist())
        for part, other in zip(a, b, strict=True):
            assert part.target.y.tolist() == other.target.y.tolist()
    assert first[0][2].target.index.tolist() != first[1][2].target.index.tolist()


def test_a_concurrent_batch_has_all_tasks_on_every_graph(store):
    tasks = make_tasks(["gc", "nc", "lp"], store)
    (_, gc), (_, nc), (_, lp) = concurrent_batch(store, tasks, np.arange(7), np.random.default_rng(0))
    assert gc.inputs is nc.inputs
    assert len(gc.y) == gc.inputs.num_graphs == 7
    assert len(nc.y) == gc.inputs.num_nodes
    kept, hidden = ({tuple(sorted(e)) for e in pairs.T.tolist()} for pairs in (lp.inputs.edges, lp.index[:, lp.y == 1]))
    assert kept | hidden == {tuple(e) for e in gc.inputs.edges.T.tolist()}
    assert not kept & hidden
    assert (lp.y == 1).sum() == (lp.y == 0).sum()
    assert not {tuple(sorted(e)) for e in lp.index[:, lp.y == 0].T.tolist()} & (kept | hidden)


def test_support_and_target_of_a_concurrent_episode_are_different_graphs(store):
    tasks = make_tasks(["gc", "nc", "lp"], store)
    support, target = concurrent_episode(store, tasks, np.arange(10), np.random.default_rng(0))
    sides = [{tuple(e.inputs.graph_ids.tolist()) for _, e in side} for side in (support, target)]
    assert [len(side) for side in sides] == [1, 1]
    a, b = (set(next(iter(side))) for side in sides)
    assert (len(a), len(b)) == (6, 4)
    assert a | b == set(range(10))


def test_the_validation_examples_of_a_task_do_not_depend_on_other_tasks(store):
    ids = np.arange(12)
    for build in (whole_episode, concurrent_batch):
        alone, among = (
            validation_episodes(build, store, make_tasks(names, store), ids)[0]
            for names in (["lp"], ["nc", "gc", "lp"])
        )
        assert alone[-1][-1].index.tolist() == among[-1][-1].index.tolist()


@pytest.mark.parametrize("graphs", range(12, 40, 3))
def test_every_batch_has_two_graphs_for_each_task(store, graphs):
    sampler = EpisodeSampler(store, np.arange(graphs), make_tasks(["gc", "nc", "lp"], store), batch_size=6)
    for step in range(sampler.steps):
        assert all(len(ids) >= 2 for ids in graphs_of(sampler.draw(0, step)).values())


def test_too_few_graphs_are_refused(store):
    tasks = make_tasks(["gc", "nc", "lp"], store)
    with pytest.raises(InputError, match="batch_size: 3 tasks need at least 6 graphs per episode, not 5 of 40"):
        EpisodeSampler(store, np.arange(40), tasks, batch_size=5)
    with pytest.raises(InputError, match="at least two are needed"):
        validation_episodes(whole_episode, store, tasks, np.arange(1))


def test_validation_of_a_large_set_is_a_sample(monkeypatch):
    monkeypatch.setattr("same.episodes.VALIDATION_NODES", 900)
    store = random_store(0, [3] * 700)
    ids, tasks = np.arange(store.num_graphs), make_tasks(["gc", "nc"], store)
    episodes = validation_episodes(whole_episode, store, tasks, ids, count=2)
    for episode in episodes:
        nodes = sum(part[1].inputs.num_nodes for part in episode if part.task.name == "nc")
        assert 0.99 * 900 < nodes <= 900
    sets = [set(episode[1].support.inputs.graph_ids.tolist()) for episode in episodes]
    assert sets[0] != sets[1]
    again = validation_episodes(whole_episode, store, tasks, ids, count=2)
    assert sets[0] == set(again[0][1].support.inputs.graph_ids.tolist())
    assert len(episodes[0][0].target.y) > 80


def test_support_and_target_are_disjoint_on_a_real_set(real_sets):
    """The nodes of ENZYMES are sorted by type, and some are isolated."""
    from same.graphs import load, split

    store = load("ENZYMES", real_sets)
    train = split(store, 0).train
    sampler = EpisodeSampler(store, train, make_tasks(["gc", "nc", "lp"], store), batch_size=24)
    for step in range(sampler.steps):
        (_, gs, gt), (_, ns, nt), (_, ls, lt) = sampler.draw(0, step)
        assert not set(gs.inputs.graph_ids.tolist()) & set(gt.inputs.graph_ids.tolist())
        assert not set(ns.index.tolist()) & set(nt.index.tolist())
        kept = {tuple(e) for e in ls.inputs.edges.T.tolist()}
        assert not kept & {tuple(sorted(e)) for e in lt.index.T.tolist()}
        assert set(gs.inputs.graph_ids.tolist()) <= set(train.tolist())


def test_a_sample_of_graphs_is_bounded_in_graphs_and_nodes(store):
    ids = np.arange(3, 39)
    assert sample_graphs(store, ids, 36 * 6, seed=0, split=0) is ids
    for limits, count in (({"nodes": 60}, 10), ({"nodes": 1000, "most": 7}, 7), ({"nodes": 60, "most": 20}, 10)):
        some = sample_graphs(store, ids, **limits, seed=0, split=0)
        assert abs(len(some) - count) <= 1
        assert (np.diff(some) > 0).all()
        assert set(some) <= set(ids)
        assert np.array_equal(some, sample_graphs(store, ids, **limits, seed=0, split=0))
        assert not np.array_equal(some, sample_graphs(store, ids, **limits, seed=1, split=0))
