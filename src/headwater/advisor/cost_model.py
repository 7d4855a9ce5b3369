"""What it costs to trace a view, and to keep it and its auxiliary tables up to date (paper 004, §5).

The paper names its statistics (Table 1) and not its formulas, "a fairly conventional cost model". These reproduce its
example: HighProfit's optimum, greedy order and three-step phases, and where greedy and three-step fail (v8, v9).
N rows of t bytes, k keys that find r rows, blocks of B bytes; milliseconds.

    local(N, t, k, r)  = min(⌈N·t/B⌉, k + r) · disk_cost                     scan it, or one block per key and per row
    remote             = local at the source + (8·k + t·r) · net_cost        keys go there, rows come back
    write(N, t, k)     = min(2·⌈N·t/B⌉, 2·k) · disk_cost                     read and write a block for each changed row

    fetch(x, k, r)     = local                 if a replica (BT) or group table (AG) of x is kept
                       = remote                if x is a relation
                       = members(x, r) + c     if x is a segment: its groups are recomputed; c is the compute_cost
    join(g, x, k, r)   = min(fetch, kept lookup in g's LV or SLT + (1 − h) · fetch),    h = |SLT_x| / |T_x|
    members(g, k)      = min(local in LV, Σ local in SLT_x, Σ fetch(x, k, rows behind k groups))

    trace(g, k)        = members(g, k) + Σ trace(x, rows found of x)         over the operands x that are segments
    maintain(R)        = write(BT) + Σ over segments that R's change reaches, for every operand it comes through:
                         Σ join(other operands) + write(LV) + Σ write(SLT_x) + (write(AG), or members(touched) + c)
    total              = query_rate · trace(top, query_size) + Σ_R update_rate · maintain(R)

Some things are not in the paper, and cost nothing where statistics leave them out. On an engine of batches and jobs
they are most of the cost, however many keys and rows are about:

    a question to a source, to BT      + trip_cost           a round trip; a Spark job, but not to maintain, in memory
    a question to LV, SLT_x            + read_cost           to read few rows on disk; to AG as well, to trace
    a question to a source, to trace   + wait_cost           until the log has come to what was seen there
    a table that a batch changes       + write_cost          AG, LV, each SLT_x; BT if it is not in memory
    the updates of a batch             are one update        of all their rows, at batch_rate

A lookup in a lineage view reads every row that its operand's row is in: |LV| / |SLT_x| of them.
Rows are counted after the selection: a condition that spans operands goes with the question that it can go with.
Every cost here rises with the cost of what it is made of; `algorithms/exact` rests on that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import NamedTuple

from headwater.advisor.candidates import Auxiliary, AuxiliaryKind, Kept
from headwater.advisor.flow import Question, SegmentFlow, flows_of, update_of
from headwater.advisor.statistics import SystemStatistics
from headwater.advisor.structure import GroupTable, Node, ReadsBehind, RelationNode, SegmentNode, Structure

_KEY_BYTES = 8

Fetched = Callable[[int, Question], float]
"""What a question to a segment's operand costs, by the operand's place: its fetch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Milliseconds per unit of time, and bytes that are kept beside the view."""

    tracing: float
    maintaining: float
    stored_bytes: float

    @property
    def total(self) -> float:
        """What algorithms minimise."""
        return self.tracing + self.maintaining


def local(system: SystemStatistics, tuple_num: float, tuple_size: float, question: Question) -> float:
    """Return what a question costs where the rows are: one block per key and per row, or all blocks."""
    return min(_blocks(system, tuple_num, tuple_size), question.keys + question.rows) * system.disk_cost


def remote(relation: RelationNode, question: Question) -> float:
    """Return what a question to a source costs: there, and on the way."""
    statistics = relation.statistics
    moved = _KEY_BYTES * question.keys + statistics.tuple_size * question.rows
    there = local(statistics.source, statistics.tuple_num, statistics.tuple_size, question)
    wait = statistics.source.wait_cost if question.is_traced else 0.0
    return there + moved * statistics.source.net_cost + statistics.source.trip_cost + wait


def write(system: SystemStatistics, tuple_num: float, tuple_size: float, changed: float) -> float:
    """Return what it costs to change rows of a table."""
    return min(2.0 * _blocks(system, tuple_num, tuple_size), 2.0 * changed) * system.disk_cost


def _blocks(system: SystemStatistics, tuple_num: float, tuple_size: float) -> int:
    return max(1, ceil(tuple_num * tuple_size / system.block_size))


class _Tables(NamedTuple):
    """The tables that may be kept of one name, in the order of `AuxiliaryKind`."""

    replica: Auxiliary
    groups: Auxiliary
    lineage: Auxiliary
    split: Auxiliary


class CostModel:
    """The costs of one view. `total` prices a set of auxiliary tables. The other methods are its parts."""

    def __init__(self, structure: Structure, paid: frozenset[str] = frozenset()) -> None:
        """Work out what does not depend on what is kept. Others pay for the replicas of the relations in `paid`."""
        self._paid = paid
        self.structure = structure
        self.flows = flows_of(structure)
        self._warehouse = structure.warehouse
        self._segments, self._relations = structure.segments, structure.relations
        names = [node.name for node in structure.nodes]
        self._tables = {name: _Tables(*(Auxiliary(name, kind) for kind in AuxiliaryKind)) for name in names}
        self._below = {segment.name: self._all_below(segment) for segment in structure.segments}
        self._known: dict[tuple[str, Kept], tuple[float, float]] = {}

    def total(self, kept: Kept) -> float:
        """Return the cost of tracing and maintaining a view with a set of auxiliary tables."""
        return self.cost(kept).total

    def cost(self, kept: Kept) -> Cost:
        """Return the cost with a set of auxiliary tables, in its parts."""
        parts = [self._of_segment(segment, kept) for segment in self._segments]
        maintaining = sum(self.replica_writes(relation, kept) for relation in self._relations)
        return Cost(
            tracing=sum(tracing for tracing, _ in parts),
            maintaining=maintaining + sum(others for _, others in parts),
            stored_bytes=self.stored_bytes(kept),
        )

    def _of_segment(self, segment: SegmentNode, kept: Kept) -> tuple[float, float]:
        """Return what is spent on a segment for tracing and for maintaining.

        It depends on what is kept below it alone, and so is known after a few sets; but not for the topmost segment.
        """
        key = segment.name, kept & self._below[segment.name]
        if key in self._known:
            return self._known[key]
        fetched = self.fetched(segment, kept)
        maintaining = self.updating(segment, kept, fetched) + self.segment_writes(segment, kept)
        found = self.tracing(segment, kept, fetched), maintaining
        if segment is not self.structure.top:
            self._known[key] = found
        return found

    def _all_below(self, node: Node) -> Kept:
        """Return all tables of a node and of what it is made of."""
        own = frozenset(self._tables[node.name])
        return own if isinstance(node, RelationNode) else own.union(*(self._all_below(one) for one in node.operands))

    def stored_bytes(self, kept: Kept) -> float:
        """Return the size of auxiliary tables."""
        return sum(self._bytes_of(table) for table in kept)

    # -- relations ------------------------------------------------------------------------------------------------

    def replica_writes(self, relation: RelationNode, kept: Kept) -> float:
        """Return what it costs to keep a relation's replica, if it is kept."""
        if self._tables[relation.name].replica not in kept or relation.name in self._paid:
            return 0.0
        statistics, update = relation.statistics, update_of(relation, self.structure.usage)
        blocks = write(self._warehouse, statistics.tuple_num, statistics.tuple_size, update.rows)
        return update.rate * (blocks + (0.0 if self._is_held(relation) else self._warehouse.write_cost))

    def _is_held(self, relation: RelationNode) -> bool:
        """Tell whether the maintainer holds a replica in memory."""
        statistics = relation.statistics
        return statistics.tuple_num * statistics.tuple_size <= self._warehouse.memory_size

    # -- what a question costs ------------------------------------------------------------------------------------

    def fetch(self, node: Node, kept: Kept, question: Question) -> float:
        """Return what a question to a relation or segment costs: in what is kept of it, or else where it comes from."""
        if isinstance(node, SegmentNode):
            flow = self.flows[node.name]
            if self._has_groups(node, kept):
                fixed = self._warehouse.read_cost if question.is_traced else 0.0  # the maintainer has them in memory
                return local(self._warehouse, flow.group_count, flow.group_size, question) + fixed
            return self.members(node, kept, question, self.fetched(node, kept)) + self._warehouse.compute_cost
        if self._tables[node.name].replica in kept:
            statistics = node.statistics
            fixed = 0.0 if self._is_held(node) and not question.is_traced else self._warehouse.trip_cost
            return local(self._warehouse, statistics.tuple_num, statistics.tuple_size, question) + fixed
        return remote(node, question)

    def fetched(self, segment: SegmentNode, kept: Kept) -> Fetched:
        """Return what questions to a segment's operands cost with a set of auxiliary tables."""
        return lambda index, question: self.fetch(segment.operands[index], kept, question)

    def members(self, segment: SegmentNode, kept: Kept, question: Question, fetched: Fetched) -> float:
        """Return what it costs to find all rows of the operands that rows of a segment come from."""
        flow = self.flows[segment.name]
        places = range(segment.fan_out)
        from_operands = sum(fetched(index, flow.question_behind(index, question)) for index in places)
        return min(self.members_kept(segment, kept, question), from_operands)

    def members_kept(self, segment: SegmentNode, kept: Kept, question: Question) -> float:
        """Return the same from the segment's own LV or SLT. Infinite where neither is kept."""
        flow, found = self.flows[segment.name], [float("inf")]
        groups = min(question.rows, flow.group_count)
        rows = flow.behind(groups)
        if self._tables[segment.name].lineage in kept:
            found.append(self._in_lineage_view(flow, Question(groups, rows)))
        if self._tables[segment.name].split in kept:
            places = range(segment.fan_out)
            split = [Question(groups, flow.split_rows_met(index, rows)) for index in places]
            found.append(sum(self._in_split_lineage(flow, index, split[index]) for index in places))
        return min(found)

    def join(self, segment: SegmentNode, kept: Kept, index: int, question: Question, fetched: float) -> float:
        """Return what it costs to find an operand's rows that join a change, given what their fetch costs."""
        if not segment.is_joined_by_lineage:
            return fetched
        flow, found = self.flows[segment.name], [fetched]
        split = flow.split_rows[index]
        missed = (1.0 - split / flow.operand_rows[index]) * fetched
        if self._tables[segment.name].lineage in kept:
            rows = question.rows * flow.lineage_rows / split if split else 0.0
            found.append(self._in_lineage_view(flow, Question(question.keys, rows)) + missed)
        if self._tables[segment.name].split in kept:
            found.append(self._in_split_lineage(flow, index, question) + missed)
        return min(found)

    def _in_lineage_view(self, flow: SegmentFlow, question: Question) -> float:
        statistics = self._warehouse
        return local(statistics, flow.lineage_rows, flow.lineage_size, question) + statistics.read_cost

    def _in_split_lineage(self, flow: SegmentFlow, index: int, question: Question) -> float:
        statistics = self._warehouse
        return local(statistics, flow.split_rows[index], flow.operand_sizes[index], question) + statistics.read_cost

    # -- what a segment costs, given what its operands' fetches cost -----------------------------------------------

    def tracing(self, segment: SegmentNode, kept: Kept, fetched: Fetched) -> float:
        """Return what tracing through a segment costs. Its operands' own tracing is theirs."""
        found = sum(self.members(segment, kept, question, fetched) for question in self.flows[segment.name].traced)
        return self.structure.usage.query_rate * found

    def updating(self, segment: SegmentNode, kept: Kept, fetched: Fetched) -> float:
        """Return what it costs to find a segment's changes: to join those that reach it, and to know its old groups."""
        cost = sum(self.joining(segment, kept, index, fetched) for index in range(segment.fan_out))
        fixed = self.computing_groups(segment, kept)
        if fixed is not None:
            touches = self.flows[segment.name].touches
            cost += sum(
                rate * (self.members(segment, kept, touch.question, fetched) + fixed) for touch, rate in touches.items()
            )
        return cost

    def computing_groups(self, segment: SegmentNode, kept: Kept) -> float | None:
        """Return what it costs to compute touched groups, without reading their input. None if that is not read."""
        match segment.reads_behind:
            case ReadsBehind.ALWAYS:
                return 0.0
            case ReadsBehind.UNLESS_KEPT:
                return None if self.is_written(segment, kept) else self._warehouse.compute_cost
            case ReadsBehind.NEVER:
                return None

    def joining(self, segment: SegmentNode, kept: Kept, index: int, fetched: Fetched) -> float:
        """Return what it costs to look up one operand for all changes that come through the others."""
        return sum(
            rate * self.join(segment, kept, index, question, fetched(index, question))
            for question, rate in self.flows[segment.name].joined[index].items()
        )

    def is_written(self, segment: SegmentNode, kept: Kept) -> bool:
        """Tell whether a segment's groups are kept: a group table, or the view itself."""
        return segment is self.structure.top or self._has_groups(segment, kept)

    def _has_groups(self, segment: SegmentNode, kept: Kept) -> bool:
        return segment.group_table is GroupTable.ALWAYS or self._tables[segment.name].groups in kept

    def segment_writes(self, segment: SegmentNode, kept: Kept) -> float:
        """Return what it costs to write a segment's kept tables. The topmost segment is the view, always written."""
        flow = self.flows[segment.name]
        touched = min(self.structure.usage.batch_rate, sum(flow.touches.values()))
        cost = touched * self._warehouse.write_cost * self._written_tables(segment, kept)
        for touch, rate in flow.touches.items():
            rows, each = touch.lineage_rows, 0.0
            if self.is_written(segment, kept):
                each += write(self._warehouse, flow.group_count, flow.group_size, touch.groups)
            if self._tables[segment.name].lineage in kept:
                each += write(self._warehouse, flow.lineage_rows, flow.lineage_size, rows)
            if self._tables[segment.name].split in kept:
                each += sum(
                    write(
                        self._warehouse,
                        flow.split_rows[index],
                        flow.operand_sizes[index],
                        flow.split_rows_met(index, rows),
                    )
                    for index in range(segment.fan_out)
                )
            cost += rate * each
        return cost

    def _written_tables(self, segment: SegmentNode, kept: Kept) -> int:
        """Return how many tables of a segment are written when it changes."""
        tables = self._tables[segment.name]
        split = segment.fan_out if tables.split in kept else 0
        return int(self.is_written(segment, kept)) + int(tables.lineage in kept) + split

    def _bytes_of(self, table: Auxiliary) -> float:
        if table.kind is AuxiliaryKind.REPLICA:
            statistics = next(one for one in self._relations if one.name == table.of).statistics
            return statistics.tuple_num * statistics.tuple_size
        flow = self.flows[table.of]
        if table.kind is AuxiliaryKind.GROUP_TABLE:
            return flow.group_count * flow.group_size
        if table.kind is AuxiliaryKind.LINEAGE_VIEW:
            return flow.lineage_rows * flow.lineage_size
        places = range(flow.segment.fan_out)
        return sum(flow.split_rows[index] * flow.operand_sizes[index] for index in places)
