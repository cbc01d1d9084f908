from typer.testing import CliRunner

from same.cli import app
from same.errors import InputError
from tuning.searches import SEARCH, run_search


def test_invalid_options_are_reported_before_anything_is_written(tmp_path):
    out = ["--out", tmp_path / "t"]
    run_search(tmp_path / "other", 1, SEARCH)
    for arguments, message in [
        (["tune"], "tune needs a DATASET and --out"),
        (["tune", "planted", *out, "-m", "my.py:Mine"], "--method: a search needs a registered name"),
        (["tune", "planted", *out, "-m", "untrained"], "untrained has no validation score"),
        (["tune", "planted", *out, "--split", "10"], "split"),
        (["tune", "planted", *out, "--set", "seed=1"], "--set: seed has an option of its own"),
        (["tune", "planted", *out, "--set", "widht=1"], "did you mean 'width'"),
        (["tune", "planted", *out, "-t", "xx"], "xx"),
        (["tune", "planted", *out, "--sampler", "magic"], "--sampler: 'magic' is not one of"),
        (["tune", "planted", *out, "--engine", "magic"], "--engine: 'magic' is not one of"),
        (["tune", "planted", *out, "--address", "host:1"], "--address: needs --engine ray"),
        (["tune", "planted", "--out", tmp_path / "other", "--sampler", "random"], "contains a search with different"),
        (["study", *out, "--tuned", tmp_path], "contains no configurations"),
    ]:
        result = CliRunner().invoke(app, list(map(str, arguments)))
        assert isinstance(result.exception, InputError), arguments
        assert message in str(result.exception)
        assert not (tmp_path / "t").exists()
