import pytest

from same.errors import InputError
from same.weighting import Balanced, GradNorm, Jacobian, Uncertainty, Weighting, make_weighting


def test_weightings_are_made_by_name():
    kinds = {"fixed": Weighting, "uncertainty": Uncertainty, "gradnorm": GradNorm, "balanced": Balanced}
    for name, kind in {**kinds, "upgrad": Jacobian}.items():
        assert type(make_weighting(name, ["a", "b"])) is kind
    assert make_weighting("fixed", ["a", "b"], {"a": 2.0}).weights == {"a": 2.0}


def test_an_unknown_name_is_refused():
    with pytest.raises(InputError, match=r"is neither fixed, uncertainty, gradnorm, balanced nor one of .*upgrad"):
        make_weighting("magic", ["a", "b"])
