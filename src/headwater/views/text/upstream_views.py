"""Views over other views: where a view's text names another view of its project, that view's query stands in its place.

    profits:      SELECT store_id, SUM(profit) AS profit FROM shop.sales GROUP BY store_id
    high_profit:  SELECT st.city FROM chain.stores AS st JOIN profits AS p ON p.store_id = st.store_id

A view is named as readers name it, by its bare name, in any case; a name that WITH gives in the same text comes first.
So a view over views is exact at every tick by construction: it is a query over relations, like any other. How the
upstream view is kept, by which guarantee, and whether it has stopped does not matter to it.

The compiler reads upstream views as it reads WITH. Judges read `whole_text`: the authors' texts, whose open orders they
complete themselves (`judge.complete_orders`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.tokenizer_core import TokenType

from headwater.views.text import support
from headwater.views.text.scope import relations_in
from headwater.views.text.spark_text import quoted
from headwater.views.text.statement import Statement, read_statement


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewText:
    """A view as its author wrote it, and in which file."""

    name: str
    sql: str
    path: str = ""


def views_below(name: str, texts: Mapping[str, ViewText]) -> tuple[ViewText, ...]:
    """Return the views that a view reads, itself or through others, each after those that it reads.

    >>> texts = {"a": "SELECT x FROM b JOIN c", "b": "SELECT x FROM C", "c": "SELECT x FROM s.r", "d": "SELECT 1"}
    >>> named = {name: ViewText(name=name, sql=sql) for name, sql in texts.items()}
    >>> [below.name for below in views_below("a", named)]
    ['c', 'b']
    """
    found: dict[str, ViewText] = {}

    def visit(text: ViewText, above: tuple[str, ...]) -> None:
        statement = read_statement(text.sql, name=text.name, path=text.path)
        for table in _bare_tables(statement.tree):
            below = table.name.lower()
            if below in above:
                circle = " → ".join([*above[above.index(below) :], below])
                raise statement.refusal(support.VIEW_CIRCLE, table, because=circle)
            if below in texts and below not in found:
                visit(texts[below], (*above, below))
                found[below] = texts[below]

    visit(texts[name], (name,))
    return tuple(found.values())


def named_directly(sql: str) -> tuple[str, ...]:
    """Return the relations and views that a text names itself, as it writes them, in textual order.

    >>> named_directly("WITH w AS (SELECT 1 AS x FROM Sold) SELECT 1 AS x FROM shop.sales s JOIN w ON w.x = s.x")
    ('Sold', 'shop.sales')
    """
    found = relations_in(read_statement(sql).tree)
    return tuple(".".join(part.name for part in table.parts) for table in found)


def statements_below(below: Sequence[ViewText]) -> tuple[Statement, ...]:
    """Return the statements of upstream views. Each knows those before it."""
    statements: tuple[Statement, ...] = ()
    for text in below:
        statement = read_statement(text.sql, name=text.name, path=text.path)
        statements += (Statement(name=text.name, sql=text.sql, path=text.path, tree=statement.tree, lower=statements),)
    return statements


def whole_text(sql: str, below: Sequence[ViewText]) -> str:
    r"""Return a view's text so that it stands by itself: the texts of the views below it, by their names, before it.

    >>> print(whole_text("SELECT x FROM b", [ViewText(name="b", sql="SELECT x FROM s.r;")]))
    WITH `b` AS (
    SELECT x FROM s.r
    )
    SELECT * FROM (
    SELECT x FROM b
    ) AS whole
    """
    if not below:
        return sql
    named = ", ".join(f"{quoted(text.name)} AS (\n{_unended(text.sql)}\n)" for text in below)
    return f"WITH {named}\nSELECT * FROM (\n{_unended(sql)}\n) AS whole"


def completed_text(statement: Statement) -> str:
    """Return the same of a statement with completed orders. Empty if no text leaves an order open."""
    if not any(one.completed for one in (*statement.lower, statement)):
        return ""
    return whole_text(statement.meant, [ViewText(name=one.name, sql=one.meant) for one in statement.lower])


def _bare_tables(tree: exp.Expr) -> list[exp.Table]:
    common = {named.alias.lower() for named in tree.find_all(exp.CTE)}
    tables = (table for table in tree.find_all(exp.Table) if not isinstance(table.this, exp.Func))
    return [table for table in tables if not table.db and table.name.lower() not in common]


def _unended(sql: str) -> str:
    """Return a text without its semicolons, so that it can stand in parentheses."""
    ends = [token for token in Spark().tokenize(sql) if token.token_type is TokenType.SEMICOLON]
    for token in reversed(ends):
        sql = sql[: token.start] + sql[token.end + 1 :]
    return sql
