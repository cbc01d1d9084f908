"""Tensors in files that tell when they were damaged."""

import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors
import torch
from safetensors.torch import save
from torch import Tensor

from same.errors import DamagedError
from same.files import seal, unseal

_STATE, _SUM = "state", "crc32"


def save_tensors(tensors: Mapping[str, Tensor], path: Path, about: Mapping[str, Any] | None = None) -> None:
    """Writes tensors, and values about them, in safetensors' format, with a checksum of both.

    Args:
        tensors: by name.
        path: the file.
        about: plain values, which `read_about` reads without the tensors.
    """
    text = seal({**(about or {}), _SUM: _checksum(tensors)})
    # Not its save_file, which has a temporary file of its own, and what the system has to say as text alone.
    path.write_bytes(save(dict(tensors), {_STATE: text}))


def read_about(path: Path) -> dict[str, Any]:
    """The values about the tensors of a file; raises `DamagedError`, or `FileNotFoundError`."""
    return _read(path, tensors=False)[1]


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors of a file, and the values about them; raises `DamagedError`, or `FileNotFoundError`."""
    return _read(path, tensors=True)


def _read(path: Path, *, tensors: bool) -> tuple[dict[str, Tensor], dict[str, Any]]:
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            about = unseal((file.metadata() or {}).get(_STATE, "{}"))
            found = {name: file.get_tensor(name) for name in file.keys()} if tensors else {}  # noqa: SIM118
        expected = about.pop(_SUM, None)
        if tensors and expected is not None and expected != _checksum(found):
            raise ValueError("the checksum is another")
        return found, about
    except FileNotFoundError:
        raise
    except (safetensors.SafetensorError, OSError, TypeError, ValueError, RuntimeError, RecursionError) as error:
        raise DamagedError(f"{path}: is damaged ({' '.join(str(error).split())})") from None


def _checksum(tensors: Mapping[str, Tensor]) -> int:
    """CRC-32 of names, types, shapes and numbers: for accidents, and five times as fast as SHA-256."""
    found = 0
    for name in sorted(tensors):
        value = tensors[name].detach().cpu().contiguous()
        found = zlib.crc32(f"{name} {value.dtype} {tuple(value.shape)}".encode(), found)
        if value.numel():  # What is empty cannot be seen as bytes.
            found = zlib.crc32(value.reshape(-1).view(torch.uint8).numpy().data, found)
    return found
