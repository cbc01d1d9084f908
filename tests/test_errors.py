import pytest

from same.errors import DamagedError, InputError


@pytest.mark.parametrize("kind", [InputError, DamagedError])
def test_mistakes_can_be_caught_as_value_errors(kind):
    """As scikit-learn and its tools expect."""
    with pytest.raises(ValueError, match="one line"):
        raise kind("one line")
