import numpy as np
import pytest
import torch

from helpers import random_store
from same.errors import InputError
from same.graphs import GraphBatch
from same.graphs.batch import Examples
from same.nn import Encoder
from same.nn.embedding import embed_graphs, encode_once, in_pieces, write_embeddings


@pytest.fixture
def store():
    return random_store(0, [6, 1, 9, 4] * 50, density=0.4)


@pytest.fixture
def encoder():
    torch.manual_seed(0)
    return Encoder(3, width=5)


def test_batches_encoded_as_one_equal_batches_encoded_one_by_one(store, encoder):
    batches = [store.cut([0]), store.cut([2, 1]), store.cut([3])]
    joined, sizes = GraphBatch.concat(batches)
    for h, batch in zip(encoder(joined).split(sizes), batches, strict=True):
        torch.testing.assert_close(h, encoder(batch))
    assert joined.graph_ids.tolist() == [0, 2, 1, 3]
    assert torch.equal(joined.node_ptr, torch.tensor([0, 6, 15, 16, 20]))
    torch.testing.assert_close(joined.mean(joined.x)[2], batches[1].x[9])
    np.testing.assert_array_equal(joined.edge_ptr.diff(), [b for x in batches for b in x.edge_ptr.diff()])


def test_examples_are_encoded_in_one_call_and_shared_inputs_once(store, encoder):
    first, second = store.cut([0, 1]), store.cut([2])
    sets = [Examples(first, torch.empty(0)), Examples(second, torch.empty(0)), Examples(first, torch.ones(2))]
    rows = []
    encoder.register_forward_hook(lambda module, inputs, output: rows.append(len(output)))
    encoded = encode_once(encoder, sets)
    assert rows == [16]
    for before, after in zip(sets, encoded, strict=True):
        assert after.inputs is before.inputs
        assert after.y is before.y
        torch.testing.assert_close(after.embeddings, encoder(before.inputs))


def test_a_large_batch_is_encoded_in_pieces(store, encoder):
    batch, rows = store.cut(np.arange(60)), []
    whole = encoder(batch)
    encoder.register_forward_hook(lambda module, inputs, output: rows.append(len(output)))
    torch.testing.assert_close(in_pieces(encoder, 50)(batch), whole)
    assert sum(rows) == batch.num_nodes
    assert max(rows) <= 50
    rows.clear()
    assert torch.equal(in_pieces(encoder)(batch), whole)
    assert len(rows) == 1


def test_embeddings_are_the_same_in_every_format_and_block(store, encoder, tmp_path, monkeypatch):
    whole = embed_graphs(encoder, store)
    monkeypatch.setattr("same.nn.embedding.CHUNK", 64)
    h, means = embed_graphs(encoder, store)
    np.testing.assert_allclose(h, whole[0], atol=1e-6)
    np.testing.assert_allclose(means, whole[1], atol=1e-6)
    write_embeddings(encoder, store, tmp_path / "e.npz")
    write_embeddings(encoder, store, tmp_path / "e", "npy")
    expected = {"embeddings": h, "graph_means": means, "node_ptr": store.node_ptr}
    expected["graph"] = np.repeat(np.arange(200), np.diff(store.node_ptr))
    with np.load(tmp_path / "e.npz") as zipped:
        assert set(zipped) == set(expected)
        for name, array in expected.items():
            mapped = np.load(tmp_path / "e" / f"{name}.npy", mmap_mode="r")
            assert np.array_equal(zipped[name], array)
            assert np.array_equal(mapped, array)
            assert mapped.dtype == zipped[name].dtype == array.dtype
    assert sorted(path.name for path in tmp_path.iterdir()) == ["e", "e.npz"]


def test_a_write_that_fails_leaves_nothing(store, encoder, tmp_path):
    (tmp_path / "e.npz").mkdir()
    with pytest.raises(InputError, match="is a folder; choose another name"):
        write_embeddings(encoder, store, tmp_path / "e.npz")
    assert [path.name for path in tmp_path.iterdir()] == ["e.npz"]
    with pytest.raises(InputError, match="format: 'csv' is not one of npz, npy"):
        write_embeddings(encoder, store, tmp_path / "e.csv", "csv")
