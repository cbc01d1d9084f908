import shutil
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from same import GraphEncoder, InputError
from same.graphs import planted

FILES = {"config.json", "model.safetensors", "history.jsonl", "result.json"}
NEW = planted(12, seed=1)


@pytest.fixture(scope="module")
def fitted() -> GraphEncoder:
    return GraphEncoder(width=8, max_epochs=1, validate_every=1, batch_size=20).fit(planted(60))


def test_the_hub(tmp_path, fitted, monkeypatch):
    fitted.save(tmp_path / "model")
    expected = fitted.transform(NEW)
    assert np.array_equal(GraphEncoder.from_pretrained(tmp_path / "model").transform(NEW), expected)

    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    for use in (fitted.push_to_hub, GraphEncoder.from_pretrained):
        with pytest.raises(InputError, match=r"needs huggingface_hub: pip install 'same-gnn\[hub\]'"):
            use("me/model")

    made = []

    def upload(*, repo_id, folder_path, allow_patterns):
        GraphEncoder.load(folder_path)
        (tmp_path / "hub" / repo_id).parent.mkdir(parents=True)
        shutil.copytree(folder_path, tmp_path / "hub" / repo_id)

    def download(repo_id, *, revision, allow_patterns):
        assert set(allow_patterns) == FILES
        return str(tmp_path / "hub" / repo_id)

    hub = SimpleNamespace(
        create_repo=lambda repo_id, *, private, exist_ok: made.append((repo_id, exist_ok)),
        upload_folder=upload,
        snapshot_download=download,
    )
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    fitted.push_to_hub("me/model")
    assert made == [("me/model", True)]
    assert np.array_equal(GraphEncoder.from_pretrained("me/model").transform(NEW), expected)
    for odd in ("model", "./not/there", "/not/there", tmp_path / "nothing"):
        with pytest.raises(InputError, match="is neither an existing folder nor a repository"):
            GraphEncoder.from_pretrained(odd)
