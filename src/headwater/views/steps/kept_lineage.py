"""What is kept of a segment's join beside its rows: its lineage view, its split lineage tables (paper 004's LV, SLT).

A lineage view holds of every operand the columns that the view needs, and its key: so its rows tell apart which rows of
the operands they were made from, and how often each of these is there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headwater.model.relation import Relation, RelationName
from headwater.views.steps.join import JoinView


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptLineage:
    """The lineage of one segment.

    `join` is the segment's join, of its operands, as it was before it read the lineage view; `columns` tells by alias
    what each column of an operand is called in the lineage view and in the split lineage tables.
    """

    of: RelationName
    join: JoinView
    whole: Relation
    """The lineage view, kept or not."""
    is_whole_kept: bool
    split: Mapping[str, RelationName]
    """The split lineage table of each alias; none if they are not kept."""
    columns: Mapping[str, Mapping[str, str]]
    keys: Mapping[str, tuple[str, ...]]
    """By alias, the columns of the operand that tell its rows apart."""
