import torch
from safetensors.torch import load_file

from same import GraphEncoder
from same.config import Config
from same.experiment import run
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
