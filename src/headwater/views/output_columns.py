"""Which outputs of a join are columns of what it reads, as they are: by these a row leads back to its inputs' rows."""

from __future__ import annotations

from sqlglot import exp

from headwater.views.normal_form import JoinView


def output_columns(join: JoinView) -> dict[str, tuple[str, str]]:
    """Return for every output that is a plain column its occurrence's alias and the column.

    >>> from headwater.relation import Column, Relation, RelationName
    >>> from headwater.views.declaration import declare
    >>> sales = RelationName(source="shop", name="sales")
    >>> columns = (Column(name="id", type="int", native="int4"), Column(name="price", type="int", native="int4"))
    >>> catalog = {sales: Relation(name=sales, columns=columns)}
    >>> output_columns(declare("v", "SELECT s.id AS no, s.price + 1 AS more FROM shop.sales AS s", catalog))
    {'no': ('s', 'id')}
    """
    return {
        output.name: (output.expression.table, output.expression.name)
        for output in join.outputs
        if isinstance(output.expression, exp.Column)
    }
