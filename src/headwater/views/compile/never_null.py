"""Whether an expression is known never to be NULL. "Perhaps" is always safe: it only costs a longer way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlglot import exp

from headwater.views.compile.expressions import REJECT_NULL
from headwater.views.compile.plan import PlannedOccurrence


def is_never_null(value: exp.Expr, occurrences: Sequence[PlannedOccurrence], conditions: Iterable[exp.Expr]) -> bool:
    """Tell whether a value cannot be NULL on rows that meet the conditions."""
    bare = value.unnest()
    match bare:
        case exp.Literal() | exp.Boolean():
            return True
        case exp.Column():
            node = next((o.node for o in occurrences if o.alias == bare.table), None)
            return (node is not None and bare.name in node.never_null) or any(
                _rejects_null(condition, bare) for condition in conditions
            )
        case exp.Coalesce():
            return any(is_never_null(part, occurrences, conditions) for part in (bare.this, *bare.expressions))
        case _:
            return False


def _rejects_null(condition: exp.Expr, column: exp.Column) -> bool:
    """Tell whether a condition is not TRUE if a column is NULL."""
    bare = condition.unnest()
    if isinstance(bare, REJECT_NULL):
        return column in (bare.left.unnest(), bare.right.unnest())
    is_known = isinstance(bare, exp.Not) and isinstance(bare.this.unnest(), exp.Is)
    return is_known and bare.this.unnest().this == column and isinstance(bare.this.unnest().expression, exp.Null)
