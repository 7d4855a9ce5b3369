"""Tracing by asking sources that went on: every answer is of another moment, and is brought back to the tick.

The definition is paper 004's, by brute force over the rows at that tick: all combinations of rows that fulfil the
view's conditions and give the row. Over the traced rows alone the view then gives that row and no other, and every
traced row contributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from random import Random
from typing import Any

import pyarrow as pa
from sqlglot import exp
from stamped_history import run_on_duckdb
from volume import volume
from world import COLUMNS, World, random_view, random_world, to_arrow

from headwater.deltas.lookup import RowRequest, RowResult, SawTicks, restricted
from headwater.deltas.on_arrow import ArrowRequest, ArrowResult
from headwater.lineage.trace import trace
from headwater.maintenance.rebase import rebase
from headwater.model.position import Tick
from headwater.model.relation import COUNT, Column, Relation, RelationName, SegmentName
from headwater.views.steps.join import JoinView
from headwater.views.steps.join_step import JoinStep
from headwater.views.steps.segments import Segment, SegmentedView
from headwater_lab.in_memory.bag import InMemoryKeys, Row
from headwater_lab.in_memory.evaluate import evaluate

TICKS = 25
SEEDS = volume(80, 2_000)


@dataclass
class Asking:
    """A reading of a tick that asks the sources, each time at a moment of its own."""

    world: World
    tick: Tick
    random: Random
    asked: int = field(default=0)

    def lookup(self, requests: Sequence[ArrowRequest]) -> list[ArrowResult]:
        return [self._found(request) for request in requests]

    def _found(self, request: ArrowRequest) -> ArrowResult:
        keys = None
        if request.keys is not None:
            columns = [column.to_pylist() for column in request.keys.table.columns]
            keys = InMemoryKeys(frozenset(zip(*columns, strict=True)))
        probe = RowRequest(relation=request.relation, wanted=request.wanted, within=restricted(request.columns, keys))
        answer = self.world.answer(probe, self.world.sights(self.random, request.relation.source, 0))
        self.asked += 1
        found = to_arrow(rebase(probe, answer, self.world, self.tick))
        return RowResult(rows=found, sight=SawTicks(upto=self.tick))

    def holds(self, name: RelationName) -> bool:
        del name
        return True

    def cost(self, name: RelationName, _key_count: int) -> float:
        del name
        return 1.0


def test_oracle_traced_rows_are_those_of_the_paper_s_definition() -> None:
    traced = sum(check(Random(seed)) for seed in range(SEEDS))
    assert traced > SEEDS / 3


def check(random: Random) -> int:
    world, join = random_world(random, TICKS), random_view(random)
    tick = Tick(random.randint(1, TICKS))
    bases = [list(world.at(occurrence.relation.name, tick)) for occurrence in join.occurrences]
    derivations: dict[Row, list[tuple[Row, ...]]] = {}
    for rows in product(*bases):
        given = output(join, rows)
        if given is not None:
            derivations.setdefault(given, []).append(rows)
    asking = Asking(world, tick, random)
    for row, expected in derivations.items():
        found = trace_one(join, row, asking)
        assert found == [set(rows) for rows in zip(*expected, strict=True)], (join.sql, tick, row)
        if all(isinstance(one.expression, exp.Column) for one in join.outputs):
            assert {output(join, rows) for rows in product(*found)} <= {row, None}, (
                "the view gives that row and no other"
            )
    return len(derivations)


def output(join: JoinView, rows: tuple[Row, ...]) -> Row | None:
    """Return what a combination of rows gives; None if it does not fulfil the conditions."""
    named: dict[tuple[str, str], Any] = {
        (occurrence.alias, column): value
        for occurrence, row in zip(join.occurrences, rows, strict=True)
        for column, value in zip(COLUMNS, row, strict=True)
    }
    if any(evaluate(condition.expression, named) is not True for condition in join.conditions):
        return None
    return tuple(evaluate(one.expression, named) for one in join.outputs)


def trace_one(join: JoinView, row: Row, asking: Asking) -> list[set[Row]]:
    """Return the traced rows of each occurrence; how often its relation has each of them is as it is at that tick."""
    columns = tuple(Column(name=one.name, type="int", native="int") for one in join.outputs)
    relation = Relation(name=SegmentName(name="v"), columns=columns)
    view = SegmentedView(
        name="v", sql=join.sql, segments=(Segment(relation=relation, step=JoinStep(view=join), is_kept=True),)
    )
    selected = pa.table([pa.array([value], pa.int32()) for value in row], names=list(join.output_names))
    wanted = dict.fromkeys(join.relations, COLUMNS)
    found = []
    for leaf in trace(view, selected, asking, run_on_duckdb, wanted, asking.cost):
        rows = list(zip(*(leaf.rows[column].to_pylist() for column in COLUMNS), strict=True))
        held = asking.world.at(leaf.name, asking.tick)
        assert [held[one] for one in rows] == leaf.rows[COUNT].to_pylist()
        found.append(set(rows))
    return found
