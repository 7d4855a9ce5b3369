"""The groups of a frame's rows by given keys, with the values of given aggregates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from sqlglot import exp

from headwater.views.compile.draft import Draft
from headwater.views.compile.expressions import column, columns_in, settle
from headwater.views.compile.keep_matching import own_conditions
from headwater.views.compile.plan import ROWS, Frame, Node, PlannedOccurrence, known_of, total_of
from headwater.views.compile.reasons import DOUBLES, EXTREME, NO_TOTAL, SEVERAL_DISTINCT
from headwater.views.compile.reduce_aggregates import KeptColumn, Need, Reduced, one_where_known
from headwater.views.compile.rounding import find_float_aggregates, float_aggregate_text, in_parts
from headwater.views.laws.float_sums import sum_of_parts
from headwater.views.steps.computed import Aggregates
from headwater.views.text.spark_text import quoted, spark_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregated:
    """Groups, with expressions for their keys, the aggregates' values and how many rows they have."""

    occurrence: PlannedOccurrence
    keys: tuple[exp.Expr, ...]
    values: tuple[exp.Expr, ...]
    rows: exp.Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class _Projected:
    """The rows that are grouped: which columns hold the keys, and which each aggregate's columns."""

    node: Node
    keys: tuple[str, ...]
    columns: tuple[tuple[str, ...], ...]

    def type_of(self, name: str) -> str:
        return next(one.type for one in self.node.columns if one.name == name)


_BY_VALUES = frozenset({Need.EXTREME, Need.PARTS})


def aggregate_rows(frame: Frame, keys: Sequence[exp.Expr], reduced: Sequence[Reduced], draft: Draft) -> Aggregated:
    """Return the groups by keys, whose names are found, in the cheapest way that gives all aggregates."""
    sums = find_float_aggregates([one.call for one in reduced], partial(_types_of, frame, draft))
    reduced = [in_parts(one, found) if found else one for one, found in zip(reduced, sums, strict=True)]
    if any(one.need is Need.ROWS for one in reduced):
        return _from_rows(frame, keys, reduced, draft, NO_TOTAL.code)
    projected = _project(frame, keys, reduced, draft)
    distinct = {names for one, names in zip(reduced, projected.columns, strict=True) if one.need is Need.DISTINCT}
    by_values = any(one.need in _BY_VALUES for one in reduced)
    if len(distinct) > 1 or (distinct and by_values):
        return _from_rows(frame, keys, reduced, draft, SEVERAL_DISTINCT.code)
    if distinct:
        return _by_distinct(projected, reduced, next(iter(distinct)), draft)
    if by_values:
        return _by_values(projected, reduced, draft)
    return _by_totals(projected, reduced, draft)


def _types_of(frame: Frame, draft: Draft, values: Sequence[exp.Expr]) -> tuple[str, ...]:
    return draft.types_of(frame.occurrences, [settle(value, frame.columns) for value in values])


def _project(frame: Frame, keys: Sequence[exp.Expr], reduced: Sequence[Reduced], draft: Draft) -> _Projected:
    values = [settle(value, frame.columns) for value in (*keys, *(c for one in reduced for c in one.columns))]
    node, names = draft.join(frame.occurrences, own_conditions(frame), values)
    columns, place = [], len(keys)
    for one in reduced:
        columns.append(names[place : place + len(one.columns)])
        place += len(one.columns)
    return _Projected(node=node, keys=names[: len(keys)], columns=tuple(columns))


def _by_totals(projected: _Projected, reduced: Sequence[Reduced], draft: Draft) -> Aggregated:
    found = draft.occurrence(
        draft.group(projected.node, projected.keys, [name for names in projected.columns for name in names])
    )

    def cell(name: str) -> KeptColumn:
        return KeptColumn(
            total=column(found.alias, total_of(name)),
            known=column(found.alias, known_of(name)),
            type=projected.type_of(name),
        )

    rows = column(found.alias, ROWS)
    return Aggregated(
        occurrence=found,
        keys=tuple(column(found.alias, key) for key in projected.keys),
        values=tuple(
            _value(one, rows, [cell(name) for name in names])
            for one, names in zip(reduced, projected.columns, strict=True)
        ),
        rows=rows,
    )


def _by_distinct(
    projected: _Projected, reduced: Sequence[Reduced], distinct: tuple[str, ...], draft: Draft
) -> Aggregated:
    """Group by keys and value, then by keys: there each value stands once, and totals of totals are totals."""
    totals = [
        name for one, names in zip(reduced, projected.columns, strict=True) if one.need is Need.TOTALS for name in names
    ]
    inner = draft.occurrence(draft.group(projected.node, (*projected.keys, *distinct), totals))
    counted = [ROWS, *(part for name in totals for part in (total_of(name), known_of(name)))]
    once = one_where_known([column(inner.alias, name) for name in distinct])
    held = [*projected.keys, *distinct, *counted]
    node, names = draft.join([inner], [], [*(column(inner.alias, name) for name in held), once])
    place = dict(zip([*held, "once"], names, strict=True))
    is_summed = any(one.summed and one.need is Need.DISTINCT for one in reduced)
    outer_totals = [*counted, "once", *(distinct if is_summed else ())]
    found = draft.occurrence(
        draft.group(node, [place[key] for key in projected.keys], [place[name] for name in outer_totals])
    )

    def total(name: str, kind: str) -> exp.Expr:
        value = column(found.alias, total_of(place[name]))
        return exp.cast(value, exp.DataType.build(kind, dialect="spark"))

    def kind_of(name: str) -> str:
        return next(one.type for one in inner.node.columns if one.name == name)

    def cell(one: Reduced, name: str) -> KeptColumn:
        if one.need is Need.TOTALS:
            held_total = total(total_of(name), kind_of(total_of(name)))
            return KeptColumn(total=held_total, known=total(known_of(name), "bigint"), type=projected.type_of(name))
        once_only = total("once", "bigint")
        if not one.summed:
            return KeptColumn(total=once_only, known=once_only, type="bigint")
        return KeptColumn(
            total=column(found.alias, total_of(place[name])), known=once_only, type=projected.type_of(name)
        )

    rows = total(ROWS, "bigint")
    return Aggregated(
        occurrence=found,
        keys=tuple(column(found.alias, place[key]) for key in projected.keys),
        values=tuple(
            _value(one, rows, [cell(one, name) for name in names])
            for one, names in zip(reduced, projected.columns, strict=True)
        ),
        rows=rows,
    )


def _by_values(projected: _Projected, reduced: Sequence[Reduced], draft: Draft) -> Aggregated:
    """Group by keys and values, then look at the touched keys' values: as many as there are different ones.

    Of doubles these are the places; their amounts are totals (`float_sums`).
    """
    pairs = list(zip(reduced, projected.columns, strict=True))
    totals = [name for one, names in pairs if one.need is Need.TOTALS for name in names]
    amounts = [names[1] for one, names in pairs if one.need is Need.PARTS]
    values = [names[0] for one, names in pairs if one.need in _BY_VALUES]
    node = draft.group(projected.node, (*projected.keys, *values), [*totals, *amounts])
    kinds = {one.name: one.type for one in node.columns}
    outputs: dict[str, str] = {}
    for name in dict.fromkeys([ROWS, *(part for t in totals for part in (total_of(t), known_of(t)))]):
        outputs[f"sum_{name}"] = f"CAST(COALESCE(SUM({quoted(name)}), 0) AS {kinds[name].upper()})"
    for place, (one, names) in enumerate(pairs):
        if one.need in _BY_VALUES:
            outputs[f"a{place}"] = _text_by_values(one, names)
    step = Aggregates(outputs=tuple(outputs.items()))
    why = EXTREME if any(one.need is Need.EXTREME for one in reduced) else DOUBLES
    found = draft.occurrence(draft.regroup(node, projected.keys, step, why=why.code))

    def cell(name: str) -> KeptColumn:
        return KeptColumn(
            total=column(found.alias, f"sum_{total_of(name)}"),
            known=column(found.alias, f"sum_{known_of(name)}"),
            type=projected.type_of(name),
        )

    rows = column(found.alias, f"sum_{ROWS}")
    return Aggregated(
        occurrence=found,
        keys=tuple(column(found.alias, key) for key in projected.keys),
        values=tuple(
            column(found.alias, f"a{place}")
            if one.need in _BY_VALUES
            else _value(one, rows, [cell(name) for name in names])
            for place, (one, names) in enumerate(pairs)
        ),
        rows=rows,
    )


def _text_by_values(one: Reduced, names: tuple[str, ...]) -> str:
    """Return the aggregate over the rows of a group per value."""
    if one.adds is None:
        function = "MIN" if isinstance(_bare(one.call), exp.Min) else "MAX"
        return f"{function}({quoted(names[0])})"
    place, amount = names
    total = sum_of_parts(quoted(place), quoted(total_of(amount)))
    is_average = issubclass(one.adds.function, exp.Avg)
    return f"{total} / NULLIF(SUM({quoted(known_of(amount))}), 0)" if is_average else total


def _from_rows(
    frame: Frame, keys: Sequence[exp.Expr], reduced: Sequence[Reduced], draft: Draft, why: str
) -> Aggregated:
    """Compute all aggregates from the rows of the touched keys, as they are written."""
    used = list(dict.fromkeys(found for one in reduced for found in columns_in(one.call)))
    values = [settle(value, frame.columns) for value in (*keys, *used)]
    node, names = draft.join(frame.occurrences, own_conditions(frame), values)
    held = {
        (one.table, one.name): exp.column(exp.to_identifier(name, quoted=True))
        for one, name in zip(used, names[len(keys) :], strict=True)
    }
    outputs = tuple((f"a{place}", _text_from_rows(one, held)) for place, one in enumerate(reduced))
    found = draft.occurrence(
        draft.regroup(node, names[: len(keys)], Aggregates(outputs=(*outputs, (ROWS, "COUNT(1)"))), why=why)
    )
    return Aggregated(
        occurrence=found,
        keys=tuple(column(found.alias, name) for name in names[: len(keys)]),
        values=tuple(column(found.alias, name) for name, _ in outputs),
        rows=column(found.alias, ROWS),
    )


def _text_from_rows(one: Reduced, held: Mapping[tuple[str, str], exp.Expr]) -> str:
    call = settle(one.call, held)
    return spark_text(call) if one.adds is None else float_aggregate_text(call)


def _value(one: Reduced, rows: exp.Expr, cells: Sequence[KeptColumn]) -> exp.Expr:
    make: Callable[[exp.Expr, Sequence[KeptColumn]], exp.Expr] | None = one.value
    assert make is not None, "an aggregate over totals says how its value is made"
    return make(rows, cells)


def _bare(call: exp.Expr) -> exp.Expr:
    return call.this if isinstance(call, exp.Filter) else call
