"""Trace rows of a view to the source rows that derived them, top-down, segment by segment.

    the view's rows ──► derivations ──► rows of groups ──► derivations ──► ... ──► source rows

| step | the lineage of its row |
|---|---|
| join | the rows of each occurrence in the derivations that give the row (`derivation_sql`) |
| group | all rows of its input with the row's keys |
| regroup, aggregates | the same: all rows of the partition |
| regroup, windows | all rows of the row's partition: its values were computed from them |
| regroup, first rows | the row itself: those that came later in the order are no lineage |
| union | the lineage of the row in every member that is added, without the derivations that are taken away (`twins`) |
| recompute | all rows of its inputs: nothing is known of what it does |

So the lineage is exact for derivations: through any number of levels, a source row is traced if and only if it is part
of some derivation of a row that is traced above it. docs/reference/lineage.md says what that means for each construct.

Cost: one query per join on the way, over the rows that the traced values lead to (`reach`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import assert_never

import pyarrow as pa

from headwater.deltas.lookup import Origin
from headwater.deltas.on_arrow import unfolded
from headwater.engine.state.reach import restrict
from headwater.engine.state.rewritings import Lineages
from headwater.engine.state.segment_rows import SegmentRows
from headwater.engine.state.sought import OF, PLACE, Sought, numbered, same_values, sought_rows
from headwater.engine.state.tick_lookup import Cost, Run, TickLookup
from headwater.lineage.derivations import find_derivations
from headwater.lineage.traced import Traced
from headwater.lineage.twins import Member, Twin, added_members
from headwater.model.relation import COUNT, RelationName, SegmentName
from headwater.views.steps.derivation import (
    FromEverything,
    FromJoin,
    FromMembers,
    FromPartition,
    FromRow,
    FromWindow,
    Signed,
)
from headwater.views.steps.join import JoinView
from headwater.views.steps.keep_lineage import without_lineage
from headwater.views.steps.segments import (
    Segment,
    SegmentedView,
)
from headwater.views.text.author_words import AuthorWords
from headwater.views.text.spark_text import quoted

# A row does not always hold what it was partitioned by, so the rows with its other values are looked up first; they
# tell the partitions, and these are read whole and computed.


def find_partitions(rows: SegmentRows, made: FromWindow, sought: Sought) -> Sought:
    """Return what is sought of a regroup's input: all rows of the partitions that sought rows are in."""
    given = rows.segments[made.input].relation
    passed = {text: name for name, text in made.computed.outputs if name in sought.columns}
    pairs = {name: passed[quoted(name)] for name in given.column_names if quoted(name) in passed}
    some = rows.of_segment(made.input, restrict(given, pairs, sought.rows))
    whole = rows.of_segment(made.input, restrict(given, {key: key for key in made.keys}, some.rows.table))
    names = [f"#{number}" for number in range(len(made.keys))]
    keys = ", ".join(f"{quoted(key)} AS {quoted(name)}" for key, name in zip(made.keys, names, strict=True))
    source = f"(SELECT *{f', {keys}' if keys else ''} FROM given) AS named"
    values = made.computed.sql_with(made.keys, source, (), names)
    listed = ", ".join([f"s.{quoted(OF)} AS {quoted(OF)}", *(f"w.{quoted(name)} AS {quoted(name)}" for name in names)])
    found = rows.run(
        f"SELECT DISTINCT {listed} FROM sought AS s JOIN ({values}) AS w ON {same_values('w', 's', sought.columns)}",
        {"sought": sought.rows, "given": unfolded(whole.rows)},
    )
    named = pa.table([found[name] for name in (*names, OF)], names=[*made.keys, OF])
    return sought_rows(named, made.keys, named[OF])


def own_first(every: Sequence[Traced], own: Sequence[Traced]) -> Iterator[Traced]:
    """Yield what was traced of whole partitions, the rows first that were traced of the rows themselves."""
    waiting = list(own)
    for one in every:
        mine = next((other for other in waiting if (other.name, other.title) == (one.name, one.title)), None)
        if mine is None:
            yield one
            continue
        waiting.remove(mine)
        own_rows = set(_rows(mine.rows))
        is_own = [row in own_rows for row in _rows(one.rows)]
        order = sorted(range(len(is_own)), key=lambda place: not is_own[place])
        yield replace(one, rows=one.rows.take(order), below=tuple(_moved(below, order) for below in one.below))


def _rows(rows: pa.Table) -> list[str]:
    return [repr(row) for row in rows.to_pylist()]


def _moved(below: Traced, order: list[int]) -> Traced:
    """Return what derives from rows that have other places now."""
    now = {was: place for place, was in enumerate(order)}
    of = pa.array([None if was is None else now[was] for was in below.rows[OF].to_pylist()], pa.int64())
    return replace(below, rows=below.rows.set_column(below.rows.column_names.index(OF), OF, of))


_OF, _PLACE = quoted(OF), quoted(PLACE)


def trace(
    view: SegmentedView,
    selected: pa.Table,
    reading: TickLookup,
    run: Run,
    wanted: Mapping[RelationName, tuple[str, ...]],
    cost: Cost,
) -> tuple[Traced, ...]:
    """Return what rows of a view derive from. `#of` at the top tells the place of the selected row.

    `wanted` are the columns to show of each relation, at least those that the view reads. By `cost` it is chosen what
    of the lineage that is kept is read.
    """
    places = pa.array(range(selected.num_rows), pa.int64())
    sought = sought_rows(selected, view.output_names, places, Origin.VIEW)
    lineages = Lineages(kept={one.of: one for one in view.lineage}, cost=cost)
    plain = without_lineage(view)
    tracer = _Tracer(SegmentRows(plain, reading, run, wanted, lineages), AuthorWords.of(plain))
    return tuple(tracer.segment(plain.output, sought))


class _Tracer:
    """One trace."""

    def __init__(self, rows: SegmentRows, words: AuthorWords) -> None:
        self._rows = rows
        self._segments = rows.segments
        self._words = words

    def segment(self, segment: Segment, sought: Sought) -> Iterator[Traced]:
        """Yield what sought rows of a segment derive from."""
        if sought.is_empty:
            return
        made = segment.step.derivation(segment)
        match made:
            case FromJoin(join=join):
                yield from self._join(segment.name, join, sought)
            case FromPartition(input=name, keys=keys):
                yield from self._partition(segment, name, keys, sought)
            case FromRow(input=name):
                yield from self._below(name, self._read(segment, sought).renamed(self._columns(name)))
            case FromWindow():
                yield from self._windows(made, sought)
            case FromMembers(inputs=members):
                yield from self._union(segment, members, sought)
            case FromEverything(inputs=inputs):
                every = Sought(columns=(), rows=pa.table({OF: pa.nulls(1, pa.int64())}))
                yield from chain.from_iterable(self._below(name, every) for name in inputs)
            case _:
                assert_never(made)

    def _windows(self, made: FromWindow, sought: Sought) -> Iterator[Traced]:
        """Yield what whole partitions derive from, what the rows themselves do first."""
        every = tuple(self._below(made.input, find_partitions(self._rows, made, sought)))
        passed = {text: name for name, text in made.computed.outputs if name in sought.columns}
        same = tuple(name for name in self._columns(made.input) if quoted(name) in passed)
        own = pa.table([sought.rows[passed[quoted(name)]] for name in same], names=list(same)) if same else None
        itself = () if own is None else self._below(made.input, sought_rows(own, same, sought.rows[OF]))
        yield from own_first(every, tuple(itself))

    def _below(self, name: RelationName, sought: Sought) -> Iterator[Traced]:
        return self.segment(self._segments[name], sought)

    def _columns(self, name: RelationName) -> tuple[str, ...]:
        return self._segments[name].relation.column_names

    def _join(
        self, reader: RelationName, join: JoinView, sought: Sought, twins: tuple[Twin, ...] = ()
    ) -> Iterator[Traced]:
        """Yield what the derivations of sought rows are made of, occurrence by occurrence."""
        found = find_derivations(self._rows, reader, join, sought, twins)
        for number, occurrence in enumerate(join.occurrences):
            rows, of = found.split(number, occurrence.alias)
            if occurrence.is_test or not rows.num_rows:
                continue
            name, origin = occurrence.relation.name, found.read[occurrence.alias].origin
            if isinstance(name, SegmentName):
                yield from self._below(name, sought_rows(rows, occurrence.relation.column_names, of, origin))
            else:
                yield Traced(name=name, title=str(name), origin=origin, rows=rows.append_column(OF, of))

    def _partition(
        self, segment: Segment, name: RelationName, keys: tuple[str, ...], sought: Sought
    ) -> Iterator[Traced]:
        """Yield rows of a group, and below them what has their keys."""
        whole = self._read(segment, sought)
        places = pa.array(range(whole.rows.num_rows), pa.int64())
        below = tuple(self._below(name, sought_rows(whole.rows, keys, places)))
        if not whole.is_empty:
            yield self._shown(segment, keys, whole, below)

    def _shown(self, segment: Segment, keys: tuple[str, ...], whole: Sought, below: tuple[Traced, ...]) -> Traced:
        """Return rows of a group as a person wants to read them."""
        called = self._called(segment.name, whole.columns)
        by = ", ".join(called[key] for key in keys)
        ones = pa.repeat(pa.scalar(1, pa.int64()), whole.rows.num_rows)
        rows = whole.rows.rename_columns([*called.values(), OF]).append_column(COUNT, ones)
        title = f"group by {by}" if by else "group of all rows"
        return Traced(name=segment.name, title=title, origin=whole.origin or Origin.COMPUTED, rows=rows, below=below)

    def _called(self, name: RelationName, columns: Sequence[str]) -> dict[str, str]:
        """Return what columns mean to the view's author. Equal meanings get different names."""
        called: dict[str, str] = {}
        for column in columns:
            text = self._words.of_column(name, column)
            called[column] = f"{text} ({column})" if text in called.values() else text
        return called

    def _read(self, segment: Segment, sought: Sought) -> Sought:
        """Return the sought rows as rows of the segment, whole."""
        if sought.origin:
            return sought
        within = restrict(segment.relation, {name: name for name in sought.columns}, sought.rows)
        read = self._rows.of_segment(segment.name, within)
        found = self._rows.run(
            f"SELECT s.{_OF} AS {_OF}, r.{_PLACE} AS {_PLACE} FROM sought AS s "
            f"JOIN found AS r ON {same_values('r', 's', sought.columns)}",
            {"sought": sought.rows, "found": numbered(read.rows.counted)},
        )
        rows = read.rows.counted.take(found[PLACE])
        return sought_rows(rows, segment.relation.column_names, found[OF], read.origin)

    def _union(self, segment: Segment, members: Sequence[Signed], sought: Sought) -> Iterator[Traced]:
        """Yield what sought rows of a union derive from in its members. Columns go by their order."""
        for member in added_members(members, self._segments):
            own = member.join.output_names if isinstance(member, Member) else self._columns(member)
            called = dict(zip(segment.relation.column_names, own, strict=True))
            there = sought.renamed(tuple(called[name] for name in sought.columns))
            if isinstance(member, Member):
                yield from self._join(segment.name, member.join, there, member.twins)
            else:
                yield from self._below(member, there)
