"""Find the derivations of sought rows of a join."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from headwater.deltas.lookup import RowResult, SawTicks
from headwater.deltas.on_arrow import ArrowBag, ArrowResult
from headwater.engine.state.segment_rows import SegmentRows
from headwater.engine.state.sought import OF, PLACE, Sought, numbered
from headwater.engine.state.tick_lookup import Run
from headwater.lineage.derivation_sql import (
    SOUGHT,
    is_possible_only,
    outputs_sql,
    place_of,
    possible_sql,
    real_sql,
)
from headwater.lineage.twins import Twin
from headwater.model.relation import RelationName
from headwater.views.steps.join import JoinView


@dataclass(frozen=True, slots=True, kw_only=True)
class Derivations:
    """The places of sought rows and of the rows that derive them, and the rows of every occurrence by alias."""

    sought: Sought
    read: Mapping[str, ArrowResult]
    places: pa.Table

    def split(self, number: int, alias: str) -> tuple[pa.Table, pa.ChunkedArray]:
        """Return the rows of an occurrence that are in some derivation, and for each the row above that it derives."""
        place = self.places[place_of(number)]
        of = self.sought.rows[OF].take(self.places[SOUGHT])
        pairs = pa.table([of, place], names=[OF, PLACE]).group_by([OF, PLACE], use_threads=False).aggregate([])
        return self.read[alias].rows.counted.take(pairs[PLACE]), pairs[OF]


def find_derivations(
    rows: SegmentRows, reader: RelationName, join: JoinView, sought: Sought, twins: tuple[Twin, ...] = ()
) -> Derivations:
    """Read what may derive sought rows of a segment that is a join, and find the derivations among it."""
    return _among(rows.reach(reader, join, sought), rows, reader, join, sought, twins)


def derived_outputs(rows: SegmentRows, reader: RelationName, join: JoinView, alias: str, part: pa.Table) -> pa.Table:
    """Return the outputs of the derivations that have one of some rows, with `_count`, at an occurrence."""
    any_row = Sought(columns=(), rows=pa.table({OF: pa.array([0], pa.int64())}))
    given = RowResult(rows=ArrowBag.of_counted(part, rows.tick), sight=SawTicks(upto=rows.tick))
    read = rows.reach(reader, join, any_row, {alias: given})
    found = _among(read, rows, reader, join, any_row, ())
    names, tables = _aligned(join, read, found.places)
    return rows.run(outputs_sql(join, names), tables)


def _among(
    read: Mapping[str, ArrowResult],
    rows: SegmentRows,
    reader: RelationName,
    join: JoinView,
    sought: Sought,
    twins: tuple[Twin, ...],
) -> Derivations:
    """Return the derivations of sought rows that rows of the occurrences give."""
    every = dict(read)
    for twin in twins:
        every |= rows.reach(reader, twin.taken, Sought(columns=(), rows=sought.rows.select([])), every)
    tables = {f"occurrence_{number}": numbered(found.rows.counted) for number, found in enumerate(every.values())}
    names = dict(zip(every, tables, strict=True))
    given = {**tables, "sought": numbered(sought.rows)}
    places = rows.run(possible_sql(join, names, "sought", sought.columns, twins), given)
    if is_possible_only(join, sought.columns):
        places = _real(join, read, sought, places, rows.run)
    return Derivations(sought=sought, read=read, places=places)


def _real(join: JoinView, read: Mapping[str, ArrowResult], sought: Sought, places: pa.Table, run: Run) -> pa.Table:
    """Return those of possible derivations whose conditions and outputs are right also where these may fail."""
    names, tables = _aligned(join, read, places)
    tables["sought"] = numbered(sought.rows.take(places[SOUGHT]))
    real = run(real_sql(join, names, "sought", sought.columns), tables)
    return places.take(real[PLACE])


def _aligned(
    join: JoinView, read: Mapping[str, ArrowResult], places: pa.Table
) -> tuple[dict[str, str], dict[str, pa.Table]]:
    """Return a table per alias with one row per derivation, numbered, and their names."""
    names = {o.alias: f"occurrence_{number}" for number, o in enumerate(join.occurrences)}
    tables = {
        names[o.alias]: numbered(read[o.alias].rows.counted.take(places[place_of(number)]))
        for number, o in enumerate(join.occurrences)
    }
    return names, tables
