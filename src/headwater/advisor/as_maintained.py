"""A structure with what the engine decides itself: group tables are kept where it needs old rows, and nowhere else.

What is left to choose are replicas, lineage views and split lineage tables; lineage only of joins whose operands' rows
can be told apart (`views/keep_lineage`). While a batch is computed, partners are looked up in the operands alone, so
lineage saves nothing there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from headwater.advisor.structure import GroupTable, Node, RelationNode, SegmentNode, Structure
from headwater.views.keep_lineage import joins_with_lineage
from headwater.views.segments import SegmentedView


def as_maintained(structure: Structure, view: SegmentedView) -> Structure:
    """Return the structure of a view that keeps no lineage (`from_segments`), with what may really be chosen."""
    kept = {str(segment.name): segment.is_kept for segment in view.segments}
    traceable = {str(name) for name in joins_with_lineage(view)}
    top = _settled(structure.top, kept, traceable)
    assert isinstance(top, SegmentNode), "a segment stays one"
    return replace(structure, top=top)


def _settled(node: Node, kept: Mapping[str, bool], traceable: set[str]) -> Node:
    if isinstance(node, RelationNode):
        return node
    return replace(
        node,
        operands=tuple(_settled(operand, kept, traceable) for operand in node.operands),
        group_table=GroupTable.ALWAYS if kept[node.name] else GroupTable.NEVER,
        may_keep_lineage=node.name in traceable,
        is_joined_by_lineage=False,
    )
