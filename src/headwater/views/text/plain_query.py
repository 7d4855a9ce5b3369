"""Queries that need no Spark: columns of one view, conditions on literals, ORDER BY, LIMIT, or COUNT(*).

Starting Spark takes longer than most people want to wait for the first row. What is recognised here is evaluated on
Arrow and gives what Spark gives: names, types, duplicates, NULLs and order. For everything else `plain_query` returns
None, and Spark is started.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from headwater.deltas.on_arrow import ArrowBag, summed_up, unfolded
from headwater.deltas.order import By, Order, can_order, in_order
from headwater.errors import InvalidView, did_you_mean
from headwater.model.relation import COUNT
from headwater.views.text.plain_condition import NotPlainError, Test, plain_test
from headwater.views.text.reader_query import ReaderQuery

_CLAUSES = frozenset({"expressions", "from_", "where", "order", "limit", "offset"})
_TABLE_PARTS = frozenset({"this", "alias"})
_COUNTED = "count(1)"
"""What Spark calls COUNT(*) without an alias."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainQuery:
    """A query over one view: which columns under which names, of which rows, in which order. Or how many rows."""

    outputs: tuple[tuple[str, str], ...]
    """Each column's name in the result, and the view's column; none where rows are counted."""
    counted: str | None
    """The name of the count, where rows are counted."""
    test: Test | None
    order: Order
    offset: int
    limit: int | None
    needed: tuple[str, ...]
    """The columns of the view that have to be read."""

    @property
    def counts_all(self) -> bool:
        """Whether only the number of all rows is asked for."""
        return self.counted is not None and self.test is None

    def counts(self, count: int) -> pa.Table:
        """Return a number of rows as the result."""
        return pa.table({self.counted: pa.array([count], pa.int64())})

    def rows(self, entries: pa.Table) -> pa.Table | None:
        """Return the result, from entries with `_count` that sum up to the view's rows. None if they do not."""
        found = entries if self.test is None else entries.filter(self.test(entries))
        if _has_negative_zero(found):
            return None  # Spark takes it for 0.0 where it sums rows up, and leaves it as it is elsewhere
        if self.counted is not None:
            return self.counts(pc.sum(found[COUNT]).as_py() or 0)
        summed = summed_up(found)
        if pc.any(pc.less(summed[COUNT], 0)).as_py():
            return None
        plain = unfolded(ArrowBag(summed))
        upto = None if self.limit is None else self.offset + self.limit
        if self.order:
            plain = in_order(plain, self.order, upto or None)
        return pa.table([plain[column] for _, column in self.outputs], names=[name for name, _ in self.outputs]).slice(
            self.offset, self.limit
        )


def _has_negative_zero(rows: pa.Table) -> bool:
    """Tell whether some number is -0.0: the only one whose inverse is below all numbers."""
    floating = [field.name for field in rows.schema if pa.types.is_floating(field.type)]
    inverses = (pc.divide(1.0, pc.cast(rows[name], pa.float64())) for name in floating)
    return any(pc.any(pc.equal(one, float("-inf"))).as_py() for one in inverses)


def plain_query(query: ReaderQuery, schema: pa.Schema) -> PlainQuery | None:
    """Return a query over the one view that it reads, whose columns these are. None if Spark has to run it.

    A column that the view does not have is refused.
    """
    tables = list(query.tree.find_all(exp.Table))
    if len(tables) != 1 or query.named != query.views:
        return None
    try:
        return _plain(query.tree, _Names(tables[0], schema))
    except NotPlainError:
        return None


class _Names:
    """What the names in a query over one view mean: in any case, and with the view's name or alias before them."""

    def __init__(self, table: exp.Table, schema: pa.Schema) -> None:
        self.schema = schema
        self._view = table.name
        self._fields = {field.name.lower(): field for field in schema}
        self._qualifier = str(table.alias_or_name).lower()

    def is_qualifier(self, name: str) -> bool:
        return not name or name.lower() == self._qualifier

    def field(self, column: exp.Column) -> pa.Field:
        if column.db or not self.is_qualifier(column.table) or not isinstance(column.this, exp.Identifier):
            raise NotPlainError
        found = self._fields.get(column.name.lower())
        if found is None:
            raise InvalidView(
                f'view "{self._view}" has no column "{column.name}"',
                code="HW-147",
                detail=f"it has: {', '.join(self.schema.names)}",
                hint=did_you_mean(column.name.lower(), tuple(self.schema.names), otherwise="correct the name"),
            )
        return found


def _plain(tree: exp.Query, names: _Names) -> PlainQuery:
    _refuse_more(tree)
    where, order = tree.args.get("where"), tree.args.get("order")
    outputs, counted = _outputs(tree, names)
    by = () if order is None else tuple(_by(one, outputs, names) for one in order.expressions)
    offset, limit = _whole(tree.args.get("offset")) or 0, _whole(tree.args.get("limit"))
    if (counted is not None and (by or offset or limit is not None)) or not can_order(names.schema, by):
        raise NotPlainError
    test = None if where is None else plain_test(where.this, names.field)
    tested = () if where is None else tuple(names.field(one).name for one in where.find_all(exp.Column))
    read = {*(column for _, column in outputs), *tested, *(one.column for one in by)}
    return PlainQuery(
        outputs=outputs,
        counted=counted,
        test=test,
        order=by,
        offset=offset,
        limit=limit,
        needed=tuple(name for name in names.schema.names if name in read),
    )


def _refuse_more(tree: exp.Query) -> None:
    """Leave to Spark whatever has more than the clauses known here."""
    source = tree.args.get("from_")
    if not isinstance(tree, exp.Select) or source is None or not isinstance(source.this, exp.Table):
        raise NotPlainError
    alias = source.this.args.get("alias")
    if (
        any(value for clause, value in tree.args.items() if clause not in _CLAUSES)
        or any(value for part, value in source.this.args.items() if part not in _TABLE_PARTS)
        or (alias is not None and alias.args.get("columns"))
    ):
        raise NotPlainError


def _outputs(tree: exp.Query, names: _Names) -> tuple[tuple[tuple[str, str], ...], str | None]:
    found: list[tuple[str, str]] = []
    for one in tree.args["expressions"]:
        inside = one.this if isinstance(one, exp.Alias) else one
        if isinstance(inside, exp.Count) and isinstance(inside.this, exp.Star) and len(tree.args["expressions"]) == 1:
            return (), one.alias or _COUNTED
        star = inside.this if isinstance(inside, exp.Column) else inside
        if isinstance(star, exp.Star):
            if isinstance(inside, exp.Column) and (inside.db or not names.is_qualifier(inside.table)):
                raise NotPlainError
            found += [(name, name) for name in names.schema.names]
        elif isinstance(inside, exp.Column):
            found.append((one.alias if isinstance(one, exp.Alias) else inside.name, names.field(inside).name))
        else:
            raise NotPlainError
    return tuple(found), None


def _by(ordered: exp.Expr, outputs: tuple[tuple[str, str], ...], names: _Names) -> By:
    if not isinstance(ordered, exp.Ordered) or ordered.args.get("with_fill"):
        raise NotPlainError
    return By(
        _ordering(ordered.this, outputs, names),
        is_descending=bool(ordered.args.get("desc")),
        are_nulls_first=bool(ordered.args.get("nulls_first")),
    )


def _ordering(this: exp.Expr, outputs: tuple[tuple[str, str], ...], names: _Names) -> str:
    """Return the view's column that rows are ordered by: of an output by its name or place, or of the view."""
    if not isinstance(this, exp.Column):
        place = _literal(this)
        if not 1 <= place <= len(outputs):
            raise NotPlainError
        return outputs[place - 1][1]
    named = {column for name, column in outputs if name.lower() == this.name.lower() and not this.table}
    if len(named) > 1:
        raise NotPlainError
    return named.pop() if named else str(names.field(this).name)


def _whole(clause: exp.Expr | None) -> int | None:
    """Return the number of LIMIT or OFFSET."""
    return None if clause is None else _literal(clause.expression)


def _literal(tree: exp.Expr | None) -> int:
    if isinstance(tree, exp.Literal) and not tree.is_string and tree.name.isdecimal():
        return int(tree.name)
    raise NotPlainError
