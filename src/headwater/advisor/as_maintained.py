"""A structure with what the engine does: which group tables it may do without, and what it reads for a change.

| step | reads the rows behind touched groups | because |
|---|---|---|
| group | where it has no group table | its old groups are computed from them |
| regroup | always | everything is computed from them; its own old rows it never asks for |
| join, union | never | its changes follow from those of its operands, and from partners |

A segment whose old rows are never asked for has no group table. One whose rows cannot be computed from few others
always has one (`views/steps/group_tables`). Lineage is kept only of joins whose operands' rows can be distinguished
(`views/steps/keep_lineage`). While a batch is computed, partners are looked up in the operands alone: there lineage
saves nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import assert_never

from headwater.advisor.structure import GroupTable, Node, ReadsBehind, RelationNode, SegmentNode, Structure
from headwater.views.steps.group_tables import choosable_group_tables, group_tables
from headwater.views.steps.keep_lineage import joins_with_lineage
from headwater.views.steps.segments import Needs, SegmentedView, Step


def as_maintained(structure: Structure, view: SegmentedView) -> Structure:
    """Return the structure of a view that keeps no lineage (`from_segments`), with what may really be chosen."""
    engine = _Engine(
        steps={str(segment.name): segment.step for segment in view.segments},
        looked_up=frozenset(map(str, group_tables(view))),
        choosable=frozenset(map(str, choosable_group_tables(view))),
        traceable=frozenset(map(str, joins_with_lineage(view))),
    )
    top = engine.adapted(structure.top)
    assert isinstance(top, SegmentNode), "a segment stays one"
    return replace(structure, top=top)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Engine:
    """What is known of a view's segments, by name."""

    steps: dict[str, Step]
    looked_up: frozenset[str]
    choosable: frozenset[str]
    traceable: frozenset[str]

    def adapted(self, node: Node) -> Node:
        """Return a node, and all below it, with what the engine does."""
        if isinstance(node, RelationNode):
            return node
        return replace(
            node,
            operands=tuple(self.adapted(operand) for operand in node.operands),
            group_table=self._group_table(node.name),
            reads_behind=_reads_behind(self.steps[node.name]),
            may_keep_lineage=node.name in self.traceable,
            is_joined_by_lineage=False,
        )

    def _group_table(self, name: str) -> GroupTable:
        if name in self.choosable:
            return GroupTable.CHOSEN
        return GroupTable.ALWAYS if name in self.looked_up else GroupTable.NEVER


def _reads_behind(step: Step) -> ReadsBehind:
    match step.needs:
        case Needs.OWN:
            return ReadsBehind.UNLESS_KEPT
        case Needs.PARTITIONS:
            return ReadsBehind.ALWAYS
        case Needs.PARTNERS | Needs.NOTHING | Needs.EVERYTHING:
            return ReadsBehind.NEVER
        case _:
            assert_never(step.needs)
