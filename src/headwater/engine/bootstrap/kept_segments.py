"""The auxiliary tables that a bootstrap makes: one for all new views whose segments mean the same."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from headwater.engine.bootstrap.born_rows import BornRows, Inputs
from headwater.engine.bootstrap.whole_view import whole_view
from headwater.engine.state.auxiliary_table import AuxiliaryTable
from headwater.model.memory_budget import MemoryBudget
from headwater.model.position import Tick
from headwater.model.relation import RelationName
from headwater.model.settings import BatchSettings
from headwater.project.resolve import ResolvedView
from headwater.views.steps.segments import Segment, SegmentedView
from headwater.warehouse.folders import reserve_generation, segment_folder, segment_table
from headwater.warehouse.journal import Journal
from headwater.warehouse.kept_table import KeptTable


def kept_segments(view: SegmentedView) -> tuple[Segment, ...]:
    """Return the segments that have an auxiliary table: the view itself has one that is read."""
    return tuple(segment for segment in view.segments[:-1] if segment.is_kept)


def with_own_rows(
    spark: SparkSession,
    view: SegmentedView,
    table: KeptTable,
    auxiliary: Mapping[RelationName, AuxiliaryTable],
    settings: BatchSettings,
    budget: MemoryBudget,
) -> dict[RelationName, AuxiliaryTable]:
    """Return a view's auxiliary tables, and the view's own where its last step looks at its own rows."""
    if not view.output.step.reads_own_rows:
        return dict(auxiliary)
    relation = view.output.relation
    own = AuxiliaryTable(name=view.name, relation=relation, table=table, spark=spark, settings=settings, budget=budget)
    return {**auxiliary, view.output.name: own}


@dataclass(frozen=True, slots=True, kw_only=True)
class BornSegments:
    """The names of a new view's auxiliary tables, by segment, and the view's rows as its segments give them."""

    tables: Mapping[RelationName, str]
    rows: DataFrame


@dataclass(slots=True, kw_only=True)
class BornTables:
    """Auxiliary tables at their birth. `adopted` are those that other views keep already, by segment.

    Several threads bring views to life with it: a segment that views share is made by the first that comes to it.
    """

    spark: SparkSession
    warehouse: str
    journal: Journal
    tick: Tick
    adopted: Mapping[RelationName, str]
    settings: BatchSettings
    budget: MemoryBudget
    made: dict[str, AuxiliaryTable] = field(default_factory=dict)
    _shared: dict[RelationName, str] = field(default_factory=dict)
    _few: dict[str, DataFrame] = field(default_factory=dict)
    """The rows of tables that are few, as later segments read them."""
    _making: dict[RelationName, threading.Lock] = field(default_factory=dict)

    @contextmanager
    def tables_for(self, resolved: ResolvedView, inputs: Inputs, *, is_rebuilt: bool) -> Iterator[BornSegments]:
        """Give the tables of a view's kept segments. Those that are not there are computed and written.

        A view that is to be rebuilt trusts no table that is there already.
        """
        known = {**self._shared, **({} if is_rebuilt else self.adopted)} if resolved.shares else {}
        kept = [segment.name for segment in kept_segments(resolved.view)]
        found = {name: known[name] for name in kept if name in known}
        placed = partial(self._placed, resolved, inputs, frozenset(kept), found)
        with whole_view(inputs.spark, resolved.view, inputs.plain, placed) as rows:
            yield BornSegments(tables=found, rows=rows)

    def _placed(
        self,
        resolved: ResolvedView,
        inputs: Inputs,
        kept: frozenset[RelationName],
        found: dict[RelationName, str],
        segment: Segment,
        rows: DataFrame,
    ) -> DataFrame:
        """Write a kept segment that has no table yet. What was written is read, not computed again."""
        if segment.name in kept and segment.name not in found:
            with self._making.setdefault(segment.name, threading.Lock()):
                found[segment.name] = self._table_of(resolved, inputs, segment, rows)
        made = self.made.get(found.get(segment.name, ""))
        if made is None:
            return rows
        few = self._few.get(made.name) if inputs.few else None
        return made.table.state_dataframe(inputs.spark, self.tick) if few is None else few

    def _table_of(self, resolved: ResolvedView, inputs: Inputs, segment: Segment, rows: DataFrame) -> str:
        """Return the table of a segment: one that another new view has made meanwhile, or else a new one."""
        if not resolved.shares or segment.name not in self._shared:
            computed = BornRows.of_frame(rows, inputs.few)
            written = self._write(segment, computed)
            if segment.name not in resolved.view.unread:
                if computed.few is None:
                    written.at(self.tick)  # read here, beside the maintainer's loop
                else:
                    written.hold(computed.few, self.tick)
            if not resolved.shares:
                return written.name
            self._shared[segment.name] = written.name
        return self._shared[segment.name]

    def _write(self, segment: Segment, rows: BornRows) -> AuxiliaryTable:
        first = segment_folder(self.warehouse, segment_table(segment.name.name, 0))
        name = segment_table(segment.name.name, reserve_generation(first))
        folder, schema = segment_folder(self.warehouse, name), segment.relation.arrow_schema()
        table = KeptTable.create(folder, self.journal, schema, self.tick, ordered=len(segment.looked_up_by))
        rows.write(table.checkpoint, self.tick)
        auxiliary = AuxiliaryTable(
            name=name,
            relation=segment.relation,
            table=table,
            spark=self.spark,
            settings=self.settings,
            budget=self.budget,
        )
        self.made[name] = auxiliary
        if rows.few is not None:
            self._few[name] = rows.placed(self.spark).frame
        return auxiliary
