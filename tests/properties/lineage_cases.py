"""Tracing in memory: relations with rows, segments kept or not, and SQL run by DuckDB."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from in_duckdb import World, relation
from stamped_history import run_on_duckdb

from headwater.deltas.lookup import NO_TICK, RowResult, SawTicks
from headwater.deltas.on_arrow import ArrowBag, ArrowRequest, ArrowResult
from headwater.lineage.trace import trace
from headwater.lineage.traced import Traced, roots_of_leaves
from headwater.model.position import Tick
from headwater.model.relation import COUNT, TICK, Relation, RelationName, SegmentName
from headwater.views.steps.segments import SegmentedView

Row = tuple[Any, ...]


def new_world() -> World:
    return World(
        [
            relation("a", "r", x="int", y="int", z="int"),
            relation("a", "s", x="int", w="int"),
            relation("b", "t", y="int", w="int", k="int"),
            relation("b", "u", key=("id",), id="int!", x="int"),
        ]
    )


@dataclass
class InMemory:
    """A reading of rows by relation, and of those segments that are kept."""

    rows_of: Mapping[RelationName, pa.Table]
    requests: list[ArrowRequest] = field(default_factory=list)
    tick: Tick = NO_TICK

    def cost(self, name: RelationName, _key_count: int) -> float | None:
        return 1.0 if name in self.rows_of else None

    def holds(self, name: RelationName) -> bool:
        assert name in self.rows_of or isinstance(name, SegmentName)
        return name in self.rows_of

    def lookup(self, requests: Sequence[ArrowRequest]) -> list[ArrowResult]:
        return [self._found(request) for request in requests]

    def _found(self, request: ArrowRequest) -> ArrowResult:
        self.requests.append(request)
        bag = ArrowBag(self.rows_of[request.relation])
        if request.within is not None:
            bag = bag.matching(request.within.columns, request.within.keys)
        table = bag.table.select([*request.wanted, TICK, COUNT])
        return RowResult(rows=ArrowBag(table).net(), sight=SawTicks(upto=self.tick))


def counted(relation: Relation, rows: Sequence[Row]) -> pa.Table:
    bag = Counter(rows)
    columns = [pa.array([row[place] for row in bag], held.type) for place, held in enumerate(relation.arrow_schema())]
    names = [*relation.column_names, TICK, COUNT]
    return pa.table([*columns, pa.array([0] * len(bag), pa.int64()), pa.array(bag.values(), pa.int64())], names=names)


def segment_rows(world: World, view: SegmentedView) -> dict[RelationName, pa.Table]:
    """Return the rows of the segments that are kept."""
    world.evaluate(view)
    kept = {}
    for place, segment in enumerate(view.segments):
        columns = ", ".join(f'"{name}"' for name in segment.relation.column_names)
        text = f"SELECT {columns}, 0::BIGINT AS {TICK}, COUNT(*) AS {COUNT} FROM segment{place} GROUP BY ALL"
        rows = world.connection.execute(text).to_arrow_table()
        schema = pa.schema([*segment.relation.arrow_schema(), (TICK, pa.int64()), (COUNT, pa.int64())])
        if segment.is_kept:
            kept[segment.name] = rows.cast(schema)
    return kept


def traced_rows(
    view: SegmentedView, selected: Sequence[Row], reading: InMemory, relations: Mapping[RelationName, Relation]
) -> tuple[Traced, ...]:
    schema = view.output.relation.arrow_schema()
    columns = [pa.array([row[place] for row in selected], held.type) for place, held in enumerate(schema)]
    wanted = {name: relations[name].column_names for name in view.relations}
    return trace(view, pa.table(columns, schema=schema), reading, run_on_duckdb, wanted, reading.cost)


def lineage_by_row(traced: tuple[Traced, ...], count: int) -> list[set[tuple[str, Row, int]]]:
    """Return for each selected row the source rows it derives from: relation, values, and how often they are there."""
    found: list[set[tuple[str, Row, int]]] = [set() for _ in range(count)]
    for leaf, roots in roots_of_leaves(traced, count):
        columns = [leaf.rows[name].to_pylist() for name in leaf.columns]
        for values, times, places in zip(zip(*columns, strict=True), leaf.rows[COUNT].to_pylist(), roots, strict=True):
            for place in places:
                found[place].add((str(leaf.name), values, times))
    return found
