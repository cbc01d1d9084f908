import subprocess
import sys

import pytest

from same.errors import InputError
from same.methods import registry
from same.methods.classical import Classical


@pytest.fixture
def restored(monkeypatch):
    monkeypatch.setattr(registry, "METHODS", dict(registry.METHODS))
    monkeypatch.setattr(registry, "_REGISTERED", {})


@pytest.mark.usefixtures("restored")
def test_a_method_is_loaded_from_a_file_and_registered(tmp_path):
    (tmp_path / "mine.py").write_text(
        "from same.methods import Classical\n\n\nclass Mine(Classical):\n    name = 'mine'\n    summary = 'a test'\n"
    )
    assert registry.load(f"{tmp_path / 'mine.py'}:Mine") == "mine"
    assert registry.get("mine").summary == "a test"
    assert registry.METHODS["mine"].summary == "a test"


@pytest.mark.usefixtures("restored")
@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("nowhere.py:Mine", "there is no file nowhere.py"),
        ("same.methods.classical:Clasical", "cannot be imported"),
        ("no_such_package:Mine", "cannot be imported"),
        ("same.config:Config", "needs a name"),
    ],
)
def test_what_cannot_be_loaded_is_refused_in_one_line(source, reason):
    with pytest.raises(InputError, match=reason) as caught:
        registry.load(source)
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("restored")
def test_a_name_that_is_taken_is_refused():
    class Other(Classical):
        summary = "another"

    with pytest.raises(InputError, match="'classical' is taken"):
        registry.register(Other)


def test_the_registry_is_imported_without_torch():
    code = "import sys; import same.methods.registry; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
