from pathlib import Path

import pytest

from same.config import PRESETS, Config, as_toml, make_config, parse_setting, read_config, read_settings, toml_value
from same.errors import InputError


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"widht": 3}, "there is no 'widht'; did you mean 'width'?"),
        ({"zzz": 3}, "there is no 'zzz'; the fields are dataset, method"),
        ({"width": 0}, "width: Input should be greater than or equal to 1, not 0"),
        ({"width": "wide"}, "width: Input should be a valid integer"),
        ({"inner_lr": -1}, "inner_lr: Input should be greater than 0"),
        ({"outer_lr": float("nan")}, "outer_lr: "),
        ({"max_seconds": 0}, "max_seconds: Input should be greater than 0"),
        ({"split": 10}, "split: Input should be less than or equal to 9"),
        ({"weights": {"gc": -1}}, "weights.gc: Input should be greater than or equal to 0"),
        ({"pool": "median"}, "pool: 'median' is not one of mean, sum, max, std, size, or several of them joined by +"),
        ({"pool": "max+max"}, "pool: 'max+max' is not one of mean"),
        ({"pool": 3}, "pool: Input should be a valid string"),
    ],
)
def test_a_mistake_is_reported_in_one_line(values, message):
    with pytest.raises(InputError) as caught:
        make_config(values, "my.toml")
    assert str(caught.value).startswith(f"my.toml: {message}")
    assert "\n" not in str(caught.value)


def test_the_key_is_the_configuration():
    assert Config().key == Config().key == make_config({"tasks": "gc,nc,lp"}).key
    assert Config().key != Config(split=1).key
    assert len(Config().key) == 12


def test_new_fields_do_not_change_the_keys_of_earlier_runs():
    """The keys as they are without the fields that have an absent value. Never change these."""
    assert Config().key == "83a6aa1d3113"
    assert Config(dataset="ENZYMES", method="isame", width=64).key == "3082d933b7c9"
    assert len({Config().key, Config(episodes_per_step=2).key, Config(linear_heads=True).key}) == 3
    assert Config(node_labels="none").key == Config().key != Config(node_labels="input").key


def test_files(tmp_path):
    (tmp_path / "a.toml").write_text('method = "isame"\n[weights]\ngc = 2.0\n')
    (tmp_path / "a.json").write_text('{"method": "isame", "weights": {"gc": 2.0}}')
    assert read_config(tmp_path / "a.toml") == read_config(tmp_path / "a.json")
    for name, text in (("b.toml", "x ="), ("b.json", "{"), ("c.json", "[1]"), ("d.json", "[" * 100_000)):
        (tmp_path / name).write_text(text)
        with pytest.raises(InputError, match=name):
            read_config(tmp_path / name)
    with pytest.raises(InputError, match="no such file"):
        read_config(tmp_path / "none.toml")


def test_settings():
    assert parse_setting("width=64") == ("width", 64)
    assert parse_setting("encoder=gin") == ("encoder", "gin")
    assert parse_setting("unit_norm=false") == ("unit_norm", False)
    assert parse_setting('weights={"gc": 2}') == ("weights", {"gc": 2})
    assert parse_setting("dataset=a=b") == ("dataset", "a=b")
    for text in ("width", "=3", ""):
        with pytest.raises(InputError, match="expected key=value"):
            parse_setting(text)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"weighting": "gradnorm", "tasks": "gc"}, "gradnorm balances several tasks, and there is only one"),
        ({"weighting": "uncertainty", "weights": {"gc": 2.0}}, "weights go with weighting=fixed"),
    ],
)
def test_contradictory_settings_are_rejected(changes, reason):
    with pytest.raises(InputError, match=reason):
        make_config(changes)


def test_toml_can_be_read_again(tmp_path):
    config = Config(seed=3, weights={"gc": 1.5})
    (tmp_path / "a.toml").write_text(as_toml(config))
    assert make_config(read_settings(tmp_path / "a.toml")) == config
    assert as_toml(config).splitlines()[1] == 'dataset = "planted"'
    assert toml_value({"gc": [1.5, True]}) == '{"gc" = [1.5, true]}'


def test_presets_are_configurations():
    for name, values in PRESETS.items():
        assert read_settings(Path(name)) == values
        assert make_config(values, name).model_dump(include=set(values)) == values


def test_the_key_leaves_out_fields_at_their_absent_values():
    key = Config().key
    assert Config(linear_heads=False, episodes_per_step=1, max_seconds=None, pool="mean").key == key
    changes = ({"linear_heads": True}, {"max_seconds": 60}, {"pool": "sum"}, {"node_labels": "input"})
    assert len({key, *(Config(**each).key for each in changes)}) == 5
    assert Config(width=8).key != key
    for name, field in Config.model_fields.items():
        if isinstance(field.json_schema_extra, dict):
            assert "absent" in field.json_schema_extra, name
