"""Which rows a union's minus takes away: those of the member that it repeats with partners joined to them.

The compiler writes "the rows of P without a partner" as P − N, where N is P joined with what a partner must have
(`views/compile/keep_matching`): the same occurrences first, the same outputs, then further occurrences.

    NOT EXISTS, LEFT JOIN's padded rows     + P(l)      − N(l, d)

A value may be in the union although one of the rows of P that give it was taken away (two customers of one city, one of
whom has sales: the city of the other stays). So it is not values that are taken away but derivations, and N says which:
those that have a partner.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from headwater.model.relation import Relation, RelationName
from headwater.views.compile.expressions import column
from headwater.views.steps.derivation import Signed
from headwater.views.steps.join import JoinView, Occurrence, Output
from headwater.views.steps.output_columns import output_columns
from headwater.views.steps.segments import Segment
from headwater.views.text.spark_text import spark_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Twin:
    """A join that takes from another the derivations that have a partner among its `further` occurrences."""

    taken: JoinView
    further: tuple[Occurrence, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A member that a union adds, as a join whose derivations are looked at, and what is taken from it."""

    join: JoinView
    twins: tuple[Twin, ...]


def added_members(inputs: Sequence[Signed], segments: Mapping[RelationName, Segment]) -> list[RelationName | Member]:
    """Return what a union adds, each once, with what is taken from it."""
    added = dict.fromkeys(signed.input for signed in inputs if signed.sign > 0)
    members: dict[RelationName, Member] = {}
    for name in dict.fromkeys(signed.input for signed in inputs if signed.sign < 0):
        found = next((found for one in added for found in _pairs(one, name, segments)), None)
        assert found is not None, f"a union takes from one of its members: {name}"
        whose, join, twin = found
        assert whose not in members, "of one member a union takes once"
        members[whose] = Member(join=join, twins=(twin,))
    return [members.get(name, name) for name in added]


def _pairs(
    added: RelationName, taken: RelationName, segments: Mapping[RelationName, Segment]
) -> Iterator[tuple[RelationName, JoinView, Twin]]:
    """Yield how the second member can be the first one's rows with a partner."""
    for less in _as_joins(segments[taken], segments):
        for join in _as_joins(segments[added], segments):
            further = less.occurrences[len(join.occurrences) :]
            if further and _begins_like(less, join):
                yield added, join, Twin(taken=less, further=further)


def _begins_like(less: JoinView, join: JoinView) -> bool:
    """Tell whether a join has the occurrences of another first, and its outputs."""
    pairs = zip(less.occurrences, join.occurrences, strict=False)
    same = all(one.alias == other.alias and one.relation.name == other.relation.name for one, other in pairs)
    return same and _values(less) == _values(join)


def _values(join: JoinView) -> list[str]:
    return [spark_text(output.expression) for output in join.outputs]


def _as_joins(segment: Segment, segments: Mapping[RelationName, Segment]) -> Iterator[JoinView]:
    """Yield a segment as joins: of itself, as it is written, and of what it is a projection of."""
    yield _itself(segment.relation)
    join = segment.step.join
    while join is not None:
        yield join
        below = segments.get(join.occurrences[0].relation.name)
        if len(join.occurrences) > 1 or join.conditions or below is None:
            return
        plain = output_columns(join)
        if len(plain) < len(join.outputs) or below.step.join is None:
            return
        join = _through(join, below.step.join, plain)


def _through(join: JoinView, below: JoinView, plain: Mapping[str, tuple[str, str]]) -> JoinView:
    """Return a projection of a join as a join of what that one reads."""
    held = {output.name: output for output in below.outputs}
    outputs = tuple(replace(held[plain[output.name][1]], name=output.name) for output in join.outputs)
    return replace(below, outputs=outputs)


def _itself(relation: Relation) -> JoinView:
    """Return the join that gives a segment's rows as they are."""
    columns = relation.column_names
    only = Occurrence(alias="o0", relation=relation, columns=columns)
    outputs = tuple(Output(name=name, expression=column("o0", name), fallible=False) for name in columns)
    return JoinView(name=relation.name.name, sql="", occurrences=(only,), edges=(), conditions=(), outputs=outputs)
