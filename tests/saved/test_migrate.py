"""Folders of version 0.1 are read, or say what they lack."""

from pathlib import Path

import numpy as np
import pytest

from same import GraphEncoder, InputError
from same.graphs import GraphStore

FIXTURES = Path(__file__).parents[1] / "fixtures"


def expected(name: str) -> tuple[GraphStore, dict[str, np.ndarray]]:
    arrays = dict(np.load(FIXTURES / name / "expected.npz"))
    store = GraphStore.build("expected", x=arrays["x"], sizes=arrays["sizes"], edge_index=arrays["edges"])
    return store, arrays


def test_a_model_of_version_0_1_gives_what_it_gave(tmp_path):
    store, arrays = expected("model-0.1")
    model = GraphEncoder.load(FIXTURES / "model-0.1")
    np.testing.assert_allclose(model.transform(store), arrays["embeddings"], atol=1e-5)
    for task in ("gc", "nc"):
        np.testing.assert_allclose(
            model.predict_proba(store, task=task, head="own"), arrays[f"{task}_proba"], atol=1e-5
        )
        assert (model.predict(store, task=task, head="own") == arrays[f"{task}_predicted"]).all()
    with pytest.raises(InputError, match=r"version 0\.1\.0, has no linear heads; use head=.own."):
        model.predict(store, task="gc")
    model.save(tmp_path / "again")
    np.testing.assert_allclose(GraphEncoder.load(tmp_path / "again").transform(store), arrays["embeddings"], atol=1e-5)


def test_a_run_of_version_0_1_embeds_and_says_that_it_has_no_heads():
    store, arrays = expected("run-0.1")
    model = GraphEncoder.load(FIXTURES / "run-0.1")
    np.testing.assert_allclose(model.transform(store), arrays["embeddings"], atol=1e-5)
    with pytest.raises(InputError, match="gc"):
        model.predict(store, task="gc")
