import pytest

from same.config import Config, make_config
from same.errors import InputError
from same.methods.base import make_method
from same.methods.registry import METHODS, get


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"method": "finetuned"}, "fine-tuning on all three tasks is classical training"),
        ({"weighting": "gradnorm", "method": "infomax"}, "no task losses to weigh"),
        ({"weighting": "gradnorm", "method": "untrained"}, "no task losses to weigh"),
        ({"adapts": "head"}, "adapts is an option of method=traditional"),
        ({"method": "esmae"}, r"there is no 'esmae'; did you mean 'esame'\?"),
    ],
)
def test_settings_that_contradict_the_method_are_rejected(changes, reason):
    with pytest.raises(InputError, match=reason):
        make_method(make_config(changes))


@pytest.mark.parametrize("name", METHODS)
def test_every_method_describes_itself(name):
    config = Config(method=name, tasks=("gc", "nc"))
    method = make_method(config)
    assert method.name == name
    assert METHODS[name].summary
    assert "\n" not in METHODS[name].summary
    assert get(name) is type(method)
