"""Where a view's own kept rows show whole rows of a relation, so that its source need not be asked for them.

In the view's own table, if it is one join, or in its hidden tables that are joins. The rows are those of the tick that
the view has reached. When they may be used is in `maintenance/self_maintenance`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from pyspark.sql import SparkSession

from headwater.deltas.on_arrow import ArrowBag, ArrowKeys
from headwater.maintenance.self_maintenance import shows_whole_rows
from headwater.position import Tick
from headwater.relation import COUNT, TICK, Relation, RelationName
from headwater.runtime.look import each_once, shown_rows
from headwater.runtime.old_rows import OldRows
from headwater.views.keys import row_outputs
from headwater.views.normal_form import JoinView
from headwater.views.segments import SEGMENTS, JoinStep, SegmentedView
from headwater.warehouse.kept_table import KeptTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """An occurrence whose whole rows a kept join shows; `segment` is the join, None if it is the view."""

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
class Look:
    """How to find rows of a relation, of which some columns are shown, by its key."""

    shown: Shown
    find: Callable[[tuple[str, ...], ArrowKeys], ArrowBag]


def shown_relations(view: SegmentedView) -> tuple[Shown, ...]:
    """Return whose whole rows are shown by what is kept of a view.

    Where columns of floating point are needed none are: -0.0 may be shown as 0.0.
    """
    only = view.only_join
    kept: list[tuple[RelationName | None, JoinView]] = [] if only is None else [(None, only)]
    kept += [
        (segment.name, segment.step.view)
        for segment in view.segments[:-1]
        if segment.is_kept and isinstance(segment.step, JoinStep)
    ]
    found = [
        Shown(segment=name, join=join, alias=occurrence.alias)
        for name, join in kept
        for occurrence in join.occurrences
        if occurrence.relation.name.source != SEGMENTS and shows_whole_rows(join, occurrence.alias)
    ]
    return tuple(one for one in found if not _has_floats(one))


def own_looks(
    spark: SparkSession,
    view: SegmentedView,
    table: KeptTable,
    tick: Tick,
    readers: Mapping[RelationName, OldRows],
) -> tuple[Look, ...]:
    """Return the looks that a view allows: into its own table at a tick, and its hidden tables there."""
    looks = []
    for shown in shown_relations(view):
        if shown.segment is None:
            find = partial(shown_rows, spark, table, tick, shown.join, shown.alias)
        else:
            find = partial(_segment_rows, readers[shown.segment], shown)
        looks.append(Look(shown=shown, find=find))
    return tuple(looks)


def _has_floats(shown: Shown) -> bool:
    return any(shown.relation.column(name).type in ("float", "double") for name in shown.wanted)


def _segment_rows(reader: OldRows, shown: Shown, columns: tuple[str, ...], keys: ArrowKeys) -> ArrowBag:
    """Return the rows of an occurrence that a kept segment shows under some keys, each once."""
    names = tuple(reader.relation.column_names[place] for place in row_outputs(shown.join, shown.alias))
    by = tuple(names[shown.wanted.index(column)] for column in columns)
    found = reader.lookup(names, by, keys.table.rename_columns(list(by))).table
    rows = found.select([*names, TICK, COUNT]).rename_columns([*shown.wanted, TICK, COUNT])
    schema = pa.schema([*shown.relation.arrow_schema(shown.wanted), rows.schema.field(TICK), rows.schema.field(COUNT)])
    return each_once(ArrowBag(rows.cast(schema)))
