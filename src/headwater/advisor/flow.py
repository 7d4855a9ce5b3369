"""How many rows there are and how many move, at every segment of a view. None of it depends on what is kept.

    |LV|    = join_ratio · select_ratio · Π |T_i|         rows of the segment's lineage view; T_i are its operands
    |AG|    = max(1, aggr_ratio · |LV|)                   rows of its output
    |SLT_i| = D(|LV|, |T_i|)                              rows of operand i that are in the lineage view
    D(rows, N) = N · (1 − e^(−rows/N))                    how many of N things are met by random rows

A tracing query asks for the rows behind `query_size` rows of the view, and so on for the rows it finds below. An update
of a relation changes `update_size` rows; of a segment that reads it, it changes d · |LV| / |T_i| rows of the lineage
view and D(that, |AG|) rows of the output, which are the change that the segment above sees. Where updates are more than
batches, those of a batch are one update.

A union joins nothing: |LV| = Σ |T_i|, a changed row of an operand is one changed row, and no other operand is asked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, prod

from headwater.advisor.statistics import SegmentStatistics, UnionStatistics, UsageStatistics
from headwater.advisor.structure import Node, RelationNode, SegmentNode, Structure


@dataclass(frozen=True, slots=True)
class Question:
    """Which rows have these keys: how many keys are asked for, and how many rows that finds. Both are expectations.

    It is asked to trace, or to maintain.
    """

    keys: float
    rows: float
    is_traced: bool = False


@dataclass(frozen=True, slots=True)
class Arrival:
    """A change that reaches a segment through one operand: which, how many of its rows, and of the lineage view."""

    index: int
    operand_rows: float
    lineage_rows: float


@dataclass(frozen=True, slots=True)
class Touch:
    """What all arrivals of one update change in a segment: rows of the lineage view, and groups."""

    lineage_rows: float
    groups: float

    @property
    def question(self) -> Question:
        """The question for the groups."""
        return Question(self.groups, self.groups)


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentFlow:
    """A segment's sizes, what is traced through it, and what changes reach it."""

    segment: SegmentNode
    lineage_rows: float
    lineage_size: float
    group_count: float
    group_size: float
    operand_rows: tuple[float, ...]
    operand_sizes: tuple[float, ...]
    split_rows: tuple[float, ...]
    """|SLT_i|: the rows of each operand that are in the lineage view."""
    traced: tuple[Question, ...]
    """For which of its rows a tracing query asks, on each way that leads here."""
    joined: tuple[Mapping[Question, float], ...]
    """What is asked of each operand to join the changes that come through others, and how often."""
    touches: Mapping[Touch, float]
    """What updates change here, and how often."""

    def split_rows_met(self, index: int, rows: float) -> float:
        """Return how many rows of an operand's split lineage table some lineage rows are made of."""
        return met(rows, self.split_rows[index])

    def behind(self, groups: float) -> float:
        """Return how many lineage rows some groups of the output come from."""
        return min(groups, self.group_count) * self.lineage_rows / self.group_count

    def question_behind(self, index: int, question: Question) -> Question:
        """Return what is asked of an operand to find the rows that the rows of the output come from that are found."""
        groups = min(question.rows, self.group_count)
        rows = _made_of(self.segment, self.behind(groups), self.operand_rows[index], self.lineage_rows)
        return Question(groups, rows, question.is_traced)


@dataclass(frozen=True, slots=True)
class Update:
    """Updates of a relation: how often, and how many rows each."""

    rate: float
    rows: float


def update_of(relation: RelationNode, usage: UsageStatistics) -> Update:
    """Return the updates of a relation. Where they are more than batches, all those of a batch are one."""
    statistics = relation.statistics
    if statistics.update_rate <= usage.batch_rate:
        return Update(statistics.update_rate, statistics.update_size)
    return Update(usage.batch_rate, statistics.update_size * statistics.update_rate / usage.batch_rate)


def met(rows: float, things: float) -> float:
    """D(rows, N): how many of N things are met by random rows.

    >>> round(met(100, 100), 1)
    63.2
    """
    return things * (1.0 - exp(-rows / things)) if things else 0.0


def _made_of(segment: SegmentNode, rows: float, operand_rows: float, lineage_rows: float) -> float:
    """Return how many rows of an operand some lineage rows are made of. Of a union, each operand gives its share."""
    if isinstance(segment.statistics, UnionStatistics):
        return rows * operand_rows / lineage_rows
    return met(rows, operand_rows)


def flows_of(structure: Structure) -> Mapping[str, SegmentFlow]:
    """Return every segment's flow, by its name."""
    sizes = _sizes(structure)
    traced = _traced(structure, sizes)
    arrivals: dict[str, defaultdict[Arrival, float]] = {
        segment.name: defaultdict(float) for segment in structure.segments
    }
    touches: dict[str, defaultdict[Touch, float]] = {segment.name: defaultdict(float) for segment in structure.segments}
    for relation in structure.relations:
        _propagate(structure, relation, sizes, arrivals, touches)
    flows = {}
    for segment in structure.segments:
        size, operands = sizes[segment.name], [sizes[operand.name] for operand in segment.operands]
        flows[segment.name] = SegmentFlow(
            segment=segment,
            lineage_rows=size.lineage_rows,
            lineage_size=sum(operand.tuple_size for operand in operands),
            group_count=size.tuple_num,
            group_size=size.tuple_size,
            operand_rows=tuple(operand.tuple_num for operand in operands),
            operand_sizes=tuple(operand.tuple_size for operand in operands),
            split_rows=tuple(met(size.lineage_rows, operand.tuple_num) for operand in operands),
            traced=tuple(Question(groups, groups, is_traced=True) for groups in traced[segment.name]),
            joined=tuple(
                _joined(index, operand, arrivals[segment.name] if segment.is_join else {})
                for index, operand in enumerate(operands)
            ),
            touches=touches[segment.name],
        )
    return flows


def _joined(index: int, operand: _Size, arrivals: Mapping[Arrival, float]) -> Mapping[Question, float]:
    found: defaultdict[Question, float] = defaultdict(float)
    for arrival, rate in arrivals.items():
        if arrival.index != index:
            found[Question(arrival.operand_rows, met(arrival.lineage_rows, operand.tuple_num))] += rate
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Size:
    tuple_num: float
    tuple_size: float
    lineage_rows: float


def rows_of(node: Node) -> float:
    """Return how many rows a relation or segment has, at least one."""
    return _size_of(node).tuple_num


def _sizes(structure: Structure) -> Mapping[str, _Size]:
    found: dict[str, _Size] = {relation.name: _size_of(relation) for relation in structure.relations}
    for segment in reversed(structure.segments):
        found[segment.name] = _size(segment.statistics, [found[operand.name] for operand in segment.operands])
    return found


def _size_of(node: Node) -> _Size:
    if isinstance(node, SegmentNode):
        return _size(node.statistics, [_size_of(operand) for operand in node.operands])
    statistics = node.statistics
    rows = max(1.0, statistics.tuple_num)  # shares of an empty relation must be defined
    return _Size(tuple_num=rows, tuple_size=statistics.tuple_size, lineage_rows=0.0)


def _size(ratios: SegmentStatistics | UnionStatistics, operands: Sequence[_Size]) -> _Size:
    match ratios:
        case UnionStatistics():
            rows = sum(operand.tuple_num for operand in operands)
            tuple_size = max(operand.tuple_size for operand in operands)
        case SegmentStatistics():
            rows = ratios.join_ratio * ratios.select_ratio * prod(operand.tuple_num for operand in operands)
            tuple_size = ratios.proj_ratio * sum(operand.tuple_size for operand in operands)
    return _Size(tuple_num=max(1.0, ratios.aggr_ratio * rows), tuple_size=tuple_size, lineage_rows=rows)


def _traced(structure: Structure, sizes: Mapping[str, _Size]) -> Mapping[str, list[float]]:
    found: dict[str, list[float]] = {segment.name: [] for segment in structure.segments}

    def descend(node: Node, groups: float) -> None:
        if isinstance(node, RelationNode):
            return
        size = sizes[node.name]
        traced = min(groups, size.tuple_num)
        found[node.name].append(traced)
        rows = traced * size.lineage_rows / size.tuple_num
        for operand in node.operands:
            descend(operand, _made_of(node, rows, sizes[operand.name].tuple_num, size.lineage_rows))

    descend(structure.top, structure.usage.query_size)
    return found


def _share(segment: SegmentNode, size: _Size, operand: _Size) -> float:
    """Return how many lineage rows a row of an operand is in."""
    return 1.0 if isinstance(segment.statistics, UnionStatistics) else size.lineage_rows / operand.tuple_num


def _propagate(
    structure: Structure,
    relation: RelationNode,
    sizes: Mapping[str, _Size],
    arrivals: Mapping[str, defaultdict[Arrival, float]],
    touches: Mapping[str, defaultdict[Touch, float]],
) -> None:
    """Carry an update of a relation through all segments above it, and note what arrives where."""
    update = update_of(relation, structure.usage)
    rate, changed = update.rate, {relation.name: update.rows}
    for segment in reversed(structure.segments):
        size = sizes[segment.name]
        found = [
            Arrival(index, changed[operand.name], changed[operand.name] * _share(segment, size, sizes[operand.name]))
            for index, operand in enumerate(segment.operands)
            if operand.name in changed
        ]
        if found:
            rows = sum(arrival.lineage_rows for arrival in found)
            changed[segment.name] = met(rows, size.tuple_num)
            for arrival in found:
                arrivals[segment.name][arrival] += rate
            touches[segment.name][Touch(rows, changed[segment.name])] += rate
