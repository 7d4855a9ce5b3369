"""Which outputs of a join are columns of what it reads, as they are: by these a row leads back to its inputs' rows."""

from __future__ import annotations

from sqlglot import exp

from headwater.views.steps.join import JoinView


def output_columns(join: JoinView) -> dict[str, tuple[str, str]]:
    """Return for every output that is a plain column its occurrence's alias and the column.

    >>> from headwater.model.relation import Column, Relation, RelationName
    >>> from headwater.views.steps.build_join import build_join
    >>> sales = RelationName(source="shop", name="sales")
    >>> columns = (Column(name="id", type="int", native="int4"), Column(name="price", type="int", native="int4"))
    >>> id, price = (exp.column(one.name, table="s") for one in columns)
    >>> tables = {"s": Relation(name=sales, columns=columns)}
    >>> output_columns(build_join("v", tables, (), [("no", id), ("more", price + 1)]))
    {'no': ('s', 'id')}
    """
    return {
        output.name: (output.expression.table, output.expression.name)
        for output in join.outputs
        if isinstance(output.expression, exp.Column)
    }


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
