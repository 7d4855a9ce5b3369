"""Whether a join only picks columns: then its changes are its input's, and nobody has to compute anything."""

from __future__ import annotations

from sqlglot import exp

from headwater.views.normal_form import JoinView


def plain_columns(join: JoinView) -> tuple[str, ...] | None:
    """Return the columns of its one input that a join gives as they are, if that is all it does: no Spark is needed.

    Columns of floating point are left to Spark, which makes -0.0 and 0.0 one value when it nets them.
    """
    if len(join.occurrences) > 1 or join.conditions:
        return None
    relation = join.occurrences[0].relation
    columns = tuple(output.expression.name for output in join.outputs if isinstance(output.expression, exp.Column))
    is_floating = any(relation.column(name).type in ("float", "double") for name in columns)
    return None if is_floating or len(columns) < len(join.outputs) else columns
