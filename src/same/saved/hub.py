"""Trained models on the Hugging Face Hub."""

from pathlib import Path
from typing import Any

from same.errors import InputError
from same.files import CONFIG, HISTORY, MODEL, RESULT

_FILES = [CONFIG, MODEL, HISTORY, RESULT]


def upload(folder: Path, repo_id: str, *, private: bool | None = None) -> None:
    """Upload the model in a folder to a repository, which is created if needed."""
    hub = _hub("push_to_hub")
    hub.create_repo(repo_id, private=private, exist_ok=True)
    hub.upload_folder(repo_id=repo_id, folder_path=str(folder), allow_patterns=_FILES)


def download(source: str | Path, *, revision: str | None = None) -> Path:
    """Return a folder as it is, or the folder that a repository is downloaded to."""
    if Path(source).is_dir():
        return Path(source)
    text = str(source)
    if isinstance(source, Path) or text.count("/") != 1 or text.startswith(("/", ".", "~")):
        raise InputError(f"from_pretrained: {text!r} is neither an existing folder nor a repository user/name")
    return Path(_hub("from_pretrained").snapshot_download(text, revision=revision, allow_patterns=_FILES))


def _hub(caller: str) -> Any:
    try:
        import huggingface_hub
    except ImportError:
        raise InputError(f"{caller}: needs huggingface_hub: pip install 'same-gnn[hub]'") from None
    return huggingface_hub
