"""The views that paper 004 experiments with, as structures with statistics.

The paper publishes the structures (Figures 2, 5, 8, 9 and 14) and, but for TPC-D's table sizes, none of the statistics.
Those of HighProfit, v8 and v9 were found so that the paper's own answers follow. Those of v1 to v7 were picked, too:
with three rows to a group keeping nothing does better when tracing is rare, as the paper has it; with ten or more it
does worse (`advice` runs both). Those of TPC-D are a first guess:

Q5, Q11, Q17              TPC-D at scale 1; an hour has 60 updates of Order, 60 of Lineitem (4 rows each), 1 of every
                          other relation, and 10 tracing queries
v1 to v7, growing views   all relations alike, with 100,000 rows and 10 updates; a row joins one row of each other
                          relation

Everywhere: rows of 100 bytes where TPC-D says nothing else, blocks of 8 KiB, 10 ms a block, 1 ms to move 1,000 bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod

from headwater.advisor.flow import rows_of
from headwater.advisor.statistics import RelationStatistics, SegmentStatistics, SystemStatistics, UsageStatistics
from headwater.advisor.structure import Node, RelationNode, SegmentNode, Structure

_BLOCK_SIZE = 8192
_DISK_COST = 10.0
_WAREHOUSE = SystemStatistics(block_size=_BLOCK_SIZE, disk_cost=_DISK_COST)


def high_profit() -> Structure:
    """Return HighProfit of Example 3.1, with statistics under which the paper's answers come out."""
    net_cost = 0.0008
    salary = _segment("Salary", [_relation("Employee", 6_000, 24, 3.3, net_cost, changed=2)], 6_000, 100, proj=16 / 24)
    sales = [_relation("Sales", 1_000_000, 24, 2.6, net_cost), _relation("Product", 800, 32, 0.9, net_cost)]
    profit = _segment("Profit", sales, 1_000_000, 100, proj=16 / 56)
    store = _relation("Store", 100, 200, 0.0018, net_cost)
    top = SegmentNode(
        name="HighProfit",
        operands=(salary, profit, store),
        statistics=SegmentStatistics(join_ratio=1e-4, select_ratio=0.05, proj_ratio=0.1),
    )
    return _view(top, query_rate=19)


def figure_14(net_cost: float, partners: float) -> Structure:
    """Return R ⋈ S of Figure 14. A row of R joins `partners` rows of S."""
    left, right = _relation("R", 320, 200, 50, net_cost), _relation("S", 1_075, 100, 43, net_cost)
    ratios = SegmentStatistics(join_ratio=partners / 1_075, proj_ratio=1 / 3, aggr_ratio=0.00128)
    return _view(SegmentNode(name="V", operands=(left, right), statistics=ratios), query_rate=5)


def failing_views() -> Mapping[str, Structure]:
    """Return v8, on which greedy fails, and v9, on which three-step does."""
    return {"v8": figure_14(0.032, 5), "v9": figure_14(0.010, 0.6)}


def tpc_d_views() -> Mapping[str, Structure]:
    """Return Q5, Q11 and Q17 of TPC-D at scale 1, as Figure 5 has them."""
    tables = _tpc_d_tables()
    return {"Q5": _q5(tables), "Q11": _q11(tables), "Q17": _q17(tables)}


ROWS_PER_GROUP = 3
"""Of v1 to v7 and of views that grow."""


def regular_view(levels: int, fan_out: int, ratio: float, rows_per_group: int = ROWS_PER_GROUP) -> Structure:
    """Return a regular tree as in Figure 8, with `ratio` tracing queries for every update of a source."""
    counter = iter(range(1, 1_000_000))
    top, _ = _regular_segment(levels, fan_out, rows_per_group, counter)
    updates = sum(relation.statistics.update_rate for relation in _view(top, query_rate=0).relations)
    return _view(top, query_rate=ratio * updates)


SYNTHETIC = {
    "v1": (2, 3, 100.0),
    "v2": (2, 3, 10.0),
    "v3": (2, 3, 1.0),
    "v4": (2, 3, 0.1),
    "v5": (2, 3, 0.0),
    "v6": (6, 1, 10.0),
    "v7": (2, 5, 10.0),
}
"""Figure 9: levels, fan-out, and tracing queries per update."""


def synthetic_views() -> Mapping[str, Structure]:
    """Return v1 to v7."""
    return {name: regular_view(*shape) for name, shape in SYNTHETIC.items()}


def _regular_segment(
    levels: int, fan_out: int, rows_per_group: int, counter: Iterator[int]
) -> tuple[SegmentNode, float]:
    """Return a segment of a regular tree, and how many rows it has."""
    rows, net_cost = 100_000.0, 0.001
    operands: list[Node]
    if levels == 1:
        operands = [_relation(f"R{next(counter)}", rows, 100, 10, net_cost) for _ in range(fan_out)]
    else:
        below = [_regular_segment(levels - 1, fan_out, rows_per_group, counter) for _ in range(fan_out)]
        operands = [segment for segment, _ in below]
        rows = below[0][1]
    groups = max(1.0, rows / rows_per_group)
    name = f"level {levels} of {operands[0].name.split()[-1]}"
    return _segment(name, operands, rows, groups, proj=1 / fan_out), groups


def _q5(tables: Mapping[str, RelationNode]) -> Structure:
    """Return revenue by nation of one region and year: six relations, one level."""
    orders, region = _selected(tables["Order"], 1 / 7), _selected(tables["Region"], 1 / 5)
    relations = [tables["Customer"], orders, tables["Lineitem"], tables["Supplier"], tables["Nation"], region]
    return _view(_segment("Q5", relations, 6_000_000 / 7 / 25 / 5, 5, proj=0.05), query_rate=10)


def _q11(tables: Mapping[str, RelationNode]) -> Structure:
    """Return important stock of one nation: the value by part against the value of all, over the same join."""
    relations = [tables["PartSupp"], tables["Supplier"], _selected(tables["Nation"], 1 / 25)]
    by_part = _segment("by part", relations, 32_000, 29_800, proj=0.05)
    of_all = _segment("of all", relations, 32_000, 1, proj=0.03)
    ratios = SegmentStatistics(join_ratio=1.0, select_ratio=0.035)
    return _view(SegmentNode(name="Q11", operands=(by_part, of_all), statistics=ratios), query_rate=10)


def _q17(tables: Mapping[str, RelationNode]) -> Structure:
    """Return revenue lost with small orders: Lineitem against the average of its own groups."""
    by_part = _segment("average", [tables["Lineitem"]], 6_000_000, 200_000, proj=0.15)
    operands: list[Node] = [tables["Lineitem"], _selected(tables["Part"], 1 / 1_000), by_part]
    return _view(_segment("Q17", operands, 600, 1, proj=0.02), query_rate=10)


def _tpc_d_tables() -> Mapping[str, RelationNode]:
    often, seldom, net_cost = 60.0, 1.0, 0.001
    rows = (
        ("Customer", 150_000, 179, seldom, 1),
        ("Order", 1_500_000, 104, often, 1),
        ("Lineitem", 6_000_000, 112, often, 4),
        ("Supplier", 10_000, 159, seldom, 1),
        ("Nation", 25, 128, seldom, 1),
        ("Region", 5, 124, seldom, 1),
        ("PartSupp", 800_000, 144, seldom, 1),
        ("Part", 200_000, 155, seldom, 1),
    )
    return {row[0]: _relation(row[0], row[1], row[2], row[3], net_cost, changed=row[4]) for row in rows}


def _selected(relation: RelationNode, share: float) -> RelationNode:
    """Return a relation after a selection of its own, which is pushed down to it."""
    statistics = relation.statistics
    return replace(
        relation,
        statistics=replace(
            statistics, tuple_num=statistics.tuple_num * share, update_size=statistics.update_size * share
        ),
    )


def _relation(
    name: str, rows: float, size: float, update_rate: float, net_cost: float, changed: float = 1
) -> RelationNode:
    source = SystemStatistics(block_size=_BLOCK_SIZE, disk_cost=_DISK_COST, net_cost=net_cost)
    return RelationNode(
        name=name,
        statistics=RelationStatistics(
            tuple_num=rows, tuple_size=size, update_rate=update_rate, update_size=changed, source=source
        ),
    )


def _segment(name: str, operands: Sequence[Node], rows: float, groups: float, proj: float) -> SegmentNode:
    """Return a segment whose join has `rows` rows and makes `groups` groups."""
    ratios = SegmentStatistics(
        join_ratio=rows / prod(rows_of(operand) for operand in operands), aggr_ratio=groups / rows, proj_ratio=proj
    )
    return SegmentNode(name=name, operands=tuple(operands), statistics=ratios)


def _view(top: SegmentNode, query_rate: float) -> Structure:
    return Structure(top=top, usage=UsageStatistics(query_rate=query_rate), warehouse=_WAREHOUSE)
