"""One format for runs and saved models: damage is noticed, and folders of version 0.1 are read."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from same import GraphEncoder, InputError, saved
from same.config import Config
from same.experiment import run
from same.files import digests, write_json
from same.graphs import GraphStore, planted
from same.saved import load_trained

FIXTURES = Path(__file__).parent / "fixtures"
SMALL = {"width": 8, "max_epochs": 1, "validate_every": 1, "batch_size": 20}


@pytest.fixture(scope="module")
def fitted() -> GraphEncoder:
    return GraphEncoder(**SMALL).fit(planted(60))


def expected(name: str) -> tuple[GraphStore, dict[str, np.ndarray]]:
    arrays = dict(np.load(FIXTURES / name / "expected.npz"))
    store = GraphStore.build("expected", x=arrays["x"], sizes=arrays["sizes"], edge_index=arrays["edges"])
    return store, arrays


def test_a_model_of_version_0_1_gives_what_it_gave(tmp_path):
    store, arrays = expected("model-0.1")
    model = GraphEncoder.load(FIXTURES / "model-0.1")
    np.testing.assert_allclose(model.transform(store), arrays["embeddings"], atol=1e-5)
    for task in ("gc", "nc"):
        np.testing.assert_allclose(model.predict_proba(store, task=task), arrays[f"{task}_proba"], atol=1e-5)
        assert (model.predict(store, task=task) == arrays[f"{task}_predicted"]).all()
    model.save(tmp_path / "again")
    np.testing.assert_allclose(GraphEncoder.load(tmp_path / "again").transform(store), arrays["embeddings"], atol=1e-5)


def test_a_run_of_version_0_1_embeds_and_says_that_it_has_no_heads():
    store, arrays = expected("run-0.1")
    model = GraphEncoder.load(FIXTURES / "run-0.1")
    np.testing.assert_allclose(model.transform(store), arrays["embeddings"], atol=1e-5)
    with pytest.raises(InputError, match="gc"):
        model.predict(store, task="gc")


def test_the_folder_of_a_run_is_that_of_a_model(tmp_path):
    config = Config(**SMALL | {"batch_size": 60})
    run(config, tmp_path / "run")
    model = GraphEncoder.load(tmp_path / "run")
    model.save(tmp_path / "model")
    one, other = (load_file(tmp_path / name / "model.safetensors") for name in ("run", "model"))
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert load_trained(tmp_path / "model").config == config
    assert saved.finished(tmp_path / "model")["key"] == saved.finished(tmp_path / "run")["key"] == config.key


def test_the_key_leaves_out_fields_at_their_absent_values():
    key = Config().key
    assert Config(linear_heads=False, episodes_per_step=1).key == key
    assert Config(linear_heads=True).key != key
    assert Config(width=8).key != key
    for name, field in Config.model_fields.items():
        if isinstance(field.json_schema_extra, dict):
            assert "absent" in field.json_schema_extra, name


def spoil(folder, **changes):
    about = json.loads((folder / "config.json").read_text())
    del about["sha256"]
    (folder / "config.json").write_text(json.dumps(about | changes))
    reseal(folder)


def reseal(folder):
    """The result vouches for what is there now."""
    result = json.loads((folder / "result.json").read_text())
    del result["sha256"]
    result["files"] = digests(folder, result["files"])
    write_json(folder / "result.json", result)


def flip(folder, name):
    content = bytearray((folder / name).read_bytes())
    content[content.index(b"planted") if name == "config.json" else -9] ^= 1
    (folder / name).write_bytes(content)


def change(folder, name, value):
    tensors = load_file(folder / "model.safetensors")
    tensors.pop(name, None)
    if value is not None:
        tensors[name] = value
    save_file(tensors, folder / "model.safetensors")
    reseal(folder)


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (lambda f: (f / "config.json").unlink(), "holds no model"),
        (lambda f: (f / "config.json").write_text("{"), "cannot be read as JSON"),
        (lambda f: (f / "result.json").unlink(), "the run is not finished; `same train`"),
        (lambda f: spoil(f, format=3), "is in format 3, this version reads up to 2"),
        (lambda f: spoil(f, config={"widht": 8}), "there is no 'widht'; did you mean 'width'"),
        (lambda f: spoil(f, graphs=None), "does not fit its configuration"),
        (lambda f: (f / "model.safetensors").unlink(), "model.safetensors: is missing"),
        (lambda f: (f / "model.safetensors").write_bytes(b"\0" * 100), "is damaged"),
        (lambda f: flip(f, "config.json"), "checksum mismatch"),
        (lambda f: flip(f, "model.safetensors"), "checksum mismatch"),
        (lambda f: flip(f, "history.jsonl"), "checksum mismatch"),
        (lambda f: change(f, "model.encoder.layers.0.weight", None), r"Missing key.*encoder\.layers\.0\.weight"),
        (lambda f: change(f, "model.encoder.layers.9.weight", torch.ones(1)), r"Unexpected key.*layers\.9\.weight"),
        (
            lambda f: change(f, "model.encoder.layers.1.bias", torch.ones(9)),
            r"size mismatch for encoder\.layers\.1\.bias",
        ),
        (lambda f: change(f, "adapted.gc.heads.gc.out.bias", torch.ones(9)), r"size mismatch for heads\.gc\.out\.bias"),
        (lambda f: change(f, "inputs.mean", torch.ones(5)), "inputs of 5 attributes, expected 24"),
    ],
)
def test_a_damaged_folder_is_refused_in_one_line(tmp_path, fitted, harm, message):
    fitted.save(tmp_path / "model")
    harm(tmp_path / "model")
    with pytest.raises(InputError, match=message) as caught:
        GraphEncoder.load(tmp_path / "model")
    assert "\n" not in str(caught.value)
