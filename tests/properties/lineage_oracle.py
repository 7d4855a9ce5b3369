"""Lineage by definition: a query interpreted row by row in plain Python, every row carrying the source rows behind it.

It knows nothing of segments, and little SQL: what `random_views` writes. What a row derives from is said once, here, of
each construct; docs/reference/lineage.md says the same in words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import sqlglot
from sqlglot import exp

from headwater_lab.in_memory.evaluate import evaluate

Source = tuple[str, int]
"""A source row: its relation, and its place there."""

Names = dict[tuple[str, str], Any]


@dataclass(frozen=True)
class Derived:
    """A row, and the source rows that it derives from."""

    values: tuple[Any, ...]
    lineage: frozenset[Source]


@dataclass(frozen=True)
class Framed:
    """A row of FROM: the values of all names, and what it derives from."""

    names: Names
    lineage: frozenset[Source]

    def plus(self, lineage: frozenset[Source]) -> Framed:
        return replace(self, lineage=self.lineage | lineage)


class Interpreter:
    """Relations with rows."""

    def __init__(self, columns: Mapping[str, Sequence[str]], rows: Mapping[str, Sequence[tuple[Any, ...]]]) -> None:
        self._columns = columns
        self._rows = rows

    def run(self, sql: str) -> list[Derived]:
        return self._query(sqlglot.parse_one(sql, read="spark"), {})

    def _query(self, query: exp.Expr, outer: Names) -> list[Derived]:
        if isinstance(query, exp.SetOperation):
            return self._combined(query, outer)
        assert isinstance(query, exp.Select)
        frames = self._from(query, outer)
        where = query.args.get("where")
        for test in _conjuncts(where.this) if where else []:
            frames = [kept for row in frames for kept in self._tested(test, row, outer)]
        calls = _aggregates(query)
        found = self._groups(query, calls, frames, outer) if calls or query.args.get("group") else frames
        rows = [self._outputs(query, row, outer) for row in found]
        return _merged(rows) if query.args.get("distinct") else rows

    def _outputs(self, query: exp.Select, row: Framed, outer: Names) -> Derived:
        values = []
        for item in query.expressions:
            plain, row = self._attached(item.unalias(), row, outer)
            values.append(evaluate(plain, {**outer, **row.names}))
        return Derived(tuple(values), row.lineage)

    def _combined(self, query: exp.SetOperation, outer: Names) -> list[Derived]:
        left, right = self._query(query.this, outer), self._query(query.expression, outer)
        if isinstance(query, exp.Union):
            return _merged(left + right) if query.args.get("distinct") else left + right
        mine, theirs = {one.values for one in left}, {one.values for one in right}
        if isinstance(query, exp.Intersect):
            return _merged([one for one in left + right if one.values in mine & theirs])
        return _merged([one for one in left if one.values not in theirs])

    def _from(self, query: exp.Select, outer: Names) -> list[Framed]:
        rows, names = self._item(query.args["from_"].this)
        for join in query.args.get("joins") or ():
            others, more = self._item(join.this)
            rows = _joined(join, rows, others, names, more, outer)
            names = names if join.kind in {"SEMI", "ANTI"} else names + more
        return rows

    def _item(self, item: exp.Expr) -> tuple[list[Framed], list[tuple[str, str]]]:
        alias = item.alias
        if isinstance(item, exp.Subquery):
            columns = [one.alias for one in _first_select(item.this).expressions]
            rows = [(one.values, one.lineage) for one in self._query(item.this, {})]
        else:
            relation = f"{item.db}.{item.name}"
            columns = list(self._columns[relation])
            held = enumerate(self._rows[relation])
            rows = [(values, frozenset({(relation, place)})) for place, values in held]
        names = [(alias, column) for column in columns]
        return [Framed(dict(zip(names, values, strict=True)), lineage) for values, lineage in rows], names

    def _tested(self, test: exp.Expr, row: Framed, outer: Names) -> Iterator[Framed]:
        """Yield the row if a condition is true; a partner that must not be is no lineage."""
        plain, found = self._attached(test, row, outer)
        if evaluate(plain, {**outer, **found.names}) is True:
            yield found

    def _attached(self, expression: exp.Expr, row: Framed, outer: Names) -> tuple[exp.Expr, Framed]:
        """Return an expression with names in place of the queries inside, and the row with their values and lineage."""
        around = {**outer, **row.names}

        def replaced(node: exp.Expr) -> exp.Expr:
            nonlocal row
            found = self._value(node, around)
            if found is None:
                return node
            value, lineage = found
            name = ("#", f"q{len(row.names)}")
            row = Framed({**row.names, name: value}, row.lineage | lineage)
            return exp.column(name[1], table=exp.to_identifier("#", quoted=True))

        return _replace(expression, replaced), row

    def _value(self, node: exp.Expr, around: Names) -> tuple[Any, frozenset[Source]] | None:
        negated = isinstance(node, exp.Not) and isinstance(node.this.unnest(), (exp.Exists, exp.In))
        inner = node.this.unnest() if negated else node
        if isinstance(inner, exp.Exists):
            partners = self._query(inner.this, around)
            always = bool(_aggregates(inner.this)) and not inner.this.args.get("group") and not _has_having(inner.this)
            return bool(partners) is not negated, frozenset() if always else _all(partners)
        if isinstance(inner, exp.In) and inner.args.get("query"):
            partners = self._members(inner, around, or_unknown=negated)
            return bool(partners) is not negated, _all(partners)
        if isinstance(node, exp.Subquery):
            rows = self._query(node.this, around)
            return (rows[0].values[0] if rows else None), _all(rows)
        return None

    def _members(self, test: exp.In, around: Names, *, or_unknown: bool) -> list[Derived]:
        """Return the rows that a value is equal to; of NOT IN also those of which that is unknown."""
        query = test.args["query"]
        this = evaluate(test.this, around)
        rows = self._query(query.this if isinstance(query, exp.Subquery) else query, around)

        def equal(value: Any) -> bool | None:
            return None if this is None or value is None else this == value

        return [one for one in rows if equal(one.values[0]) or (or_unknown and equal(one.values[0]) is None)]

    def _groups(self, query: exp.Select, calls: list[exp.Expr], frames: list[Framed], outer: Names) -> list[Framed]:
        keys = query.args["group"].expressions if query.args.get("group") else []

        def key(row: Framed) -> tuple[Any, ...]:
            return tuple(evaluate(one, {**outer, **row.names}) for one in keys)

        ordered = sorted(frames, key=lambda row: repr(key(row)))
        groups = [list(members) for _, members in groupby(ordered, key=lambda row: repr(key(row)))]
        if not keys and not groups:
            groups = [[]]
        found = []
        for members in groups:
            names = dict(members[0].names) if members else {}
            for place, call in enumerate(calls):
                names["#", f"a{place}"] = _aggregate(call, members, outer)
            found.append(Framed(names, frozenset().union(*(row.lineage for row in members))))
        having = query.args.get("having")
        if having is not None:
            found = [row for row in found if evaluate(having.this, {**outer, **row.names}) is True]
        return found


def _joined(
    join: exp.Join,
    left: list[Framed],
    right: list[Framed],
    mine: list[tuple[str, str]],
    theirs: list[tuple[str, str]],
    outer: Names,
) -> list[Framed]:
    def meets(one: Framed, other: Framed) -> bool:
        return evaluate(join.args["on"], {**outer, **one.names, **other.names}) is True

    partners = [[other for other in right if meets(one, other)] for one in left]
    pairs = list(zip(left, partners, strict=True))
    if join.kind == "SEMI":
        return [one.plus(_all(found)) for one, found in pairs if found]
    if join.kind == "ANTI":
        return [one for one, found in pairs if not found]
    rows = [
        Framed({**one.names, **other.names}, one.lineage | other.lineage) for one, found in pairs for other in found
    ]
    if join.side in {"LEFT", "FULL"}:
        rows += [replace(one, names={**one.names, **dict.fromkeys(theirs)}) for one, found in pairs if not found]
    if join.side in {"RIGHT", "FULL"}:
        alone = [other for other in right if not any(meets(one, other) for one in left)]
        rows += [replace(other, names={**dict.fromkeys(mine), **other.names}) for other in alone]
    return rows


def _aggregate(call: exp.Expr, members: list[Framed], outer: Names) -> Any:
    inner = call.this if isinstance(call, exp.Filter) else call
    rows = [{**outer, **row.names} for row in members]
    if isinstance(call, exp.Filter):
        rows = [row for row in rows if evaluate(call.expression.this, row) is True]
    if isinstance(inner, exp.Count) and isinstance(inner.this, exp.Star):
        return len(rows)
    distinct = isinstance(inner.this, exp.Distinct)
    argument = inner.this.expressions[0] if distinct else inner.this
    values = [value for row in rows if (value := evaluate(argument, row)) is not None]
    values = list(dict.fromkeys(values)) if distinct else values
    match inner:
        case exp.Count():
            return len(values)
        case exp.Sum():
            return sum(values) if values else None
        case exp.Min():
            return min(values, default=None)
        case exp.Max():
            return max(values, default=None)
    raise AssertionError(inner)


def _aggregates(query: exp.Expr) -> list[exp.Expr]:
    """Put names in place of the aggregates of a SELECT, in place, and return the aggregates; again: the same."""
    if not isinstance(query, exp.Select):
        return []
    if "calls" not in query.meta:
        calls: list[exp.Expr] = []

        def replaced(node: exp.Expr) -> exp.Expr:
            if not isinstance(node, (exp.AggFunc, exp.Filter)):
                return node
            calls.append(node.copy())
            return exp.column(f"a{len(calls) - 1}", table=exp.to_identifier("#", quoted=True))

        query.set("expressions", [_replace(item, replaced) for item in query.expressions])
        if having := query.args.get("having"):
            having.set("this", _replace(having.this, replaced))
        query.meta["calls"] = calls
    return query.meta["calls"]


def _replace(expression: exp.Expr, replaced: Any) -> exp.Expr:
    """Return an expression with topmost parts replaced; a query that is not replaced is not entered."""
    found = replaced(expression)
    if found is not expression or isinstance(expression, (exp.Query, exp.Exists)):
        return found
    result = expression.copy()
    result.meta.update(expression.meta)
    for key, value in expression.args.items():
        if isinstance(value, exp.Expr):
            result.set(key, _replace(value, replaced))
        elif isinstance(value, list):
            result.set(key, [_replace(one, replaced) if isinstance(one, exp.Expr) else one for one in value])
    return result


def _has_having(query: exp.Expr) -> bool:
    return query.args.get("having") is not None


def _first_select(query: exp.Expr) -> exp.Select:
    return _first_select(query.this) if isinstance(query, exp.SetOperation) else query


def _conjuncts(expression: exp.Expr) -> list[exp.Expr]:
    bare = expression.unnest()
    return _conjuncts(bare.left) + _conjuncts(bare.right) if isinstance(bare, exp.And) else [bare]


def _all(rows: Sequence[Derived] | Sequence[Framed]) -> frozenset[Source]:
    return frozenset().union(*(row.lineage for row in rows))


def _merged(rows: list[Derived]) -> list[Derived]:
    """Return equal rows as one, which derives from what any of them does."""
    found: dict[tuple[Any, ...], frozenset[Source]] = {}
    for row in rows:
        found[row.values] = found.get(row.values, frozenset()) | row.lineage
    return [Derived(values, lineage) for values, lineage in found.items()]
