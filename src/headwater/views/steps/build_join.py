"""From relations by alias, conditions and values to a `JoinView`: its needed columns, its edges, what in it may raise.

Every join of every view is built here: the one that a plain view is, the joins between other steps, copies of relations
and lineage views. All names are found before (`compile.names`), so nothing is looked up and no text is read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from sqlglot import exp

from headwater.model.relation import DEFAULT_SCHEMA, Relation, RelationName
from headwater.views.compile.expressions import conjuncts
from headwater.views.steps.join import Condition, Edge, JoinView, Occurrence, Output
from headwater.views.text.fallibility import ColumnTypes, is_fallible
from headwater.views.text.spark_text import quoted, spark_text
from headwater.views.text.support import RESERVED_NAMES
from headwater.views.text.value_kinds import join_as_keys, value_of_type


def build_join(
    name: str,
    tables: Mapping[str, Relation],
    conditions: Sequence[exp.Expr],
    values: Sequence[tuple[str, exp.Expr]],
    tests: Collection[str] = (),
) -> JoinView:
    """Return the join that gives named values from relations by alias, where all conditions hold. `tests` are aliases.

    >>> from headwater.model.relation import Column
    >>> sales = RelationName(source="shop", name="sales")
    >>> columns = (Column(name="id", type="int", native="int4"), Column(name="price", type="int", native="int4"))
    >>> id, price = (exp.column(one.name, table="s") for one in columns)
    >>> join = build_join("dear", {"s": Relation(name=sales, columns=columns)}, [price > 9], [("no", id)])
    >>> join.occurrences[0].columns, [str(one) for one in join.selections["s"]]
    (('id', 'price'), ['price > 9'])
    """
    types = {(alias, column.name): column.type for alias, relation in tables.items() for column in relation.columns}
    tested = tuple(
        Condition(expression=part, aliases=_aliases(part), fallible=is_fallible(part, types))
        for condition in conditions
        for part in conjuncts(condition)
    )
    outputs = tuple(
        Output(name=called, expression=value, fallible=is_fallible(value, types)) for called, value in values
    )
    expressions = [*(one.expression for one in tested), *(output.expression for output in outputs)]
    used = {(column.table, column.name) for part in expressions for column in part.find_all(exp.Column)}
    return JoinView(
        name=name,
        sql=select_text({alias: named_table(one.name) for alias, one in tables.items()}, conditions, values),
        occurrences=tuple(
            Occurrence(alias=alias, relation=one, columns=_needed(alias, one, used), is_test=alias in tests)
            for alias, one in tables.items()
        ),
        edges=_edges((one.expression for one in tested), list(tables), types),
        conditions=tested,
        outputs=outputs,
    )


def select_text(
    tables: Mapping[str, str], conditions: Iterable[exp.Expr], values: Iterable[tuple[str, exp.Expr]]
) -> str:
    """Return the SELECT that gives named values from tables by alias.

    >>> select_text({"o0": "`shop`.`sales`"}, [exp.condition("x > 1")], [("c0", exp.column("x"))])
    'SELECT x AS `c0` FROM `shop`.`sales` AS `o0` WHERE (x > 1)'
    """
    outputs = ", ".join(f"{spark_text(value)} AS {quoted(name)}" for name, value in values)
    source = ", ".join(f"{table} AS {quoted(alias)}" for alias, table in tables.items())
    tests = " AND ".join(f"({spark_text(condition)})" for condition in conditions)
    return f"SELECT {outputs} FROM {source}" + (f" WHERE {tests}" if tests else "")


def named_table(name: RelationName) -> str:
    """Return a relation or segment as FROM names it.

    >>> named_table(RelationName(source="shop", name="sales"))
    '`shop`.`sales`'
    """
    parts = [name.source, *([] if name.schema == DEFAULT_SCHEMA else [name.schema]), name.name]
    return ".".join(map(quoted, parts))


def _aliases(expression: exp.Expr) -> frozenset[str]:
    return frozenset(column.table for column in expression.find_all(exp.Column))


def _needed(alias: str, relation: Relation, used: Collection[tuple[str, str]]) -> tuple[str, ...]:
    """Return the used columns, or one of the key if possible: rows are counted even if none of their values matter."""
    needed = tuple(name for name in relation.column_names if (alias, name) in used)
    usable = [name for name in relation.column_names if name.lower() not in RESERVED_NAMES]
    return needed or tuple(sorted(usable, key=lambda name: name not in relation.key)[:1])


def _edges(conditions: Iterable[exp.Expr], order: Sequence[str], types: ColumnTypes) -> tuple[Edge, ...]:
    pairs: dict[tuple[str, str], dict[tuple[str, str], None]] = {}
    for equality in conditions:
        if not isinstance(equality, exp.EQ):
            continue
        left, right = equality.left.unnest(), equality.right.unnest()
        if not (isinstance(left, exp.Column) and isinstance(right, exp.Column)) or left.table == right.table:
            continue
        if not join_as_keys(*(value_of_type(types[c.table, c.name]) for c in (left, right))):
            continue
        if order.index(left.table) > order.index(right.table):
            left, right = right, left
        found = pairs.setdefault((left.table, right.table), {})
        if not any(left.name == known_left or right.name == known_right for known_left, known_right in found):
            found[left.name, right.name] = None  # a lookup names a column once; the condition is tested all the same
    return tuple(Edge(left=a, right=b, pairs=tuple(found)) for (a, b), found in pairs.items())
