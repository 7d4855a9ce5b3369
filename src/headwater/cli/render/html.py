"""HTML pages of results: one style, one kind of table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; margin: 2.5rem auto; max-width: 1180px; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2.2rem; }
table { border-collapse: collapse; width: 100%; font-size: 13.5px; }
th, td { text-align: left; padding: .3rem .55rem; border-bottom: 1px solid #e3e3e3; vertical-align: top; }
.bad { color: #b00020; font-weight: 600; }
blockquote { border-left: 3px solid #ccc; margin: .6rem 0; padding: .1rem .9rem; color: #555; }
img { width: 100%; margin: .6rem 0; } code { background: #f4f4f4; padding: .1rem .3rem; }
p.legend { color: #555; font-size: 13px; }
"""


def html_page(title: str, parts: Iterable[str]) -> str:
    """Return a whole page of parts that are HTML already."""
    body = "\n".join(parts)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style></head>\n<body>{body}</body></html>\n"
    )


def html_table(headings: Sequence[str], rows: Iterable[Sequence[str]], bad: Iterable[int] = ()) -> str:
    """Return a table of texts. `bad` are the numbers of rows that are to be seen at once.

    >>> html_table(["a"], [["<"]])
    '<table><thead><tr><th>a</th></tr></thead><tbody><tr><td>&lt;</td></tr></tbody></table>'
    """
    marked = frozenset(bad)
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    lines = []
    for number, cells in enumerate(rows):
        style = ' class="bad"' if number in marked else ""
        lines.append(f"<tr{style}>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def html_picture(file: str, title: str) -> str:
    """Return a chart that lies beside the page."""
    return f'<img src="{escape(file)}" alt="{escape(title)}">'
