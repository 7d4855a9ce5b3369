"""The hidden tables that a bootstrap makes: one for all newborn views whose segments mean the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession

from headwater.deltas.on_spark import fresh_name
from headwater.position import Tick
from headwater.relation import RelationName
from headwater.runtime.hidden_table import HiddenTable
from headwater.runtime.understand import UnderstoodView
from headwater.views.segments import GroupStep, RecomputeStep, Segment, SegmentedView
from headwater.views.whole import whole_sql
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


@dataclass(slots=True, kw_only=True)
class BornTables:
    """Hidden tables at their birth; `adopted` are those that other views keep already, by segment."""

    spark: SparkSession
    warehouse: str
    tick: Tick
    adopted: Mapping[RelationName, str]
    made: dict[str, HiddenTable] = field(default_factory=dict)
    _shared: dict[RelationName, str] = field(default_factory=dict)

    def tables_for(
        self, understood: UnderstoodView, plain: Mapping[RelationName, DataFrame], *, is_rebuilt: bool
    ) -> dict[RelationName, str]:
        """Return the tables of a view's kept segments, by name; those that are not there are computed and written.

        `plain` are plain rows of its relations. A view that is to be rebuilt trusts no table that is there already.
        """
        known = {**self._shared, **({} if is_rebuilt else self.adopted)} if understood.shares else {}
        kept = [segment.name for segment in kept_segments(understood.view)]
        found = {name: known[name] for name in kept if name in known}
        self._make(understood, plain, found, {name for name in kept if name not in known})
        return found

    def _make(
        self,
        understood: UnderstoodView,
        plain: Mapping[RelationName, DataFrame],
        found: dict[RelationName, str],
        left: set[RelationName],
    ) -> None:
        segments = understood.view.segments
        names = {name: fresh_name("whole") for name in (*plain, *(segment.name for segment in segments))}
        for name, frame in plain.items():
            frame.createOrReplaceTempView(names[name])
        try:
            for segment in segments:
                if not left:
                    return
                if segment.name in left:
                    left.remove(segment.name)
                    written = self._write(segment, self.spark.sql(whole_sql(segment, names)))
                    if segment.name not in understood.view.unread:
                        written.at(self.tick)  # read here, beside the maintainer's loop
                    found[segment.name] = written.name
                    if understood.shares:
                        self._shared[segment.name] = found[segment.name]
                made = self.made.get(found.get(segment.name, ""))  # what was written is read, not computed again
                frame = (
                    self.spark.sql(whole_sql(segment, names))
                    if made is None
                    else made.table.state_dataframe(self.spark, self.tick)
                )
                frame.createOrReplaceTempView(names[segment.name])
        finally:
            for registered in names.values():
                self.spark.catalog.dropTempView(registered)

    def _write(self, segment: Segment, rows: DataFrame) -> HiddenTable:
        first = segment_folder(self.warehouse, segment_table(segment.name.name, 0))
        name = segment_table(segment.name.name, next_generation(first))
        folder, schema = segment_folder(self.warehouse, name), segment.relation.arrow_schema()
        table = KeptTable.create(folder, schema, self.tick, ordered=len(segment.looked_up_by))
        table.checkpoint.write_from_dataframe(rows, self.tick)
        hidden = HiddenTable(name=name, relation=segment.relation, table=table, spark=self.spark)
        self.made[name] = hidden
        return hidden
