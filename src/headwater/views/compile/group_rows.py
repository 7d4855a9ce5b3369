"""GROUP BY and aggregates: what is needed is projected, grouped, and read back under new names.

    rows ──π keys, arguments──► ──GROUP──► ──π aggregates' values, σ HAVING──►

| aggregates | become |
|---|---|
| COUNT, exact SUM and AVG, BOOL_AND, ... | one group |
| those, and DISTINCT of one kind | a group per key and value, and over it a group per key |
| those, and MIN, MAX | a group per key and value, and over it MIN and MAX of the touched keys |
| any other | all aggregates from the rows of the touched keys |

GROUP BY's list gives the keys, and which of them each grouping has (GROUPING SETS, ROLLUP, CUBE).
Conditions that link a sub-query to its outer query become keys: then there is a group for every value of the link.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product

from sqlglot import exp

from headwater.views.compile.aggregate_rows import Aggregated, aggregate_rows
from headwater.views.compile.attach_queries import attach_queries
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
from headwater.views.compile.names import Context, Sight, find_names
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


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupingKeys:
    """All keys, whose names are found, and per grouping the places of its keys."""

    keys: tuple[exp.Expr, ...]
    sets: tuple[tuple[int, ...], ...]
    is_plain: bool

    @property
    def is_one_group(self) -> bool:
        """Whether all rows are one group, which is there even if there are no rows."""
        return self.is_plain and not self.keys


def read_keys(select: exp.Select, written: Written, sight: Sight) -> GroupingKeys:
    """Return what a SELECT groups by. Nothing at all is one group."""
    group = select.args.get("group")
    if group is None:
        return GroupingKeys(keys=(), sets=((),), is_plain=True)
    if group.args.get("all"):
        plain = tuple(dict.fromkeys(v for v in written.values if not any(aggregates_in(v))))
        return GroupingKeys(keys=plain, sets=(tuple(range(len(plain))),), is_plain=True)
    aliases = {name.lower(): value for name, value in zip(written.names, written.values, strict=True)}

    def found(item: exp.Expr) -> exp.Expr:
        if isinstance(item, exp.Literal) and item.is_int:
            place = int(item.name)
            if not 1 <= place <= len(written.values):
                hint = f"write a number from 1 to {len(written.values)}, or what to group by"
                raise sight.scope.statement.refusal(
                    support.UNKNOWN_COLUMN,
                    item,
                    because=f"GROUP BY {place}",
                    hint=hint,
                )
            return written.values[place - 1]
        return find_names(item, sight, aliases).unnest()

    given = list(group.expressions)
    listed = [found(item) for item in given if not _is_special(item)]
    special = [
        *(group.args.get("grouping_sets") or ()),
        *(group.args.get("rollup") or ()),
        *(group.args.get("cube") or ()),
    ]
    if with_all := [item for item in special if not isinstance(item, exp.GroupingSets) and not item.expressions]:
        # GROUP BY a, b WITH ROLLUP: the same as ROLLUP (a, b)
        given, special = [], [type(with_all[0])(expressions=given)]
    elif group.args.get("grouping_sets") and given and not any(map(_is_special, given)):
        given = []  # GROUP BY a, b GROUPING SETS (...): the list only says what may be in the sets
    alternatives = [[tuple(found(part) for part in one) for one in _sets_of(item)] for item in [*given, *special]]
    chosen = [tuple(dict.fromkeys(key for one in picked for key in one)) for picked in product(*alternatives)]
    keys = tuple(dict.fromkeys([*listed, *(key for one in chosen for key in one)]))
    if not keys and chosen == [()]:  # GROUPING SETS (()) is one group, as without GROUP BY; ((), ()) is none of no rows
        return GroupingKeys(keys=(), sets=((),), is_plain=True)
    return GroupingKeys(
        keys=keys,
        sets=tuple(tuple(keys.index(key) for key in one) for one in chosen),
        is_plain=not any(map(_is_special, [*given, *special])),
    )


def _is_special(item: exp.Expr) -> bool:
    return isinstance(item, (exp.GroupingSets, exp.Rollup, exp.Cube))


def _sets_of(item: exp.Expr) -> list[Sequence[exp.Expr]]:
    """Return the sets of keys that an item of GROUP BY stands for."""
    if not _is_special(item):
        return [[item]]
    parts = [_members(part) for part in item.expressions]
    if isinstance(item, exp.GroupingSets):
        return [
            one for part, members in zip(item.expressions, parts, strict=True)
            for one in (_sets_of(part) if _is_special(part) else [members])
        ]  # fmt: skip
    count = len(parts)
    if isinstance(item, exp.Rollup):
        choices = [tuple(range(length)) for length in range(count, -1, -1)]
    else:
        choices = [chosen for length in range(count, -1, -1) for chosen in combinations(range(count), length)]
    return [[key for place in chosen for key in parts[place]] for chosen in choices]


def _members(part: exp.Expr) -> list[exp.Expr]:
    if isinstance(part, exp.Tuple):
        return list(part.expressions)
    return [part.this] if isinstance(part, exp.Paren) else [part]
