"""What a person sees: lines and grids, drawn with colour on a terminal and plainly into a file or a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text
from rich.tree import Tree


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line of text, or several. The style is for terminals only."""

    text: str
    style: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Rows under headings. `right` names the headings of numbers."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    title: str = ""
    right: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeBranch:
    """A line with others below it, as a tree."""

    text: str
    style: str = ""
    below: tuple[TreeBranch, ...] = ()


Page: TypeAlias = Sequence[Line | Grid | TreeBranch]


def print_in_place(pages: Iterator[Page]) -> None:
    """Print pages on standard output, each in place of the one before. Into a file or a pipe one after the other."""
    if not sys.stdout.isatty():
        for page in pages:
            sys.stdout.write(plain_text(page) + "\n")
            sys.stdout.flush()
        return
    with Live(console=Console(highlight=False), auto_refresh=False, vertical_overflow="visible") as live:
        for page in pages:
            live.update(Group(*map(_rich, page)), refresh=True)


def print_page(page: Page) -> None:
    """Print a page on standard output."""
    if sys.stdout.isatty():
        console = Console(highlight=False)
        for block in page:
            console.print(_rich(block))
    else:
        sys.stdout.write(plain_text(page))


def plain_text(page: Page) -> str:
    """Return a page as plain text. Nothing is wrapped or cut.

    >>> print(plain_text([Line(text="views"), Grid(headings=("name", "rows"), rows=(("sales", "7"),),
    ...     right=frozenset({"rows"}))]), end="")
    views
    name   rows
    sales     7
    """
    lines: list[str] = []
    for block in page:
        match block:
            case Line():
                lines.extend(block.text.splitlines() or [""])
            case Grid():
                lines.extend(_plain_grid(block))
            case TreeBranch():
                lines.extend(_plain_tree(block))
    return "".join(f"{line}\n" for line in lines)


def _rich(block: Line | Grid | TreeBranch) -> Text | Table | Tree:
    match block:
        case Line():
            return Text(block.text, style=block.style)
        case Grid():
            return _rich_table(block)
        case TreeBranch():
            return _rich_tree(block)


def _plain_grid(grid: Grid) -> list[str]:
    table = (grid.headings, *grid.rows)
    widths = [max(len(row[index]) for row in table) for index in range(len(grid.headings))]
    lines = [grid.title] if grid.title else []
    for row in table:
        cells = [
            cell.rjust(width) if heading in grid.right else cell.ljust(width)
            for cell, width, heading in zip(row, widths, grid.headings, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return lines


def _rich_table(grid: Grid) -> Table:
    table = Table(title=grid.title or None, title_justify="left", header_style="bold", box=None, pad_edge=False)
    for heading in grid.headings:
        table.add_column(heading, justify="right" if heading in grid.right else "left", overflow="fold")
    for row in grid.rows:
        table.add_row(*(Text(cell) for cell in row))
    return table


def _plain_tree(branch: TreeBranch) -> list[str]:
    """Return a tree's lines.

    >>> deep = TreeBranch(text="b", below=(TreeBranch(text="c"),))
    >>> for line in _plain_tree(TreeBranch(text="a", below=(deep, TreeBranch(text="d")))): print(line)
    a
    ├── b
    │   └── c
    └── d
    """
    lines = [branch.text]
    for one in branch.below:
        last = one is branch.below[-1]
        first, *others = _plain_tree(one)
        lines.append(f"{'└── ' if last else '├── '}{first}")
        lines += [f"{'    ' if last else '│   '}{line}" for line in others]
    return lines


def _rich_tree(branch: TreeBranch) -> Tree:
    tree = Tree(Text(branch.text, style=branch.style), guide_style="dim")
    for one in branch.below:
        tree.children.append(_rich_tree(one))
    return tree
