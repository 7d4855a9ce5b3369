"""Change one value of a TOML text and leave all else as its author wrote it: comments, order, empty lines."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from typing import Any

import tomlkit

Value = str | Sequence[str]


def set_value(text: str, path: tuple[str, ...], key: str, value: Value | None) -> str:
    r"""Return the text with a key of a table set to a value, or without it. A table that is not there is added.

    >>> print(set_value('[views.a]  # mine\nstrict = true\n', ("views", "a"), "keep", ["x"]))
    [views.a]  # mine
    strict = true
    keep = ["x"]
    <BLANKLINE>
    """
    document = tomlkit.parse(text)
    table: MutableMapping[str, Any] = document
    for depth, part in enumerate(path, start=1):
        if part not in table:
            if value is None:
                return text
            table[part] = tomlkit.table(is_super_table=depth < len(path))
        table = table[part]
    if value is None:
        table.pop(key, None)
    else:
        table[key] = value if isinstance(value, str) else list(value)
    return tomlkit.dumps(document)


def header_text(path: tuple[str, ...]) -> str:
    """Return the header of a table.

    >>> header_text(("relations", "shop.sales"))
    '[relations."shop.sales"]'
    """
    return f"[{tomlkit.key(path).as_string()}]"


def value_text(value: Value) -> str:
    """Return a value as a file has it.

    >>> value_text(["lineage:join_1"])
    '["lineage:join_1"]'
    """
    return tomlkit.item(value if isinstance(value, str) else list(value)).as_string()
