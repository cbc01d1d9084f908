import pytest

from same.errors import InputError
from same.files import atomic
from same.study.engines.remote import RemoteFolder


def test_files_are_written_whole_and_hidden_ones_stay(tmp_path):
    folder, remote = tmp_path / "run", RemoteFolder(str(tmp_path / "remote"))
    for text in ("one", "two"):
        with atomic(folder / "first" / "history.jsonl") as temporary:
            temporary.write_text(text)
        (folder / ".hidden").write_text("")
        remote.upload(folder)
        assert [p.name for p in (tmp_path / "remote").rglob("*") if p.is_file()] == ["history.jsonl"]
        assert (tmp_path / "remote" / "first" / "history.jsonl").read_text() == text
    remote.check()


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("nothing://x", "--checkpoints: nothing://x"),
        ("/proc/x", "--checkpoints: /proc/x: cannot be written"),
    ],
)
def test_an_address_that_cannot_be_used_is_rejected(address, message):
    with pytest.raises(InputError, match=message):
        RemoteFolder(address).check()
