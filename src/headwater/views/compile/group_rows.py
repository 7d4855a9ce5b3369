"""GROUP BY and aggregates: what is needed is projected, grouped, and read back under new names.

    rows ──π keys, arguments──► ──GROUP──► ──π aggregates' values, σ HAVING──►

| aggregates | become |
|---|---|
| COUNT, exact SUM and AVG, BOOL_AND, ... | one group |
| those, and DISTINCT of one kind | a group per key and value, and over it a group per key |
| those, and MIN, MAX | a group per key and value, and over it MIN and MAX of the touched keys |
| any other | all aggregates from the rows of the touched keys |

Conditions that link a sub-query to its outer query become keys: then there is a group for every value of the link.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from headwater.views.compile.aggregate_rows import Aggregated, aggregate_rows
from headwater.views.compile.attach_queries import attach_queries
from headwater.views.compile.context import Context
from headwater.views.compile.draft import DraftPart
from headwater.views.compile.expressions import (
    UNSETTLED,
    column,
    columns_in,
    is_linked,
    null_of,
    outer_names,
    replace_parts,
    settle,
    split_equality,
)
from headwater.views.compile.grouping_sets import GroupingKeys, read_keys
from headwater.views.compile.names import Sight
from headwater.views.compile.plan import Frame, PlannedOccurrence
from headwater.views.compile.reasons import LINKED, UNCOMMON, NoIncrementalForm
from headwater.views.compile.reduce_aggregates import empty_value, reduce_aggregate
from headwater.views.compile.written import Written, aggregates_in
from headwater.views.text import support


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """The frame over groups, what the SELECT says over it, and the names' values where there is no group at all."""

    frame: Frame
    written: Written
    empty: dict[tuple[str, str], exp.Expr] | None


def group_rows(select: exp.Select, written: Written, frame: Frame, sight: Sight, context: Context) -> Groups | None:
    """Return the groups of a frame's rows, or None if the SELECT does not group."""
    calls = list(dict.fromkeys(call for part in written.parts() for call in aggregates_in(part)))
    if not calls and not select.args.get("group") and not select.args.get("having"):
        return None
    grouping = read_keys(select, written, sight)
    if any(any(aggregates_in(key)) for key in grouping.keys):
        raise NoIncrementalForm(UNCOMMON, "GROUP BY of an aggregate")  # Spark refuses it
    inside = [*grouping.keys, *calls]
    attached, frame = attach_queries(inside, frame, sight, context)
    keys, reduced = attached[: len(grouping.keys)], [reduce_aggregate(call) for call in attached[len(grouping.keys) :]]
    linked = _links(frame)
    draft = context.draft
    aggregated = [
        aggregate_rows(frame, [*(mine for mine, _ in linked), *(keys[place] for place in chosen)], reduced, draft)
        for chosen in grouping.sets
    ]
    number = draft.number()
    marks = {key: column(f"{UNSETTLED}{number}", f"k{place}") for place, key in enumerate(grouping.keys)}
    marks |= {call: column(f"{UNSETTLED}{number}", f"a{place}") for place, call in enumerate(calls)}
    result = (
        _one_set(aggregated[0], len(linked))
        if grouping.is_plain
        else _several_sets(aggregated, grouping, keys, len(linked), frame, context)
    )
    values = [*result.keys, *result.values]
    columns = {(mark.table, mark.name): value for mark, value in zip(marks.values(), values, strict=True)}
    absent = [column(f"{UNSETTLED}{number}", f"g{place}") for place in range(len(result.absent))]
    columns |= {(mark.table, mark.name): value for mark, value in zip(absent, result.absent, strict=True)}
    for key, value in zip(grouping.keys, result.keys, strict=True):
        if isinstance(key, exp.Column):
            columns[key.table, key.name] = value
    links = tuple(
        exp.EQ(this=mine.copy(), expression=other) for mine, (_, other) in zip(result.links, linked, strict=True)
    )
    grouped = Frame(occurrences=result.occurrences, conditions=result.conditions + links, columns=columns)
    rewritten = written.changed(lambda part: replace_parts(part, lambda node: _replaced(node, marks, grouping, absent)))
    _check_grouped(rewritten, grouped, sight)
    empty = None
    if grouping.is_one_group:
        kinds = draft.types_of(result.occurrences, result.values)
        names = [(mark.table, mark.name) for mark in marks.values()]
        empty = {name: empty_value(one, kind) for name, one, kind in zip(names, reduced, kinds, strict=True)}
    return Groups(frame=grouped, written=rewritten, empty=empty)


def _links(frame: Frame) -> list[tuple[exp.Expr, exp.Expr]]:
    """Return the equalities that link the rows to an outer query: what is ours, what is theirs."""
    own = frozenset(o.alias for o in frame.occurrences)
    found = []
    for condition in frame.conditions:
        if is_linked(condition):
            pair = split_equality(condition, own)
            if pair is None:
                raise NoIncrementalForm(LINKED, outer_names(condition))
            found.append(pair)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Result:
    """Groups, whatever they were made of: links, keys, aggregates' values, and for each GROUPING a value."""

    occurrences: tuple[PlannedOccurrence, ...]
    conditions: tuple[exp.Expr, ...]
    links: tuple[exp.Expr, ...]
    keys: tuple[exp.Expr, ...]
    values: tuple[exp.Expr, ...]
    absent: tuple[exp.Expr, ...] = ()


def _one_set(aggregated: Aggregated, link_count: int) -> _Result:
    return _Result(
        occurrences=(aggregated.occurrence,),
        conditions=(),
        links=aggregated.keys[:link_count],
        keys=aggregated.keys[link_count:],
        values=aggregated.values,
    )


def _several_sets(
    aggregated: Sequence[Aggregated],
    grouping: GroupingKeys,
    keys: Sequence[exp.Expr],
    link_count: int,
    frame: Frame,
    context: Context,
) -> _Result:
    """Return the union of one grouping per set: a key that is not in the set is NULL, and said to be absent."""
    draft = context.draft
    if link_count:
        raise NoIncrementalForm(LINKED, "GROUPING SETS in a linked sub-query")
    kinds = draft.types_of(frame.occurrences, [settle(key, frame.columns) for key in keys])
    parts = []
    for chosen, one in zip(grouping.sets, aggregated, strict=True):
        held = dict(zip(chosen, one.keys, strict=True))
        present = [held[place] if place in held else null_of(kind) for place, kind in enumerate(kinds)]
        absent = [exp.Literal.number(0 if place in held else 1) for place in range(len(keys))]
        some = () if chosen else (exp.GT(this=one.rows.copy(), expression=exp.Literal.number(0)),)
        read = Frame(occurrences=(one.occurrence,), conditions=some, columns={})
        parts.append(DraftPart(frame=read, values=(*present, *one.values, *absent), sign=1))
    value_kinds = draft.types_of(parts[0].frame.occurrences, aggregated[0].values)
    count = len(keys)
    if not count and not value_kinds:  # GROUPING SETS (()) of constants: there must be a column to count rows by
        parts = [replace(part, values=(exp.Literal.number(1),)) for part in parts]
        value_kinds = ("int",)
    node = draft.unite_parts(parts, [*kinds, *value_kinds, *("int" for _ in keys)])
    occurrence = draft.occurrence(node)
    held_columns = tuple(column(occurrence.alias, one.name) for one in node.columns)
    values_end = count + len(aggregated[0].values)
    return _Result(
        occurrences=(occurrence,),
        conditions=(),
        links=(),
        keys=held_columns[:count],
        values=held_columns[count:values_end],
        absent=held_columns[values_end : values_end + count],
    )


def _replaced(
    node: exp.Expr, marks: dict[exp.Expr, exp.Column], grouping: GroupingKeys, absent: Sequence[exp.Column]
) -> exp.Expr | None:
    if isinstance(node, (exp.Grouping, exp.GroupingId)):
        asked = [part.unnest() for part in node.expressions] or ([node.this] if node.this else list(grouping.keys))
        if grouping.is_plain or not all(key in grouping.keys for key in asked):
            raise NoIncrementalForm(UNCOMMON, "GROUPING of what is not grouped by")  # Spark refuses it
        digits = [absent[grouping.keys.index(key)].copy() for key in asked]
        if isinstance(node, exp.GroupingId):
            return exp.cast(_bits(digits), exp.DataType.build("bigint"))
        return exp.cast(digits[0], exp.DataType.build("tinyint"))
    return marks.get(node)


def _bits(digits: Sequence[exp.Expr]) -> exp.Expr:
    """Return the number whose binary digits these are."""
    first, *others = digits
    number = first
    for digit in others:
        doubled = exp.Mul(this=exp.paren(number), expression=exp.Literal.number(2))
        number = exp.Add(this=doubled, expression=digit)
    return number


def _check_grouped(written: Written, frame: Frame, sight: Sight) -> None:
    """Refuse a column of a row where only groups are left."""
    own = {sight.named(named.alias) for named in sight.scope.named}
    for part in written.parts():
        for found in columns_in(part):
            if found.table in own and (found.table, found.name) not in frame.columns:
                statement = sight.scope.statement
                words = statement.words_of(found)
                because = f'"{found.name}"' if words.endswith("*") else f'"{words}"'
                raise statement.refusal(support.NOT_GROUPED, found, because=because)
