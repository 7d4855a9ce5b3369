"""Where a view's own kept rows show whole rows of a relation, so that its source need not be asked for them.

In the view's own table, if it is one join, or in its auxiliary tables that are joins. The rows are those of the tick
that the view has reached. When they may be used is in `maintenance/published/self_maintenance`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import SparkSession

from headwater.deltas.lookup import Origin, Restriction, RowRequest, look_up
from headwater.deltas.on_arrow import ArrowBag
from headwater.deltas.stored_bag import BagRequest, BagResult, held
from headwater.engine.state.stored_segment import StoredSegment
from headwater.engine.state.tick_lookup import SegmentLookup
from headwater.maintenance.published.self_maintenance import shows_whole_rows
from headwater.model.position import Tick
from headwater.model.relation import COUNT, TICK, Relation, RelationName, SegmentName
from headwater.model.settings import DEFAULTS
from headwater.views.steps.join import JoinView
from headwater.views.steps.keys import row_outputs
from headwater.views.steps.segments import SegmentedView
from headwater.warehouse.kept_table import KeptTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """An occurrence whose whole rows a kept join shows. `segment` is the join, None if it is the view."""

    segment: RelationName | None
    join: JoinView
    alias: str

    @property
    def relation(self) -> Relation:
        """The relation whose rows are shown."""
        return self.join.occurrence(self.alias).relation

    @property
    def wanted(self) -> tuple[str, ...]:
        """The columns that are shown of it."""
        return self.join.relations[self.relation.name]


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewLookup:
    """The rows of a relation that a kept join shows, by the relation's key. `kept` has the rows of the join.

    It knows less than the relation has: a key that is not found here says nothing.
    """

    shown: Shown
    kept: SegmentLookup

    def answers(self, request: BagRequest) -> bool:
        """Tell whether a request goes by the key of the relation, and for columns that are shown."""
        shown = self.shown
        is_by_key = set(request.columns) == set(shown.relation.key)
        return is_by_key and request.relation == shown.relation.name and set(request.wanted) <= set(shown.wanted)

    def lookup(self, requests: Sequence[BagRequest]) -> list[BagResult]:
        """Return the rows that are shown of each request, each once."""
        return [self._found(request) for request in requests]

    def _found(self, request: BagRequest) -> BagResult:
        shown, kept = self.shown, self.kept.relation
        assert request.within is not None, "rows are shown by keys"
        names = tuple(kept.column_names[place] for place in row_outputs(shown.join, shown.alias))
        by = tuple(names[shown.wanted.index(column)] for column in request.within.columns)
        there = Restriction(columns=by, keys=request.within.keys)
        result = look_up(self.kept, RowRequest(relation=kept.name, wanted=names, within=there))
        rows = held(result.rows).table.select([*names, TICK, COUNT]).rename_columns([*shown.wanted, TICK, COUNT])
        schema = [*shown.relation.arrow_schema(shown.wanted), rows.schema.field(TICK), rows.schema.field(COUNT)]
        once = _each_once(ArrowBag(rows.cast(pa.schema(schema))))
        return replace(result, rows=once.picked(request.wanted).net())


def shown_relations(view: SegmentedView) -> tuple[Shown, ...]:
    """Return whose whole rows are shown by what is kept of a view.

    Where columns of floating point are needed none are: -0.0 may be shown as 0.0.
    """
    only = view.only_join
    kept: list[tuple[RelationName | None, JoinView]] = [] if only is None else [(None, only)]
    kept += [
        (segment.name, segment.step.join)
        for segment in view.segments[:-1]
        if segment.is_kept and segment.step.join is not None
    ]
    found = [
        Shown(segment=name, join=join, alias=occurrence.alias)
        for name, join in kept
        for occurrence in join.occurrences
        if not isinstance(occurrence.relation.name, SegmentName) and shows_whole_rows(join, occurrence.alias)
    ]
    return tuple(one for one in found if not _has_floats(one))


def view_lookups(
    spark: SparkSession,
    view: SegmentedView,
    table: KeptTable,
    tick: Tick,
    segments: Mapping[RelationName, SegmentLookup],
    few_rows: int,
) -> tuple[ViewLookup, ...]:
    """Return the lookups that a view allows: in its own table at a tick, and in its auxiliary tables there."""
    own = stored_view(spark, view, table, tick, few_rows)
    return tuple(
        ViewLookup(shown=shown, kept=own if shown.segment is None else segments[shown.segment])
        for shown in shown_relations(view)
    )


def stored_view(
    spark: SparkSession,
    view: SegmentedView,
    table: KeptTable,
    tick: Tick,
    few_rows: int,
    held_rows: int = DEFAULTS.batch.held_rows,
) -> StoredSegment:
    """Return the lookup of a view's own rows in its table at a tick. `few_rows` are read without Spark."""
    return StoredSegment(
        relation=view.output.relation,
        tick=tick,
        table=table,
        spark=spark,
        few_rows=few_rows,
        held_rows=held_rows,
        origin=Origin.VIEW,
    )


def _has_floats(shown: Shown) -> bool:
    return any(shown.relation.column(name).type in ("float", "double") for name in shown.wanted)


def _each_once(rows: ArrowBag) -> ArrowBag:
    """Return every row that is there, once."""
    once = rows.net().table
    ones = pa.repeat(pa.scalar(1, pa.int64()), once.num_rows)
    return ArrowBag(once.set_column(once.column_names.index(COUNT), COUNT, ones))
