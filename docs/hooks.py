"""For the reference: insert all keys of the configuration, as `same config --show` prints them."""

from typing import Any

from same.config import Config, as_toml


def on_page_markdown(markdown: str, **kwargs: Any) -> str:
    """Fill in a page before it is rendered."""
    return markdown.replace("<!-- config -->", f"```toml\n{as_toml(Config())}```")
