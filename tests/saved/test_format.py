"""Damage to the folder of a model is noticed and reported in one line."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from same import GraphEncoder, InputError
from same.files import digests, write_json
from same.graphs import planted
from same.saved import finished


@pytest.fixture(scope="module")
def fitted() -> GraphEncoder:
    return GraphEncoder(width=8, max_epochs=1, validate_every=1, batch_size=20).fit(planted(60))


def test_a_run_without_a_result_is_not_finished(tmp_path, fitted):
    fitted.save(tmp_path / "model")
    assert finished(tmp_path / "model")["key"] == fitted.trained_.config.key
    (tmp_path / "model" / "result.json").unlink()
    assert finished(tmp_path / "model") is None


def spoil(folder, **changes):
    about = json.loads((folder / "config.json").read_text())
    del about["sha256"]
    (folder / "config.json").write_text(json.dumps(about | changes))
    reseal(folder)


def reseal(folder):
    """Write the checksums of the changed files into the result."""
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


def test_a_folder_written_before_a_field_existed_has_its_absent_value(tmp_path, fitted):
    fitted.save(tmp_path / "model")
    config = fitted.trained_.config.model_dump(mode="json")
    for name in ("node_labels", "linear_heads"):
        del config[name]
    spoil(tmp_path / "model", config=config)
    loaded = GraphEncoder.load(tmp_path / "model")
    assert loaded.trained_.config == fitted.trained_.config
    assert (loaded.transform(planted(9)) == fitted.transform(planted(9))).all()


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
