"""From the SQL text of a select-project-join view to its normal form, or to an error that says what is wrong and where.

text ──read──► Statement ──VIEW_CHECKS, JOIN_CHECKS──► ──catalog──► Scope ──RULES──► SELECT in full ──► JoinView

Views of any SQL are compiled to several of these (`compile`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from headwater.model.relation import Relation, RelationName
from headwater.views.steps.join import Condition, Edge, JoinView, Occurrence, Output
from headwater.views.text.checks import JOIN_CHECKS, VIEW_CHECKS
from headwater.views.text.fallibility import ColumnTypes, is_fallible
from headwater.views.text.normalize import normalize
from headwater.views.text.operands import operands
from headwater.views.text.scope import Named, Scope, find_relations, relation_name, relations_read
from headwater.views.text.statement import Statement, read_statement
from headwater.views.text.support import RESERVED_NAMES
from headwater.views.text.upstream_views import ViewText, statements_below
from headwater.views.text.value_kinds import join_as_keys, value_of_type


def declare(name: str, sql: str, catalog: Mapping[RelationName, Relation], *, path: str = "") -> JoinView:
    """Understand the SQL of a select-project-join view, given the relations it may read.

    >>> from headwater.model.relation import Column
    >>> sales = RelationName(source="shop", name="sales")
    >>> columns = (Column(name="id", type="int", native="int4"), Column(name="price", type="int", native="int4"))
    >>> catalog = {sales: Relation(name=sales, columns=columns)}
    >>> view = declare("dear", "SELECT id FROM shop.sales WHERE Price > 9", catalog)
    >>> view.output_names, view.conditions[0].expression.sql(dialect="spark")
    (('id',), '`sales`.`price` > 9')
    """
    statement = check_view(sql, name=name, path=path)
    for check in JOIN_CHECKS:
        check(statement)
    scope = find_relations(statement, catalog)
    return _assemble(normalize(scope), scope)


def relations_named(
    sql: str, *, name: str = "", path: str = "", lower: Sequence[ViewText] = ()
) -> tuple[RelationName, ...]:
    """Return the relations that a view reads, each once: what must be described before it can be declared.

    >>> [str(name) for name in relations_named("SELECT 1 AS one FROM shop.sales s, shop.sales t, crm.old.people")]
    ['shop.sales', 'crm.old.people']
    """
    statement = check_view(sql, name=name, path=path, lower=lower)
    return tuple(dict.fromkeys(relation_name(table, text) for table, text in relations_read(statement)))


def check_view(sql: str, *, name: str, path: str, lower: Sequence[ViewText] = ()) -> Statement:
    """Return a view's statement, if nothing in it is refused in any view; lower views are checked for themselves."""
    statement = replace(read_statement(sql, name=name, path=path), lower=statements_below(lower))
    for check in VIEW_CHECKS:
        check(statement)
    return statement


def _assemble(select: exp.Select, scope: Scope) -> JoinView:
    types = {(n.alias, column.name): column.type for n in scope.named for column in n.relation.columns}
    conditions = tuple(
        Condition(expression=part, aliases=_aliases(part), fallible=is_fallible(part, types))
        for part in _conjuncts(select)
    )
    outputs = tuple(
        Output(name=item.alias, expression=item.unalias(), fallible=is_fallible(item.unalias(), types))
        for item in select.expressions
    )
    expressions = [*(condition.expression for condition in conditions), *(output.expression for output in outputs)]
    used = {(column.table, column.name) for part in expressions for column in part.find_all(exp.Column)}
    return JoinView(
        name=scope.statement.name,
        sql=scope.statement.sql,
        path=scope.statement.path,
        occurrences=tuple(_occurrence(named, used) for named in scope.named),
        edges=_edges(conditions, scope, types),
        conditions=conditions,
        outputs=outputs,
    )


def _conjuncts(select: exp.Select) -> list[exp.Expr]:
    """Return what must be true, in the order it was written; TRUE itself is left out."""
    roots = [join.args["on"] for join in select.args.get("joins") or () if join.args.get("on")]
    roots += [where.this for where in (select.args.get("where"),) if where is not None]
    parts = [part for root in roots for part in operands(root, exp.And)]
    return [part for part in parts if not (isinstance(part, exp.Boolean) and part.this)]


def _aliases(expression: exp.Expr) -> frozenset[str]:
    return frozenset(column.table for column in expression.find_all(exp.Column))


def _occurrence(named: Named, used: set[tuple[str, str]]) -> Occurrence:
    relation = named.relation
    needed = tuple(name for name in relation.column_names if (named.alias, name) in used)
    return Occurrence(alias=named.alias, relation=relation, columns=needed or _any_column(relation))


def _any_column(relation: Relation) -> tuple[str, ...]:
    """Return one column, of the key if possible: rows must be counted even if none of their values matter."""
    usable = [name for name in relation.column_names if name.lower() not in RESERVED_NAMES]
    return tuple(sorted(usable, key=lambda name: name not in relation.key)[:1])


def _edges(conditions: tuple[Condition, ...], scope: Scope, types: ColumnTypes) -> tuple[Edge, ...]:
    order = {named.alias: place for place, named in enumerate(scope.named)}
    pairs: dict[tuple[str, str], dict[tuple[str, str], None]] = {}
    for condition in conditions:
        equality = condition.expression
        if not isinstance(equality, exp.EQ):
            continue
        left, right = equality.left.unnest(), equality.right.unnest()
        if not (isinstance(left, exp.Column) and isinstance(right, exp.Column)) or left.table == right.table:
            continue
        if not join_as_keys(*(value_of_type(types[c.table, c.name]) for c in (left, right))):
            continue
        if order[left.table] > order[right.table]:
            left, right = right, left
        found = pairs.setdefault((left.table, right.table), {})
        if not any(left.name == known_left or right.name == known_right for known_left, known_right in found):
            found[left.name, right.name] = None  # a lookup names a column once; the condition is tested all the same
    return tuple(Edge(left=a, right=b, pairs=tuple(found)) for (a, b), found in pairs.items())
