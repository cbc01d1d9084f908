"""Atomic writes, locks, and checksums that notice damage."""

import errno
import json
from contextlib import suppress

import pytest
import torch

from same.errors import DamagedError, InputError
from same.files import (
    atomic,
    check_digests,
    clean,
    digests,
    is_free,
    load_tensors,
    locked,
    read_header,
    read_json,
    save_tensors,
    seal,
    unseal,
    write_json,
)
from trust.faults import captured_warnings


def test_a_write_replaces_a_file_and_creates_its_folders(tmp_path):
    for text in ("one", "two"):
        with atomic(tmp_path / "a" / "b" / "file") as temporary:
            temporary.write_text(text)
        assert (tmp_path / "a" / "b" / "file").read_text() == text
    assert [path.name for path in (tmp_path / "a" / "b").iterdir()] == ["file"]


def test_a_folder_is_written_whole_and_never_over_another(tmp_path):
    with atomic(tmp_path / "folder", folder=True) as temporary:
        (temporary / "file").write_text("")
    with pytest.raises(InputError, match="exists already"), atomic(tmp_path / "folder", folder=True):
        pass
    with suppress(KeyboardInterrupt), atomic(tmp_path / "other", folder=True) as temporary:
        (temporary / "file").write_text("")
        raise KeyboardInterrupt
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_an_interrupted_write_leaves_the_old_file(tmp_path):
    write_json(tmp_path / "a.json", {"a": 1})
    with suppress(KeyboardInterrupt), atomic(tmp_path / "a.json") as temporary:
        temporary.write_text("half")
        raise KeyboardInterrupt
    assert read_json(tmp_path / "a.json") == {"a": 1}
    assert len(list(tmp_path.iterdir())) == 1


def test_a_link_stays_a_link(tmp_path):
    write_json(tmp_path / "file", {})
    (tmp_path / "link").symlink_to("file")
    write_json(tmp_path / "link", {"a": 1})
    assert (tmp_path / "link").is_symlink()
    assert read_json(tmp_path / "file") == {"a": 1}


def test_hidden_files_leave_a_folder_free(tmp_path):
    assert is_free(tmp_path / "missing")
    (tmp_path / ".file.0a1b2c3d.part").write_text("")
    assert is_free(tmp_path)
    (tmp_path / "file").write_text("")
    assert not is_free(tmp_path)


def test_cleaning_removes_old_partial_files_only(tmp_path):
    partial = tmp_path / "deep" / ".store.0a1b2c3d.part"
    partial.mkdir(parents=True)
    for name in (".mine", ".download.part", "file.0a1b2c3d.part"):
        (tmp_path / name).write_text("")
    clean(tmp_path, seconds=60)
    assert partial.is_dir()
    clean(tmp_path)
    assert sorted(path.name for path in tmp_path.rglob("*")) == [
        ".download.part",
        ".mine",
        "deep",
        "file.0a1b2c3d.part",
    ]


def test_a_folder_is_locked_by_one_process_at_a_time(tmp_path):
    with locked(tmp_path / "new"):
        with pytest.raises(InputError, match="another process is working here"), locked(tmp_path / "new", wait=0.2):
            pass
        (tmp_path / "new" / "file").write_text("")
    with locked(tmp_path / "new"), locked(tmp_path / "empty"):
        pass
    assert (tmp_path / "new").is_dir()
    assert not (tmp_path / "empty").exists()


def test_a_folder_that_cannot_be_locked_is_reported(tmp_path, monkeypatch):
    import fcntl

    def refuse(*args):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with captured_warnings() as lines, locked(tmp_path):
        pass
    assert "cannot be locked (No locks available)" in lines[0]


def test_sealed_values_are_read_unchanged_or_not_at_all(tmp_path):
    values = {"a": [1, 2.5, None], "b": {"ü": "x"}, "c": (1, 2)}
    write_json(tmp_path / "a.json", values)
    assert read_json(tmp_path / "a.json") == {**values, "c": [1, 2]}
    text = seal(values)
    assert unseal(json.dumps({"a": 1})) == {"a": 1}  # Without a checksum, as older versions wrote it.
    for i, letter in enumerate(text):
        other = text[:i] + chr(ord(letter) ^ 1) + text[i + 1 :]
        try:
            read = unseal(other)
        except ValueError:
            continue
        assert {key: read[key] for key in values if key in read} == json.loads(json.dumps(values))
    with pytest.raises(ValueError, match="checksum mismatch"):
        unseal(text.replace("2.5", "3.5"))
    (tmp_path / "a.json").write_text("[" * 100_000)
    with pytest.raises(DamagedError, match=r"a\.json: is damaged"):
        read_json(tmp_path / "a.json")


def test_tensors_of_every_type_are_read_unchanged(tmp_path):
    tensors = {
        "empty": torch.empty(0, 3, dtype=torch.float64),
        "scalar": torch.tensor(3),
        "bool": torch.tensor([True]),
        "half": torch.ones(3, dtype=torch.bfloat16),
        "transposed": torch.arange(6.0).reshape(2, 3).T.contiguous(),
    }
    save_tensors(tensors, tmp_path / "file", {"a": 1})
    read, header = load_tensors(tmp_path / "file")
    assert header == {"a": 1}
    assert read.keys() == tensors.keys()
    assert all(torch.equal(read[name], value) and read[name].dtype == value.dtype for name, value in tensors.items())


def test_the_header_is_read_without_the_tensors_and_either_is_checked(tmp_path):
    path = tmp_path / "file"
    save_tensors({"a": torch.arange(9.0)}, path, {"step": 3})
    assert read_header(path) == {"step": 3}
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    assert read_header(path) == {"step": 3}
    with pytest.raises(DamagedError, match=r"file: is damaged \(checksum mismatch"):
        load_tensors(path)
    content[content.index(b"step")] ^= 1
    path.write_bytes(content)
    with pytest.raises(DamagedError, match="file: is damaged"):
        read_header(path)
    with pytest.raises(FileNotFoundError):
        read_header(tmp_path / "missing")


def test_digests_notice_changed_and_missing_files(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).write_text(name)
    expected = digests(tmp_path, ("a", "b"))
    check_digests(tmp_path, expected)
    (tmp_path / "b").write_text("c")
    with pytest.raises(DamagedError, match=r"b: is damaged \(checksum mismatch"):
        check_digests(tmp_path, expected)
    (tmp_path / "b").unlink()
    with pytest.raises(DamagedError, match="b: is missing"):
        check_digests(tmp_path, expected)
