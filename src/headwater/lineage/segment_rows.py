"""The rows of a segment under some values: read where they are kept, else computed from what the segment reads.

Computing goes down with the values as far as they lead: through a join by the outputs that are plain columns, through a
group or a regroup by its keys (so that whole partitions are read), through a union by position. Then the step itself is
run over what was found (`views/whole`), and only the rows asked for are given. A join that only picks columns needs no
Spark for that.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import partial, reduce
from typing import assert_never

import pyarrow as pa

from headwater.deltas.extent import Extent
from headwater.deltas.on_arrow import ArrowBag
from headwater.deltas.summed_up import summed_up
from headwater.deltas.unfolded import unfolded
from headwater.lineage.reach import read_occurrences
from headwater.lineage.reading import Found, Origin, Reading, Restriction, Run, Wish
from headwater.lineage.rewritings import Lineages, cheapest, read_rewritten
from headwater.lineage.sought import Sought, sought_rows
from headwater.relation import COUNT, TICK, RelationName
from headwater.views.normal_form import JoinView, Occurrence
from headwater.views.partition_columns import partition_columns
from headwater.views.plain_columns import plain_columns
from headwater.views.segments import (
    SEGMENTS,
    GroupStep,
    JoinStep,
    RecomputeStep,
    RegroupStep,
    Segment,
    SegmentedView,
    UnionStep,
)
from headwater.views.spark_text import quoted
from headwater.views.whole import whole_sql


class SegmentRows:
    """What the segments of a view hold, and the relations below them, as a reading shows them."""

    def __init__(
        self,
        view: SegmentedView,
        reading: Reading,
        run: Run,
        wanted: Mapping[RelationName, tuple[str, ...]],
        lineages: Lineages | None = None,
    ) -> None:
        """Read with this reading; `wanted` are the columns to read of relations, `lineages` what may serve instead."""
        self.segments = {segment.name: segment for segment in view.segments}
        self.run = run
        self._reading = reading
        self._known: dict[tuple[RelationName, tuple[str, ...], Extent, tuple[tuple[str, ...], str] | None], Found] = {}
        self._wanted = wanted
        self._lineages = lineages or Lineages()

    def _columns_of(self, occurrence: Occurrence) -> tuple[str, ...]:
        relation = occurrence.relation
        return self._wanted[relation.name] if relation.name.source != SEGMENTS else relation.column_names

    def _of_occurrence(self, join: JoinView, occurrence: Occurrence, within: Restriction | None) -> Found:
        """Return rows of an occurrence of a join, among them all that its selections let through."""
        name, rows = occurrence.relation.name, Extent.of(join.selections[occurrence.alias])
        return self._read(Wish(name=name, columns=self._columns_of(occurrence), within=within, rows=rows))

    def of_segment(self, name: RelationName, within: Restriction | None) -> Found:
        """Return rows of a segment."""
        return self._read(Wish(name=name, columns=self.segments[name].relation.column_names, within=within))

    def reach(
        self, reader: RelationName, join: JoinView, sought: Sought, known: Mapping[str, Found] | None = None
    ) -> dict[str, Found]:
        """Return rows per alias of a segment's join, among them all that can derive a sought row."""
        lineage, read = self._lineages.kept.get(reader), partial(self._of_occurrence, join)
        if lineage is None or join is not lineage.join:
            return read_occurrences(join, sought, read, known)
        wanted = {occurrence.alias: self._columns_of(occurrence) for occurrence in join.occurrences}
        rewriting = cheapest(lineage, wanted, sought.rows.num_rows, self._lineages.cost, self.segments)
        return read_rewritten(rewriting, lineage, sought, wanted, self._reading, read)

    def _read(self, wish: Wish) -> Found:
        """Return what is wished for; what was wished for before is not read again: a reading is of one tick."""
        key = (wish.name, wish.columns, wish.rows, None if wish.within is None else _told(wish.within))
        if key not in self._known:
            self._known[key] = self._reading.rows(wish) or Found(
                rows=self._computed(self.segments[wish.name], wish.within).select([*wish.columns, COUNT]),
                origin=Origin.COMPUTED,
            )
        return self._known[key]

    def _computed(self, segment: Segment, within: Restriction | None) -> pa.Table:
        schema = pa.schema([*segment.relation.arrow_schema(), pa.field(COUNT, pa.int64())])
        if within is not None and not len(within.keys):
            return schema.empty_table()
        inputs = self._inputs(segment, within)
        if isinstance(segment.step, JoinStep) and (columns := plain_columns(segment.step.view)) is not None:
            [rows] = inputs.values()
            picked = ArrowBag(pa.table([rows[name] for name in (*columns, COUNT)], schema=schema))
            return summed_up((picked if within is None else picked.matching(within.columns, within.keys)).table)
        names = {name: f"input_{number}" for number, name in enumerate(inputs)}
        tables = {names[name]: unfolded(ArrowBag(rows)) for name, rows in inputs.items()}
        listed = ", ".join(map(quoted, segment.relation.column_names))
        tests = ""
        if within is not None:
            tables["keys"] = within.keys.table.rename_columns(list(within.columns))
            same = " AND ".join(f"whole.{quoted(name)} = k.{quoted(name)}" for name in within.columns)
            tests = f" WHERE EXISTS (SELECT 1 FROM keys AS k WHERE {same})"
        whole = f"({whole_sql(segment, names)}) AS whole"
        text = f"SELECT {listed}, COUNT(*) AS {COUNT} FROM {whole}{tests} GROUP BY {listed}"
        return self.run(text, tables).select(schema.names).cast(schema)

    def _inputs(self, segment: Segment, within: Restriction | None) -> dict[RelationName, pa.Table]:
        """Return with counts what a segment is to be computed from, so that the rows asked for come out right."""
        match segment.step:
            case JoinStep(view=join):
                return self._join_inputs(segment.name, join, within)
            case GroupStep(input=name, keys=keys):
                return {name: self.of_segment(name, _narrowed(within, {key: key for key in keys})).rows}
            case RegroupStep(input=name):
                return {name: self.of_segment(name, _narrowed(within, partition_columns(segment.step))).rows}
            case UnionStep():
                own = segment.relation.column_names
                return {
                    name: self.of_segment(
                        name, _narrowed(within, dict(zip(own, self._columns(name), strict=True)))
                    ).rows
                    for name in segment.inputs
                }
            case RecomputeStep():
                return {name: self.of_segment(name, None).rows for name in segment.inputs}
            case _:
                assert_never(segment.step)

    def _columns(self, name: RelationName) -> tuple[str, ...]:
        return self.segments[name].relation.column_names

    def _join_inputs(
        self, reader: RelationName, join: JoinView, within: Restriction | None
    ) -> dict[RelationName, pa.Table]:
        """Return rows per input; what several occurrences found of one relation is put together."""
        keys = pa.table({}) if within is None else within.keys.table.rename_columns(list(within.columns))
        sought = sought_rows(keys, () if within is None else within.columns, pa.nulls(keys.num_rows))
        found = self.reach(reader, join, sought)
        parts: dict[RelationName, list[ArrowBag]] = {}
        for occurrence in join.occurrences:
            rows = found[occurrence.alias].rows
            stamped = rows.append_column(TICK, pa.repeat(pa.scalar(0, pa.int64()), rows.num_rows))
            parts.setdefault(occurrence.relation.name, []).append(ArrowBag(stamped))
        return {
            name: reduce(lambda one, other: one.widest(other), bags).table.drop_columns([TICK])
            for name, bags in parts.items()
        }


def _told(within: Restriction) -> tuple[tuple[str, ...], str]:
    """Return what tells two restrictions apart."""
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, within.keys.table.schema) as writer:
        writer.write_table(within.keys.table.combine_chunks())
    return within.columns, hashlib.sha256(stream.getvalue()).hexdigest()


def _narrowed(within: Restriction | None, columns: Mapping[str, str]) -> Restriction | None:
    """Return a restriction as one of other columns, by what each is called there; those that lead nowhere go."""
    if within is None:
        return None
    leading = [name for name in within.columns if name in columns]
    if not leading:
        return None
    table = within.keys.table.rename_columns(list(within.columns))
    renamed = ArrowBag(table.select(leading)).keys(tuple(leading), ArrowBag(table), tuple(leading))
    return Restriction(columns=tuple(columns[name] for name in leading), keys=renamed)
