"""Any statistics for a view: each is drawn evenly by its order of magnitude, around what it was."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from headwater.advisor.statistics import UnionStatistics
from headwater.advisor.structure import Node, RelationNode, SegmentNode, Structure

_SPREAD = 10.0
"""A statistic may become this many times as large or as small."""


def with_random_statistics(structure: Structure, chance: Random) -> Structure:
    """Return the same view with other rows, row sizes, ratios, rates and another network."""
    net = _drawn(chance)
    relations = {relation.name: _random_relation(relation, chance, net) for relation in structure.relations}
    return replace(
        structure,
        top=_rebuilt(structure.top, relations, chance),
        usage=replace(structure.usage, query_rate=structure.usage.query_rate * _drawn(chance)),
    )


def _drawn(chance: Random) -> float:
    return float(_SPREAD ** chance.uniform(-1, 1))


def _random_relation(relation: RelationNode, chance: Random, net: float) -> RelationNode:
    statistics = relation.statistics
    drawn = replace(
        statistics,
        tuple_num=max(1.0, statistics.tuple_num * _drawn(chance)),
        tuple_size=statistics.tuple_size * _drawn(chance),
        update_rate=statistics.update_rate * _drawn(chance),
        source=replace(statistics.source, net_cost=statistics.source.net_cost * net),
    )
    return replace(relation, statistics=drawn)


def _rebuilt(segment: SegmentNode, relations: dict[str, RelationNode], chance: Random) -> SegmentNode:
    """Return a segment over the new relations, with ratios of its own. One operand has nothing to join with."""
    operands: tuple[Node, ...] = tuple(
        relations[operand.name] if isinstance(operand, RelationNode) else _rebuilt(operand, relations, chance)
        for operand in segment.operands
    )
    ratios = segment.statistics
    if isinstance(ratios, UnionStatistics):
        return replace(segment, operands=operands)
    return replace(
        segment,
        operands=operands,
        statistics=replace(
            ratios,
            join_ratio=ratios.join_ratio if segment.fan_out == 1 else min(1.0, ratios.join_ratio * _drawn(chance)),
            aggr_ratio=min(1.0, ratios.aggr_ratio * _drawn(chance)),
            select_ratio=min(1.0, ratios.select_ratio * _drawn(chance)),
        ),
    )
