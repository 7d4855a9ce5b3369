"""Random small views for the advisor: one to three levels, relations and segments that are sometimes read twice."""

from __future__ import annotations

from math import inf, prod
from random import Random

from headwater.advisor.flow import rows_of
from headwater.advisor.statistics import (
    RelationStatistics,
    SegmentStatistics,
    SystemStatistics,
    UnionStatistics,
    UsageStatistics,
)
from headwater.advisor.structure import Node, RelationNode, SegmentNode, Structure


def random_structure(chance: Random) -> Structure:
    return _Drawing(chance).structure()


class _Drawing:
    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._share = chance.choice([0.0, 0.0, 0.3])
        self._relations: list[RelationNode] = []
        self._segments: list[SegmentNode] = []
        self._source = SystemStatistics(
            block_size=8192,
            disk_cost=10,
            net_cost=self._magnitude(-4, -1),
            trip_cost=chance.choice([0.0, 5.0]),
            wait_cost=chance.choice([0.0, 300.0]),
        )

    def structure(self) -> Structure:
        chance = self._chance
        return Structure(
            top=self._segment(chance.choice([1, 2, 3])),
            usage=UsageStatistics(
                query_rate=chance.choice([0, 1, 20, 100]),
                query_size=chance.choice([1, 10]),
                batch_rate=chance.choice([inf, 1.0, 10.0]),
            ),
            warehouse=SystemStatistics(
                block_size=8192,
                disk_cost=10,
                trip_cost=chance.choice([0, 100]),
                memory_size=chance.choice([0, 1e6]),
                read_cost=chance.choice([0, 20]),
                write_cost=chance.choice([0, 100]),
            ),
        )

    def _magnitude(self, least: float, most: float) -> float:
        return float(10 ** self._chance.uniform(least, most))

    def _relation(self) -> RelationNode:
        chance = self._chance
        if self._relations and chance.random() < self._share:
            return chance.choice(self._relations)
        statistics = RelationStatistics(
            tuple_num=chance.choice([0.0, *(self._magnitude(1, 5) for _ in range(6))]),
            tuple_size=chance.choice([20, 100, 200]),
            update_rate=chance.choice([0.0, self._magnitude(-1, 2), self._magnitude(-1, 2)]),
            update_size=chance.choice([1, 1, 5]),
            source=self._source,
        )
        self._relations.append(RelationNode(name=f"r{len(self._relations)}", statistics=statistics))
        return self._relations[-1]

    def _operand(self, level: int) -> Node:
        if level == 0 or self._chance.random() < 0.4:
            return self._relation()
        if self._segments and self._chance.random() < self._share:
            return self._chance.choice(self._segments)
        return self._segment(level)

    def _segment(self, level: int) -> SegmentNode:
        chance = self._chance
        operands = tuple(self._operand(level - 1) for _ in range(chance.choice([1, 2, 2, 3])))
        if chance.random() < 0.2:
            return self._named(operands, UnionStatistics(aggr_ratio=chance.choice([1.0, 0.3])))
        sizes = [rows_of(operand) for operand in operands]
        joined = 1.0 if len(operands) == 1 else min(1.0, self._magnitude(-1, 0.7) * max(sizes) / prod(sizes))
        statistics = SegmentStatistics(
            join_ratio=chance.choice([joined, joined, joined, 0.0]) if len(operands) > 1 else joined,
            select_ratio=chance.choice([1.0, 0.05]),
            proj_ratio=0.3,
            aggr_ratio=self._magnitude(-4, 0),
        )
        return self._named(operands, statistics)

    def _named(self, operands: tuple[Node, ...], statistics: SegmentStatistics | UnionStatistics) -> SegmentNode:
        self._segments.append(SegmentNode(name=f"s{len(self._segments)}", operands=operands, statistics=statistics))
        return self._segments[-1]
