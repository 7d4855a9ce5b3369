"""A view as the cost model sees it: segments over relations and other segments, with statistics. No SQL, no columns.

    HighProfit = σ(Salary ⋈ Profit ⋈ Store)          topmost segment, fan-out 3
      Salary   = α(Employee)                          fan-out 1
      Profit   = α(Sales ⋈ Product)                   fan-out 2
      Store                                           a relation

Names are identities: a relation or segment that is read twice is one, and what is kept of it is kept once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from headwater.advisor.statistics import (
    RelationStatistics,
    SegmentStatistics,
    SystemStatistics,
    UnionStatistics,
    UsageStatistics,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationNode:
    """A relation of a source, after the selections that concern it alone."""

    name: str
    statistics: RelationStatistics


class GroupTable(Enum):
    """Whether the rows of a segment below the topmost are kept: whose choice that is."""

    CHOSEN = "chosen"
    """By choice: the paper's segments. One that is not kept is computed again when its old rows are needed."""
    ALWAYS = "always"
    """They could not be computed from few others, so they are kept."""
    NEVER = "never"
    """Its old rows are not needed; changes flow through."""


class ReadsBehind(Enum):
    """When the old rows are read that the groups come from which a change touches."""

    UNLESS_KEPT = "unless kept"
    """To compute the groups as they were, where no group table has them: the paper's segments."""
    ALWAYS = "always"
    """Groups are recomputed from them, whatever is kept."""
    NEVER = "never"
    """Changes follow from those of the operands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentNode:
    """One α-π-σ-⋈ step over its operands, or a union of them."""

    name: str
    operands: tuple[RelationNode | SegmentNode, ...]
    statistics: SegmentStatistics | UnionStatistics
    group_table: GroupTable = GroupTable.CHOSEN
    reads_behind: ReadsBehind = ReadsBehind.UNLESS_KEPT
    may_keep_lineage: bool = True
    is_joined_by_lineage: bool = True
    """Whether changes find their partners in the segment's lineage, as far as it holds them: the paper's do."""

    def __post_init__(self) -> None:
        """Hold that there is something to read."""
        assert self.operands, "a segment has operands"

    @property
    def fan_out(self) -> int:
        """How many operands it joins: the paper's rel_num."""
        return len(self.operands)

    @property
    def is_join(self) -> bool:
        """Whether its rows are put together from rows of several operands, so that there can be a lineage view."""
        return self.fan_out > 1 and isinstance(self.statistics, SegmentStatistics)


Node = RelationNode | SegmentNode


@dataclass(frozen=True, slots=True, kw_only=True)
class Structure:
    """A view: its topmost segment, how it is traced, and the warehouse that keeps it."""

    top: SegmentNode
    usage: UsageStatistics
    warehouse: SystemStatistics

    def __post_init__(self) -> None:
        """Hold that a name means one thing."""
        nodes: dict[str, Node] = {}
        for node in _walk(self.top):
            assert nodes.setdefault(node.name, node) == node, "a name means one relation or segment"

    @property
    def segments(self) -> tuple[SegmentNode, ...]:
        """All segments, each once and before its operands: the topmost is first."""
        found = {node.name: node for node in _walk(self.top) if isinstance(node, SegmentNode)}
        depths = {name: _height(node) for name, node in found.items()}
        return tuple(sorted(found.values(), key=lambda node: -depths[node.name]))

    @property
    def relations(self) -> tuple[RelationNode, ...]:
        """All relations, each once, from left to right."""
        return tuple({node.name: node for node in _walk(self.top) if isinstance(node, RelationNode)}.values())

    @property
    def nodes(self) -> tuple[Node, ...]:
        """All segments, then all relations."""
        return (*self.segments, *self.relations)

    @property
    def levels(self) -> int:
        """How many segments lie on the longest way from the view to a relation."""
        return _height(self.top)

    @property
    def shared_names(self) -> frozenset[str]:
        """What is read more than once, directly or because what reads it is."""
        seen: set[str] = set()
        twice: set[str] = set()
        for node in _walk(self.top):
            (twice if node.name in seen else seen).add(node.name)
        return frozenset(twice)


def _walk(node: Node) -> Iterator[Node]:
    """Yield a node and all below it, once for every way that leads there."""
    yield node
    if isinstance(node, SegmentNode):
        for operand in node.operands:
            yield from _walk(operand)


def _height(node: Node) -> int:
    if isinstance(node, RelationNode):
        return 0
    return 1 + max(_height(operand) for operand in node.operands)
