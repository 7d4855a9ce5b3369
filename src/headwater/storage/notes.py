"""Small texts of a warehouse, mostly JSON: replaced as a whole, and refused by name if they mean nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from headwater.storage.object_store import store_at
from headwater.storage.storage_errors import parse_stored, stored

Parsed = TypeVar("Parsed")


def read_text(root: str, name: str) -> str | None:
    """Return a small object's text, or None if it is not there."""
    with stored(f"{root}/{name}"):
        content = store_at(root).get(name)
    return None if content is None else content.decode(errors="replace")


def read_note(root: str, name: str, parse: Callable[[Any], Parsed]) -> Parsed | None:
    """Return what a small JSON object means, or None if it is not there. One that means nothing is refused by name."""
    text = read_text(root, name)
    return None if text is None else parse_stored(f"{root}/{name}", text, parse)


def write_text(root: str, name: str, text: str, *, durable: bool = False) -> None:
    """Replace a small object as a whole: a reader sees the old text or the new one, never a part."""
    with stored(f"{root}/{name}"):
        store_at(root).put(name, text.encode(), durable=durable)
