"""What a person probably meant to write."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches


def nearest(written: str, known: Sequence[str]) -> str:
    """Return a question about the known name that looks most like what was written, or nothing.

    >>> nearest("Salse", ["customers", "sales"])
    '; did you mean "sales"?'
    >>> nearest("x", ["customers"])
    ''
    """
    lowered = {name.lower(): name for name in known}
    matches = get_close_matches(written.lower(), lowered, n=1, cutoff=0.6)
    return f'; did you mean "{lowered[matches[0]]}"?' if matches else ""
