"""The hidden tables that a bootstrap makes: one for all newborn views whose segments mean the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from headwater.position import Tick
from headwater.relation import RelationName
from headwater.runtime.hidden_table import HiddenTable
from headwater.runtime.understand import UnderstoodView
from headwater.runtime.whole_view import whole_view
from headwater.views.segments import GroupStep, RecomputeStep, Segment, SegmentedView
from headwater.warehouse.folders import next_generation, segment_folder, segment_table
from headwater.warehouse.kept_table import KeptTable


def kept_segments(view: SegmentedView) -> tuple[Segment, ...]:
    """Return the segments that have a hidden table: the view itself has one that is read."""
    return tuple(segment for segment in view.segments[:-1] if segment.is_kept)


def with_own_rows(
    spark: SparkSession, view: SegmentedView, table: KeptTable, hidden: Mapping[RelationName, HiddenTable]
) -> dict[RelationName, HiddenTable]:
    """Return a view's hidden tables, and the view's own where its last step looks at its own rows."""
    if not isinstance(view.output.step, GroupStep | RecomputeStep):
        return dict(hidden)
    own = HiddenTable(name=view.name, relation=view.output.relation, table=table, spark=spark)
    return {**hidden, view.output.name: own}


@dataclass(frozen=True, slots=True, kw_only=True)
class BornSegments:
    """The names of a newborn view's hidden tables, by segment, and the view's rows as its segments give them."""

    tables: Mapping[RelationName, str]
    rows: DataFrame


@dataclass(slots=True, kw_only=True)
class BornTables:
    """Hidden tables at their birth; `adopted` are those that other views keep already, by segment."""

    spark: SparkSession
    warehouse: str
    tick: Tick
    adopted: Mapping[RelationName, str]
    made: dict[str, HiddenTable] = field(default_factory=dict)
    _shared: dict[RelationName, str] = field(default_factory=dict)

    @contextmanager
    def tables_for(
        self, understood: UnderstoodView, plain: Mapping[RelationName, DataFrame], *, is_rebuilt: bool
    ) -> Iterator[BornSegments]:
        """Give the tables of a view's kept segments; those that are not there are computed and written.

        `plain` are plain rows of its relations. A view that is to be rebuilt trusts no table that is there already.
        """
        known = {**self._shared, **({} if is_rebuilt else self.adopted)} if understood.shares else {}
        kept = [segment.name for segment in kept_segments(understood.view)]
        found = {name: known[name] for name in kept if name in known}
        placed = partial(self._placed, understood, frozenset(kept), found)
        with whole_view(self.spark, understood.view, plain, placed) as rows:
            yield BornSegments(tables=found, rows=rows)

    def _placed(
        self,
        understood: UnderstoodView,
        kept: frozenset[RelationName],
        found: dict[RelationName, str],
        segment: Segment,
        rows: DataFrame,
    ) -> DataFrame:
        """Write a kept segment that has no table yet; what was written is read, not computed again."""
        if segment.name in kept and segment.name not in found:
            written = self._write(segment, rows)
            if segment.name not in understood.view.unread:
                written.at(self.tick)  # read here, beside the maintainer's loop
            found[segment.name] = written.name
            if understood.shares:
                self._shared[segment.name] = written.name
        made = self.made.get(found.get(segment.name, ""))
        return rows if made is None else made.table.state_dataframe(self.spark, self.tick)

    def _write(self, segment: Segment, rows: DataFrame) -> HiddenTable:
        first = segment_folder(self.warehouse, segment_table(segment.name.name, 0))
        name = segment_table(segment.name.name, next_generation(first))
        folder, schema = segment_folder(self.warehouse, name), segment.relation.arrow_schema()
        table = KeptTable.create(folder, schema, self.tick, ordered=len(segment.looked_up_by))
        table.checkpoint.write_from_dataframe(rows, self.tick)
        hidden = HiddenTable(name=name, relation=segment.relation, table=table, spark=self.spark)
        self.made[name] = hidden
        return hidden
