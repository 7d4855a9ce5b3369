"""Every construct by its name."""

from __future__ import annotations

from headwater.prove.constructs.expressions import EXPRESSIONS
from headwater.prove.constructs.groups import GROUPS
from headwater.prove.constructs.joins import JOINS
from headwater.prove.constructs.parts import Construct
from headwater.prove.constructs.sub_queries import SUB_QUERIES
from headwater.prove.constructs.whole_queries import WHOLE_QUERIES
from headwater.prove.constructs.windows import WINDOWS

OTHER_VIEW = "other view"
"""The construct that needs a view of the same trial."""

CONSTRUCTS: dict[str, Construct] = {**EXPRESSIONS, **JOINS, **SUB_QUERIES, **GROUPS, **WINDOWS, **WHOLE_QUERIES}

_WIDE = frozenset(
    {
        *("cross join", "join on inequality", "left join on inequality", "self join", "three-way join"),
        *("with, read twice", OTHER_VIEW),
    }
)
"""Joins in which most rows meet most rows, or more than two relations."""


def width(construct: str) -> int:
    """Return by how much a construct makes combinations of rows more: 0, 1, or 2 for the widest joins."""
    return 2 if construct in _WIDE else int(construct in JOINS)
