"""Change one value of a TOML text and leave all else as its author wrote it: comments, order, empty lines.

What is written is read again: a text in which the value could not be placed as meant is refused by the caller.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

Value = str | Sequence[str]


def set_value(text: str, path: tuple[str, ...], key: str, value: Value | None) -> str:
    r"""Return the text with a key of a table set to a value, or without it; a table that is not there is added.

    >>> print(set_value('[views.a]  # mine\nstrict = true', ("views", "a"), "keep", ["x"]))
    [views.a]  # mine
    keep = ["x"]
    strict = true
    """
    lines = text.splitlines()
    header = next((number for number, line in enumerate(lines) if _header(line) == path), None)
    if header is None:
        return text if value is None else _with_table(text, path, key, value)
    found = _place(lines, header, key)
    written = [] if value is None else [f"{key} = {value_text(value)}"]
    if found is None:
        lines[header + 1 : header + 1] = written
    else:
        first, last = found
        comment = _comment(lines[last])
        lines[first : last + 1] = [f"{line}{comment}" for line in written]
    return "\n".join(lines) + ("\n" if text.endswith("\n") else "")


def header_text(path: tuple[str, ...]) -> str:
    """Return the header of a table.

    >>> header_text(("relations", "shop.sales"))
    '[relations."shop.sales"]'
    """
    return f"[{'.'.join(part if re.fullmatch(r'[A-Za-z0-9_-]+', part) else json.dumps(part) for part in path)}]"


def value_text(value: Value) -> str:
    """Return a value as a file has it.

    >>> value_text(["lineage:join_1"])
    '["lineage:join_1"]'
    """
    return json.dumps(value if isinstance(value, str) else list(value), ensure_ascii=False)


def _with_table(text: str, path: tuple[str, ...], key: str, value: Value) -> str:
    return f"{text.rstrip()}\n\n{header_text(path)}\n{key} = {value_text(value)}\n"


def _place(lines: Sequence[str], header: int, key: str) -> tuple[int, int] | None:
    """Return the first and the last line of a key's value in the table that a header begins."""
    for number in range(header + 1, len(lines)):
        if _header(lines[number]) is not None:
            return None
        if re.match(rf"""\s*["']?{re.escape(key)}["']?\s*=""", lines[number]):
            last = number
            while _depth("\n".join(lines[number : last + 1])) > 0 and last + 1 < len(lines):
                last += 1
            return number, last
    return None


def _header(line: str) -> tuple[str, ...] | None:
    found = re.match(r"\s*\[([^\[\]]+)\]\s*(#.*)?$", line)
    if found is None:
        return None
    parts = re.findall(r""""([^"]*)"|'([^']*)'|([A-Za-z0-9_-]+)""", found[1])
    return tuple(next(one for one in part if one) for part in parts)


def _bare(text: str) -> str:
    """Return a text without what stands in quotes or in comments."""
    return re.sub(r"#.*", "", re.sub(r'"(\\.|[^"\\])*"|\'[^\']*\'', "", text))


def _depth(text: str) -> int:
    bare = _bare(text)
    return bare.count("[") - bare.count("]")


def _comment(line: str) -> str:
    """Return the comment at the end of a line, with the spaces before it."""
    for found in re.finditer(r"""(\s*#.*)|"(\\.|[^"\\])*"|'[^']*'""", line):
        if found[1]:
            return found[1]
    return ""
