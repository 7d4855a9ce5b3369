"""What the cost model knows about a view: paper 004's Table 1, every statistic under the paper's own name.

`rel_num`, the fan-out, is not among them: a segment knows its operands (`structure`). What is not in Table 1 says so;
where it is left out, costs are the paper's.
The unit of time of rates is free, but one for all: per hour, say. Costs are milliseconds in that time.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemStatistics:
    """A source's machine, or the warehouse's."""

    block_size: float
    """Bytes in a block."""
    disk_cost: float
    """Milliseconds to read or write a block."""
    net_cost: float = 0.0
    """Milliseconds to move a byte between this source and the warehouse."""
    trip_cost: float = 0.0
    """Milliseconds that a question takes besides its blocks and bytes: a round trip to a source, or a Spark job over a
    replica. Not in Table 1."""
    memory_size: float = 0.0
    """Bytes of a replica that is held in memory while a view is maintained: no job is needed. Not in Table 1."""
    wait_cost: float = 0.0
    """Milliseconds until what a tracing query saw of this source can be brought to a tick. Not in Table 1."""
    read_cost: float = 0.0
    """Milliseconds that it takes to read few rows of the warehouse's disk besides their blocks. Not in Table 1."""
    write_cost: float = 0.0
    """Milliseconds that it takes to change a table besides its blocks: the jobs and the commit. Not in Table 1."""
    compute_cost: float = 0.0
    """Milliseconds to compute rows of a segment that are not kept, however few they are: a query. Not in Table 1."""

    def __post_init__(self) -> None:
        """Hold that blocks have bytes and that nothing costs less than nothing."""
        assert self.block_size > 0, "a block has bytes"
        fixed = (self.trip_cost, self.wait_cost, self.read_cost, self.write_cost, self.compute_cost)
        assert min(self.disk_cost, self.net_cost, *fixed) >= 0, "costs are not negative"
        assert self.memory_size >= 0, "a size is not negative"


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationStatistics:
    """A relation: its rows, how often it changes, and the source that holds it."""

    tuple_num: float
    """Rows."""
    tuple_size: float
    """Bytes of a row."""
    update_rate: float
    """Transactions that change it, per unit of time."""
    update_size: float
    """Rows that one of them changes."""
    source: SystemStatistics

    def __post_init__(self) -> None:
        """Hold that nothing is counted below nothing."""
        counts = (self.tuple_num, self.tuple_size, self.update_rate, self.update_size)
        assert min(counts) >= 0, "counts are not negative"


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentStatistics:
    """What a segment's steps leave of their input."""

    join_ratio: float
    """Joining rows / rows of the cross product."""
    select_ratio: float = 1.0
    """Selected rows / rows before the selection; conditions on one relation alone are in its `tuple_num`."""
    proj_ratio: float = 1.0
    """Bytes of an output row / bytes of a row before the projection."""
    aggr_ratio: float = 1.0
    """Groups / rows before the aggregation; 1 where there is none."""

    def __post_init__(self) -> None:
        """Hold that ratios are shares. `proj_ratio` may exceed 1, as expressions may be longer than their columns."""
        ratios = (self.join_ratio, self.select_ratio, self.aggr_ratio)
        assert min(*ratios, self.proj_ratio) >= 0, "ratios are not negative"
        assert max(ratios) <= 1, "ratios are shares"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnionStatistics:
    """What a union leaves of its operands' rows. Nothing joins. Not in the paper, whose views have no unions."""

    aggr_ratio: float = 1.0
    """Rows of the output / rows of all operands; below 1 where one is taken away from another."""

    def __post_init__(self) -> None:
        """Hold that the ratio is a share."""
        assert 0 <= self.aggr_ratio <= 1, "ratios are shares"


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageStatistics:
    """How a view is traced."""

    query_rate: float
    """Tracing queries per unit of time."""
    query_size: float = 1.0
    """Rows of the view that one of them traces."""
    batch_rate: float = inf
    """Batches per unit of time, in each of which all updates since the last are maintained together. Not in Table 1:
    the paper maintains every update for itself."""

    def __post_init__(self) -> None:
        """Hold that nothing is counted below nothing."""
        assert min(self.query_rate, self.query_size, self.batch_rate) >= 0, "counts are not negative"
