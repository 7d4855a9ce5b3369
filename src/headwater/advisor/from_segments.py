"""A compiled view as the structure that the cost model works on: what it is made of, with what was measured of it.

| segment of the compiler | here |
|---|---|
| a join that one group alone reads | one segment with that group: α over ⋈ |
| any other join | a segment that makes no groups |
| a regroup, or a group over anything else | a segment with one operand |
| a union | a segment that joins nothing; an input that is taken away counts like one that is added |
| a recomputation | refused: it reads all of its inputs whatever changed, and there is nothing to choose |

Names are those of relations and of the compiler's segments, so that what is advised can be found again; a join and its
group have the group's name. A relation is one operand, however its occurrences select from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import assert_never

from headwater.advisor.flow import rows_of
from headwater.advisor.statistics import (
    RelationStatistics,
    SegmentStatistics,
    SystemStatistics,
    UnionStatistics,
    UsageStatistics,
)
from headwater.advisor.structure import Node, RelationNode, SegmentNode, Structure
from headwater.errors import UnsupportedView
from headwater.model.relation import RelationName, SegmentName
from headwater.views.steps.segments import Needs, Segment, SegmentedView


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What is known of a view's parts: relations as their sources tell, rows and bytes per row of every segment."""

    relations: Mapping[RelationName, RelationStatistics]
    segment_rows: Mapping[RelationName, float]
    segment_row_sizes: Mapping[RelationName, float]
    usage: UsageStatistics
    warehouse: SystemStatistics


def structure_of(view: SegmentedView, measured: Measured) -> Structure:
    """Return a view's structure. A view that is recomputed is refused."""
    translation = _Translation(view, measured)
    return Structure(top=translation.segment(view.output), usage=measured.usage, warehouse=measured.warehouse)


class _Translation:
    """Translates each segment once: what is read twice is one thing."""

    def __init__(self, view: SegmentedView, measured: Measured) -> None:
        self._view, self._measured = view, measured
        self._segments = {segment.name: segment for segment in view.segments}
        self._done: dict[RelationName, SegmentNode] = {}

    def segment(self, segment: Segment) -> SegmentNode:
        """Return a segment of the compiler as one of the structure."""
        if segment.name not in self._done:
            self._done[segment.name] = self._translated(segment)
        return self._done[segment.name]

    def _translated(self, segment: Segment) -> SegmentNode:
        step = segment.step
        match step.needs:
            case Needs.PARTNERS:
                operands = tuple(self._node(name) for name in step.operands)
                return self._joined(segment, operands, self._rows(segment.name))
            case Needs.OWN:
                return self._grouped(segment, *step.operands)
            case Needs.PARTITIONS:
                return self._alone(segment, *step.operands)
            case Needs.NOTHING:
                operands = tuple(self._node(name) for name in step.operands)
                rows = sum(rows_of(operand) for operand in operands)
                ratios = UnionStatistics(aggr_ratio=min(1.0, self._rows(segment.name) / rows))
                return SegmentNode(name=str(segment.name), operands=operands, statistics=ratios)
            case Needs.EVERYTHING:
                raise UnsupportedView(
                    f'there is no choice of auxiliary tables for view "{self._view.name}"',
                    code="HW-731",
                    detail=f"its part {segment.name} is recomputed from all rows of its input at every change",
                    hint="keep replicas of its relations, or see in `headwater explain` why it is recomputed",
                )
            case _:
                assert_never(step.needs)

    def _grouped(self, group: Segment, name: RelationName) -> SegmentNode:
        """Return a group over what it reads: over a join's operands, if it alone reads that join."""
        below = self._segments.get(name)
        if below is not None and below.step.join is not None and self._reader_count(name) == 1:
            join = self.segment(below)
            return self._joined(group, join.operands, self._rows(name))
        return self._alone(group, name)

    def _alone(self, segment: Segment, name: RelationName) -> SegmentNode:
        operand = self._node(name)
        return self._joined(segment, (operand,), rows_of(operand))

    def _joined(self, segment: Segment, operands: tuple[Node, ...], lineage_rows: float) -> SegmentNode:
        """Return a segment whose join has `lineage_rows` rows."""
        joinable = prod(rows_of(operand) for operand in operands)
        width = sum(self._width(operand) for operand in operands)
        ratios = SegmentStatistics(
            join_ratio=min(1.0, lineage_rows / joinable),
            aggr_ratio=min(1.0, self._rows(segment.name) / lineage_rows) if lineage_rows else 1.0,
            proj_ratio=self._measured.segment_row_sizes[segment.name] / width,
        )
        return SegmentNode(name=str(segment.name), operands=operands, statistics=ratios)

    def _node(self, name: RelationName) -> Node:
        if isinstance(name, SegmentName):
            return self.segment(self._segments[name])
        return RelationNode(name=str(name), statistics=self._measured.relations[name])

    def _rows(self, name: RelationName) -> float:
        return self._measured.segment_rows[name]

    def _width(self, node: Node) -> float:
        if isinstance(node, RelationNode):
            return max(1.0, node.statistics.tuple_size)
        sizes = {str(name): size for name, size in self._measured.segment_row_sizes.items()}
        return max(1.0, sizes[node.name])

    def _reader_count(self, name: RelationName) -> int:
        return sum(name in segment.inputs for segment in self._view.segments)
