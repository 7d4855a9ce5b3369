"""Replace `*` and `alias.*` by the columns they stand for."""

from __future__ import annotations

from sqlglot import exp

from headwater.views.text import support
from headwater.views.text.scope import Scope, VisibleColumn, column_of, find_alias, qualifier_of


def expand_stars(select: exp.Select, scope: Scope) -> exp.Select:
    """Replace every star by columns with their aliases.

    SELECT * FROM a.r JOIN b.s USING (k)   becomes   SELECT r.k, r.x, s.y FROM ...
    """
    expanded: list[exp.Expr] = []
    for item in select.expressions:
        if isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
            expanded += [_column(seen, item, scope) for seen in _meant(item, scope)]
        else:
            expanded.append(item.copy())
    result = select.copy()
    result.set("expressions", expanded)
    return result


def _meant(item: exp.Expr, scope: Scope) -> tuple[VisibleColumn, ...]:
    everything = scope.everything
    if isinstance(item, exp.Star):
        return everything.plain
    assert isinstance(item, exp.Column), "a star is bare or stands after an alias"
    alias = find_alias(scope, everything, qualifier_of(item), item)
    return tuple(seen for seen in (*everything.hidden, *everything.plain) if seen.alias == alias)


def _column(seen: VisibleColumn, item: exp.Expr, scope: Scope) -> exp.Column:
    if seen.unusable:
        because = f'* includes "{seen.alias}.{seen.column}", which in its source has the type {seen.unusable}'
        raise scope.statement.refusal(support.UNUSABLE_TYPE, item, because=because)
    column = column_of(seen)
    column.meta.update(_place(item))
    return column


def _place(item: exp.Expr) -> dict[str, object]:
    """Return where the star stands, so that an error about one of its columns can still be underlined."""
    star = item.find(exp.Star)
    assert star is not None, "only stars are expanded"
    return {key: star.meta[key] for key in ("start", "end") if key in star.meta}
