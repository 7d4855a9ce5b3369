"""Write every column as alias.column, with the alias and the spelling that the catalog knows."""

from __future__ import annotations

from sqlglot import exp

from headwater.views.text import support
from headwater.views.text.scope import Scope, Visible, VisibleColumn, find_alias, find_plain, find_qualified


def qualify_columns(select: exp.Select, scope: Scope) -> exp.Select:
    """Resolve every column of the SELECT list, WHERE and ON.

    SELECT Name FROM shop.customers   becomes   SELECT `customers`.`name` AS `Name` FROM ...

    An ON sees only the relations up to its own join, as in Spark.
    """
    result = select.copy()
    earlier: list[str] = []
    items: list[exp.Expr] = []
    for item in result.expressions:
        items.append(_output(item, scope, tuple(earlier)))
        earlier.append(item.alias_or_name)
    result.set("expressions", items)
    for join, visible in zip(result.args.get("joins") or (), scope.visible[1:], strict=True):
        if join.args.get("on"):
            join.set("on", _qualify(join.args["on"], visible, scope, ()))
    if result.args.get("where"):
        result.args["where"].set("this", _qualify(result.args["where"].this, scope.everything, scope, ()))
    return result


def column_of(seen: VisibleColumn) -> exp.Column:
    """Return the column as expressions of the normal form write it.

    >>> column_of(VisibleColumn(alias="s", column="Price")).sql(dialect="spark")
    '`s`.`Price`'
    """
    return exp.column(exp.to_identifier(seen.column, quoted=True), table=exp.to_identifier(seen.alias, quoted=True))


def qualifier_of(column: exp.Column) -> tuple[str, ...]:
    """Return what stands before the column's own name.

    >>> qualifier_of(exp.column("x", table="sales", db="shop"))
    ('shop', 'sales')
    """
    return tuple(part.name for part in column.parts[:-1])


def _output(item: exp.Expr, scope: Scope, earlier: tuple[str, ...]) -> exp.Expr:
    qualified = _qualify(item, scope.everything, scope, earlier)
    if isinstance(item, exp.Column):  # the output goes by the name as it was written: SELECT NAME gives NAME
        named = exp.alias_(qualified, exp.to_identifier(item.name, quoted=True))
        named.meta.update(_written(item))
        return named
    return qualified


def _written(item: exp.Column) -> dict[str, object]:
    meta = item.this.meta or item.meta
    return {key: meta[key] for key in ("start", "end") if key in meta}


def _qualify(expression: exp.Expr, visible: Visible, scope: Scope, earlier: tuple[str, ...]) -> exp.Expr:
    def resolve(node: exp.Expr) -> exp.Expr:
        return _resolve(node, visible, scope, earlier) if isinstance(node, exp.Column) else node

    return expression.transform(resolve)


def _resolve(column: exp.Column, visible: Visible, scope: Scope, earlier: tuple[str, ...]) -> exp.Column:
    statement = scope.statement
    if isinstance(column.this, exp.Star):
        raise statement.refusal(
            support.UNKNOWN_EXPRESSION, column, because="a relation's * inside an expression", hint=support.NO_STAR
        )
    if parts := qualifier_of(column):
        alias = find_alias(scope, visible, parts, column)
        seen = find_qualified(visible, alias, column.this, statement, at=column)
    else:
        reused = column.name.lower() in {name.lower() for name in earlier}
        hint = "an output cannot use another output: write its expression out again" if reused else ""
        seen = find_plain(visible, column.this, statement, hint=hint)
    resolved = column_of(seen)
    resolved.meta.update(column.meta)
    resolved.this.meta.update(column.this.meta)
    return resolved
