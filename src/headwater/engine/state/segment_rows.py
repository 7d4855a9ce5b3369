"""The rows of a segment under some values: read where they are kept, else computed from what the segment reads.

Computing goes down with the values as far as they lead: through a join by the outputs that are plain columns, through a
group or a regroup by its keys (so that whole partitions are read), through a union by position. Then the step itself is
run over what was found (`Segment.whole_sql`), and only the rows asked for are given. A join that only picks columns
needs no Spark for that.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import partial, reduce

import pyarrow as pa

from headwater.deltas.extent import Extent
from headwater.deltas.lookup import NO_TICK, Origin, Restriction, RowRequest, RowResult, SawTicks, look_up
from headwater.deltas.on_arrow import ArrowBag, ArrowRequest, ArrowRestriction, ArrowResult, summed_up, unfolded
from headwater.deltas.stored_bag import held_result
from headwater.engine.state.reach import read_occurrences
from headwater.engine.state.rewritings import Lineages, cheapest, read_rewritten
from headwater.engine.state.sought import Sought, sought_rows
from headwater.engine.state.tick_lookup import Run, TickLookup
from headwater.model.relation import COUNT, RelationName, SegmentName
from headwater.views.steps.join import JoinView, Occurrence
from headwater.views.steps.output_columns import plain_columns
from headwater.views.steps.segments import Segment, SegmentedView
from headwater.views.text.spark_text import quoted


class SegmentRows:
    """What the segments of a view hold, and the relations below them, as a reading shows them."""

    def __init__(
        self,
        view: SegmentedView,
        reading: TickLookup,
        run: Run,
        wanted: Mapping[RelationName, tuple[str, ...]],
        lineages: Lineages | None = None,
    ) -> None:
        """Read with this reading. `wanted` are the columns to read of relations, `lineages` what may serve instead."""
        self.segments = {segment.name: segment for segment in view.segments}
        self.run = run
        self.tick = reading.tick
        self._reading = reading
        self._known: dict[
            tuple[RelationName, tuple[str, ...], Extent, tuple[tuple[str, ...], str] | None], ArrowResult
        ] = {}
        self._wanted = wanted
        self._lineages = lineages or Lineages()

    def _columns_of(self, occurrence: Occurrence) -> tuple[str, ...]:
        relation = occurrence.relation
        return self._wanted[relation.name] if not isinstance(relation.name, SegmentName) else relation.column_names

    def _of_occurrence(self, join: JoinView, occurrence: Occurrence, within: ArrowRestriction | None) -> ArrowResult:
        """Return rows of an occurrence of a join, among them all that its selections let through."""
        name, extent = occurrence.relation.name, Extent.of(join.selections[occurrence.alias])
        wanted = self._columns_of(occurrence)
        return self._read(RowRequest(relation=name, wanted=wanted, within=within, extent=extent))

    def of_segment(self, name: RelationName, within: ArrowRestriction | None) -> ArrowResult:
        """Return rows of a segment."""
        wanted = self.segments[name].relation.column_names
        return self._read(RowRequest(relation=name, wanted=wanted, within=within))

    def reach(
        self, reader: RelationName, join: JoinView, sought: Sought, known: Mapping[str, ArrowResult] | None = None
    ) -> dict[str, ArrowResult]:
        """Return rows per alias of a segment's join, among them all that can derive a sought row."""
        lineage, read = self._lineages.kept.get(reader), partial(self._of_occurrence, join)
        if lineage is None or join is not lineage.join:
            return read_occurrences(join, sought, read, known)
        wanted = {occurrence.alias: self._columns_of(occurrence) for occurrence in join.occurrences}
        rewriting = cheapest(lineage, wanted, sought.rows.num_rows, self._lineages.cost, self.segments)
        return read_rewritten(rewriting, lineage, sought, wanted, self._reading, read)

    def _read(self, request: ArrowRequest) -> ArrowResult:
        """Return what is asked for. What was asked for before is not read again: a reading is of one tick."""
        key = (
            request.relation,
            request.wanted,
            request.extent,
            None if request.within is None else _told(request.within),
        )
        if key not in self._known:
            is_held = self._reading.holds(request.relation)
            self._known[key] = (
                held_result(look_up(self._reading, request)) if is_held else self._computed_result(request)
            )
        return self._known[key]

    def _computed_result(self, request: ArrowRequest) -> ArrowResult:
        rows = self._computed(self.segments[request.relation], request.within).select([*request.wanted, COUNT])
        bag = ArrowBag.of_counted(rows, self.tick)
        return RowResult(rows=bag, sight=SawTicks(upto=self.tick), origin=Origin.COMPUTED)

    def _computed(self, segment: Segment, within: ArrowRestriction | None) -> pa.Table:
        schema = pa.schema([*segment.relation.arrow_schema(), pa.field(COUNT, pa.int64())])
        if within is not None and not len(within.keys):
            return schema.empty_table()
        inputs = self._inputs(segment, within)
        join = segment.step.join
        if join is not None and (columns := plain_columns(join)) is not None:
            [rows] = inputs.values()
            picked = ArrowBag(pa.table([rows[name] for name in (*columns, COUNT)], schema=schema))
            return summed_up((picked if within is None else picked.matching(within.columns, within.keys)).table)
        names = {name: f"input_{number}" for number, name in enumerate(inputs)}
        tables = {names[name]: unfolded(ArrowBag(rows)) for name, rows in inputs.items()}
        listed = ", ".join(map(quoted, segment.relation.column_names))
        tests = ""
        if within is not None:
            tables["keys"] = within.keys.named(within.columns)
            same = " AND ".join(f"whole.{quoted(name)} = k.{quoted(name)}" for name in within.columns)
            tests = f" WHERE EXISTS (SELECT 1 FROM keys AS k WHERE {same})"
        whole = f"({segment.whole_sql(names)}) AS whole"
        text = f"SELECT {listed}, COUNT(*) AS {COUNT} FROM {whole}{tests} GROUP BY {listed}"
        return self.run(text, tables).select(schema.names).cast(schema)

    def _inputs(self, segment: Segment, within: ArrowRestriction | None) -> dict[RelationName, pa.Table]:
        """Return with counts what a segment is to be computed from, so that the rows asked for come out right."""
        if segment.step.join is not None:
            return self._join_inputs(segment.name, segment.step.join, within)
        return {
            given.name: self.of_segment(given.name, _narrowed(within, columns)).rows.counted
            for given, columns in segment.step.input_columns(segment, self.segments)
        }

    def _join_inputs(
        self, reader: RelationName, join: JoinView, within: ArrowRestriction | None
    ) -> dict[RelationName, pa.Table]:
        """Return rows per input. What several occurrences found of one relation is put together."""
        keys = pa.table({}) if within is None else within.keys.named(within.columns)
        sought = sought_rows(keys, () if within is None else within.columns, pa.nulls(keys.num_rows))
        found = self.reach(reader, join, sought)
        parts: dict[RelationName, list[ArrowBag]] = {}
        for occurrence in join.occurrences:
            parts.setdefault(occurrence.relation.name, []).append(found[occurrence.alias].rows.restamped(NO_TICK))
        return {name: reduce(lambda one, other: one.widest(other), bags).counted for name, bags in parts.items()}


def _told(within: ArrowRestriction) -> tuple[tuple[str, ...], str]:
    """Return what tells two restrictions apart."""
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, within.keys.table.schema) as writer:
        writer.write_table(within.keys.table.combine_chunks())
    return within.columns, hashlib.sha256(stream.getvalue()).hexdigest()


def _narrowed(within: ArrowRestriction | None, columns: Mapping[str, str]) -> ArrowRestriction | None:
    """Return a restriction as one of other columns, by what each is called there. Those that lead nowhere go."""
    if within is None:
        return None
    leading = [name for name in within.columns if name in columns]
    if not leading:
        return None
    table = within.keys.named(within.columns)
    renamed = ArrowBag(table.select(leading)).keys(tuple(leading), ArrowBag(table), tuple(leading))
    return Restriction(columns=tuple(columns[name] for name in leading), keys=renamed)
