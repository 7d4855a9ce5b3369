"""Write JOIN ... USING (k) as the equality it means."""

from __future__ import annotations

from sqlglot import exp

from headwater.views.text.qualify_columns import column_of
from headwater.views.text.scope import Scope, Visible, find_plain, find_qualified


def join_using_as_on(select: exp.Select, scope: Scope) -> exp.Select:
    """Replace USING by ON.

    FROM a.r JOIN b.s USING (k)   becomes   FROM a.r JOIN b.s ON r.k = s.k
    """
    result = select.copy()
    joins = result.args.get("joins") or ()
    for join, left, visible, right in zip(joins, scope.visible, scope.visible[1:], scope.named[1:], strict=False):
        if keys := join.args.get("using"):
            equalities = [_equality(key, left, visible, right.alias, scope) for key in keys]
            join.set("using", None)
            join.set("on", exp.and_(*equalities, copy=False))
    return result


def _equality(key: exp.Expr, left: Visible, visible: Visible, alias: str, scope: Scope) -> exp.EQ:
    mine = find_plain(left, key, scope.statement)
    theirs = find_qualified(visible, alias, key, scope.statement)
    return exp.EQ(this=column_of(mine), expression=column_of(theirs))
