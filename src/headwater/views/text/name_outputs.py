"""See to it that every output column has a name, its own and not one of ours."""

from __future__ import annotations

from sqlglot import exp

from headwater.views.text import support
from headwater.views.text.scope import Scope


def name_outputs(select: exp.Select, scope: Scope) -> exp.Select:
    """Refuse outputs without a name, with a name used twice or reserved. Nothing is rewritten.

    Spark would make up names such as `(x + 1)`, which may change with its version; authors name a view's columns.
    """
    statement = scope.statement
    names: set[str] = set()
    for item in select.expressions:
        if not isinstance(item, exp.Alias):
            raise statement.refusal(support.UNNAMED_OUTPUT, item)
        name = item.alias
        if name.lower() in support.RESERVED_NAMES:
            raise statement.refusal(support.RESERVED_OUTPUT, item, because=f'"{name}"')
        if name.lower() in names:
            raise statement.refusal(support.DUPLICATE_OUTPUT, item, because=f'"{name}"')
        names.add(name.lower())
    return select
