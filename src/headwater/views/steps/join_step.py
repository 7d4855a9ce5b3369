"""The join step: selections, projections and inner joins of relations and segments.

Its law is `laws/join`. Old rows are looked up along equalities: those of every occurrence that some other one leads to,
and all of them where equalities do not lead everywhere. Where its own rows are looked up and not kept, outputs that are
plain columns lead to the rows of their occurrences, and equalities from there.

Cost: as many rows of each other occurrence as one value finds there, along the equalities that find the fewest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from headwater.deltas.extent import Extent
from headwater.model.relation import Relation, RelationName
from headwater.views.steps.build_join import select_text
from headwater.views.steps.change_plan import JoinChanges
from headwater.views.steps.derivation import FromJoin
from headwater.views.steps.join import JoinView
from headwater.views.steps.output_columns import output_columns
from headwater.views.steps.segments import Held, Leads, Needs, Segment, Segments, Speech
from headwater.views.steps.sizes import Estimates, Fanout, Sizes
from headwater.views.steps.unique_columns import unique_columns
from headwater.views.text.meaning import meant
from headwater.views.text.spark_text import quoted
from headwater.views.text.wrapped_values import unwrap


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinStep:
    """Selections, projections and inner joins of relations and segments."""

    view: JoinView

    partition = None
    row_keys = None
    needs = Needs.PARTNERS
    reads_own_rows = False
    aggregate_count = 0

    @property
    def kind(self) -> str:
        """A selection reads one thing alone."""
        return "join" if len(self.view.occurrences) > 1 else "selection"

    @property
    def identity(self) -> str:
        """Its text, and which of its occurrences only test: rows are the same, their lineage is not."""
        tests = [occurrence.alias for occurrence in self.view.occurrences if occurrence.is_test]
        return f"{self.view.sql} {tests}" if tests else self.view.sql

    @property
    def operands(self) -> tuple[RelationName, ...]:
        """One for every occurrence."""
        return tuple(occurrence.relation.name for occurrence in self.view.occurrences)

    @property
    def join(self) -> JoinView:
        """The join."""
        return self.view

    @property
    def needed_rows(self) -> Mapping[RelationName, Extent]:
        """The rows that some occurrence selects."""
        return self.view.extents

    @property
    def join_count(self) -> int:
        """One less than its occurrences."""
        return len(self.view.occurrences) - 1

    def whole_sql(self, _segment: Segment, tables: Mapping[RelationName, str]) -> str:
        """Return it as one SELECT over tables."""
        view = self.view
        named = {one.alias: quoted(tables[one.relation.name]) for one in view.occurrences}
        tests = (condition.expression for condition in view.conditions)
        return select_text(named, tests, [(output.name, output.expression) for output in view.outputs])

    def change_plan(self, _segment: Segment, _segments: Segments) -> JoinChanges:
        """Return a sweep, and its law over what the sweep found."""
        return JoinChanges(join=self.view)

    def looked_up(self, _segment: Segment) -> Iterator[tuple[RelationName, tuple[str, ...]]]:
        """Yield what a sweep may ask: by every equality, and everything where equalities do not lead everywhere."""
        occurrences = self.view.occurrences
        if len(occurrences) == 1:
            return
        is_connected = len(_reached(self.view, {occurrences[0].alias})) == len(occurrences)
        for occurrence in occurrences:
            if not is_connected:
                yield occurrence.relation.name, ()
            for _, columns in _neighbours(self.view, occurrence.alias):
                yield occurrence.relation.name, columns

    def leads_below(self, carried: Sequence[Held], leads: Leads) -> bool:
        """Tell whether some occurrence is led to, and equalities lead from there to all others."""
        pairs = zip(self.view.occurrences, carried, strict=True)
        pinned = {occurrence.alias for occurrence, held in pairs if leads(*held)}
        return bool(pinned) and len(_reached(self.view, pinned, leads)) == len(self.view.occurrences)

    def input_columns(self, _segment: Segment, _segments: Segments) -> list[tuple[Relation, Mapping[str, str]]]:
        """Return for every occurrence its columns among the outputs."""
        plain = output_columns(self.view).items()
        return [
            (occurrence.relation, {name: held for name, (alias, held) in plain if alias == occurrence.alias})
            for occurrence in self.view.occurrences
        ]

    def unique_columns(self, segments: Segments) -> tuple[str, ...] | None:
        """Return the outputs that hold what tells the rows of all occurrences apart, as they are."""
        called = {held: name for name, held in output_columns(self.view).items()}
        found: list[str] = []
        for occurrence in self.view.occurrences:
            own = unique_columns(occurrence.relation, segments)
            if own is None or not all((occurrence.alias, name) in called for name in own):
                return None
            found += [called[occurrence.alias, name] for name in own]
        return tuple(found)

    def passed(self, _segment: Segment, column: str, _segments: Segments) -> Iterator[tuple[RelationName, str]]:
        """Yield the column that an output is, with a type or a default around it."""
        *_, value = unwrap(self._output(column))
        if isinstance(value, exp.Column):
            yield self.view.occurrence(value.table).relation.name, value.name

    def column_below(self, _segment: Segment, column: str, _segments: Segments) -> tuple[RelationName, str] | None:
        """Return the column that an output is, as it is."""
        found = output_columns(self.view).get(column)
        return None if found is None else (self.view.occurrence(found[0]).relation.name, found[1])

    def column_meaning(self, _segment: Segment, column: str, segments: Segments) -> exp.Expr:
        """Return the output's expression over what its occurrences' columns mean."""
        return meant(self._output(column), self.view, segments)

    def _output(self, column: str) -> exp.Expr:
        return next(one.expression for one in self.view.outputs if one.name == column)

    def fanouts(self, _segment: Segment, sizes: Sizes) -> dict[RelationName, Fanout]:
        """Return by relation what a changed row leads to in all of its occurrences."""
        found: dict[RelationName, Fanout] = {}
        for occurrence in self.view.occurrences:
            one = _fanout_from(self.view, occurrence.alias, sizes)
            before = found.get(occurrence.relation.name, Fanout(read=0.0, changed=0.0))
            found[occurrence.relation.name] = Fanout(read=before.read + one.read, changed=before.changed + one.changed)
        return found

    def most_read(self, _segment: Segment, changed: RelationName, sizes: Sizes) -> float:
        """Return the rows of all other occurrences."""
        return sum(sizes.there(name) for name in self.operands) - sizes.there(changed)

    def rows_behind(self, sizes: Sizes) -> float:
        """Return one row of every occurrence."""
        return sum(sizes.read(name, 1.0) for name in self.operands)

    def output_rows(self, sizes: Sizes) -> float:
        """Return the rows of the first occurrence, each with all that it leads to."""
        start = self.view.occurrences[0]
        return sizes.of(start.relation.name) * _fanout_from(self.view, start.alias, sizes).changed

    def estimated_rows(self, estimates: Estimates) -> float:
        """Return how many rows join."""
        return estimates.joined(self.view)

    def derivation(self, _segment: Segment) -> FromJoin:
        """Return one row of every occurrence."""
        return FromJoin(join=self.view)

    def words(self, _segment: Segment, speech: Speech) -> list[str]:
        """Return the join."""
        return speech.joined(self.view)

    def computed_words(self, segment: Segment, speech: Speech) -> str:
        """Return its columns."""
        return speech.columns(segment.name, segment.relation.column_names)

    def maintained(self, _segment: Segment) -> str:
        """Return whose old rows it needs."""
        need = "its other inputs' old rows that the changes reach" if self.join_count else "nothing more"
        return f"from its inputs' changes, and {need}"


def _neighbours(join: JoinView, alias: str) -> Iterable[tuple[str, tuple[str, ...]]]:
    """Yield the occurrences that share an equality with one, and the columns of the one that they lead to."""
    for edge in join.edges:
        if edge.left == alias:
            yield edge.right, tuple(own for own, _ in edge.pairs)
        if edge.right == alias:
            yield edge.left, tuple(own for _, own in edge.pairs)


def _reached(join: JoinView, start: set[str], leads: Leads | None = None) -> set[str]:
    """Return the occurrences that some lead to along equalities. With `leads`, along those that lead on below."""
    reached = set(start)
    while more := {
        occurrence.alias
        for occurrence in join.occurrences
        if occurrence.alias not in reached
        for neighbour, columns in _neighbours(join, occurrence.alias)
        if neighbour in reached and (leads is None or leads(occurrence.relation, columns))
    }:
        reached |= more
    return reached


def _fanout_from(join: JoinView, start: str, sizes: Sizes) -> Fanout:
    """Return what one row of an occurrence leads to, along equalities. What none leads to is read whole."""
    reached, read, changed = {start: 1.0}, 0.0, 1.0
    while len(reached) < len(join.occurrences):
        alias, rows, fan = _next(join, reached, sizes)
        reached[alias] = min(rows, sizes.of(join.occurrence(alias).relation.name))
        read += sizes.read(join.occurrence(alias).relation.name, rows)
        changed *= fan
    return Fanout(read=read, changed=changed)


def _next(join: JoinView, reached: Mapping[str, float], sizes: Sizes) -> tuple[str, float, float]:
    """Return the occurrence that the fewest rows are read of next, how many, and how many per row that leads there."""
    choices = []
    for edge in join.edges:
        for own, other, pairs in (
            (edge.left, edge.right, edge.pairs),
            (edge.right, edge.left, [(b, a) for a, b in edge.pairs]),
        ):
            if own in reached and other not in reached:
                here, there = join.occurrence(own).relation, join.occurrence(other).relation
                is_key = sizes.is_key(here, tuple(a for a, _ in pairs))
                columns = tuple(b for _, b in pairs)
                fan = sizes.found(there, columns, equal_to=sizes.of(here.name) if is_key else None)
                choices.append((reached[own] * fan, other, fan))
    if choices:
        rows, alias, fan = min(choices)
        return alias, rows, fan
    alias = next(one.alias for one in join.occurrences if one.alias not in reached)
    whole = sizes.of(join.occurrence(alias).relation.name)
    return alias, whole, whole
