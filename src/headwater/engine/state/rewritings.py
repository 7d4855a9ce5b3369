"""The tracing law over what is kept: the rows of a join's operands that may derive sought rows, read elsewhere.

| from | reads | there if |
|---|---|---|
| the operands | o0 ⋉ sought, then along equal columns from one operand to the next (`reach`) | always |
| the split lineage tables | the same, in the tables that hold only the rows that join | they are kept |
| the lineage view | the join's rows that give a sought row, split by operand: one read | it is kept |

All give the derivations the rows that they need, and the same ones (paper 004, §4.2): a split lineage table lacks only
rows of the operand that join nothing. The key of an operand, which all of them hold, says how often the operand has
a row. The cheapest is taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import assert_never

import pyarrow as pa

from headwater.deltas.lookup import NO_TICK, Origin, Restriction, RowRequest, look_up
from headwater.deltas.on_arrow import ArrowBag, ArrowRestriction, ArrowResult
from headwater.deltas.stored_bag import BagLookup, held_result
from headwater.engine.state.reach import Reader, read_occurrences, restrict
from headwater.engine.state.sought import Sought
from headwater.engine.state.tick_lookup import Cost
from headwater.model.relation import RelationName
from headwater.views.steps.join import Occurrence
from headwater.views.steps.kept_lineage import KeptLineage
from headwater.views.steps.output_columns import output_columns
from headwater.views.steps.segments import Segment


class Rewriting(Enum):
    """Where the rows of a join's operands may be read."""

    LINEAGE_VIEW = "the lineage view"
    SPLIT_LINEAGE = "the split lineage tables"
    OPERANDS = "the operands"


Wanted = Mapping[str, tuple[str, ...]]
"""The columns that are wanted of each occurrence, by alias."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineages:
    """What is kept of the lineage of a view's joins, by segment, and what reading costs."""

    kept: Mapping[RelationName, KeptLineage] = field(default_factory=dict)
    cost: Cost = lambda *_: None


def cheapest(
    lineage: KeptLineage, wanted: Wanted, key_count: int, cost: Cost, segments: Mapping[RelationName, Segment]
) -> Rewriting:
    """Return where the rows of the operands are read at the least cost, for `key_count` rows that they derive.

    Of equal ones, the first.
    """
    costs: dict[Rewriting, float] = {}
    if all(set(columns) <= set(lineage.columns[alias]) for alias, columns in wanted.items()):
        whole = cost(lineage.whole.name, key_count) if lineage.is_whole_kept else None
        if whole is not None:
            costs[Rewriting.LINEAGE_VIEW] = whole
        parts = [cost(name, key_count) for name in lineage.split.values()]
        known = [part for part in parts if part is not None]
        if parts and len(known) == len(parts):
            costs[Rewriting.SPLIT_LINEAGE] = sum(known)
    operands = [o.relation.name for o in lineage.join.occurrences]
    costs[Rewriting.OPERANDS] = sum(_operand_cost(name, key_count, cost, segments) for name in operands)
    return min(costs, key=lambda one: costs[one])


def _operand_cost(name: RelationName, key_count: int, cost: Cost, segments: Mapping[RelationName, Segment]) -> float:
    """Return what reading an operand costs. One that is not held is computed from what it reads."""
    own = cost(name, key_count)
    if own is not None:
        return own
    return sum(_operand_cost(below, key_count, cost, segments) for below in segments[name].inputs)


def read_rewritten(
    rewriting: Rewriting, lineage: KeptLineage, sought: Sought, wanted: Wanted, reading: BagLookup, operands: Reader
) -> dict[str, ArrowResult]:
    """Return rows per alias of a join whose lineage is kept, among them all that can derive a sought row."""
    match rewriting:
        case Rewriting.OPERANDS:
            return read_occurrences(lineage.join, sought, operands)
        case Rewriting.SPLIT_LINEAGE:

            def split(occurrence: Occurrence, within: ArrowRestriction | None) -> ArrowResult:
                return _from_split(lineage, occurrence.alias, wanted[occurrence.alias], within, reading)

            return read_occurrences(lineage.join, sought, split)
        case Rewriting.LINEAGE_VIEW:
            return dict(_from_whole(lineage, sought, wanted, reading))
        case _:
            assert_never(rewriting)


def _from_whole(
    lineage: KeptLineage, sought: Sought, wanted: Wanted, reading: BagLookup
) -> Iterator[tuple[str, ArrowResult]]:
    plain = {name: lineage.columns[alias][held] for name, (alias, held) in output_columns(lineage.join).items()}
    within = restrict(lineage.whole, {plain[name]: name for name in sought.columns if name in plain}, sought.rows)
    request = RowRequest(relation=lineage.whole.name, wanted=lineage.whole.column_names, within=within)
    found = held_result(look_up(reading, request))
    for alias, columns in wanted.items():
        rows = _once(found.rows.table, lineage.columns[alias], columns)
        yield alias, replace(found, rows=rows, origin=Origin.LINEAGE_VIEW)


def _from_split(
    lineage: KeptLineage, alias: str, columns: Sequence[str], within: ArrowRestriction | None, reading: BagLookup
) -> ArrowResult:
    called = lineage.columns[alias]
    there = within and Restriction(columns=tuple(called[name] for name in within.columns), keys=within.keys)
    request = RowRequest(relation=lineage.split[alias], wanted=tuple(called.values()), within=there)
    found = held_result(look_up(reading, request))
    return replace(found, rows=_once(found.rows.table, called, columns), origin=Origin.SPLIT_LINEAGE)


def _once(rows: pa.Table, called: Mapping[str, str], columns: Sequence[str]) -> ArrowBag:
    """Return an operand's rows with the number of times that it has each: once for every different key."""
    held = pa.table([rows[name] for name in called.values()], names=list(called))
    different = ArrowBag.of_plain(held, NO_TICK).net().table
    return ArrowBag.of_plain(different.select(list(columns)), NO_TICK).net()
