"""What a reader may ask: one SELECT over the project's views, and a condition on the rows of one.

Text that comes from a reader reaches Spark, and Spark's SQL can read files, change settings, load code and call any
Java method. So a reader may say what a view may say (`checks`), and call a few functions more; the only tables are
views and what WITH names. Everything else is refused before Spark starts.

What runs is a new text, written from the tree that was checked, never the reader's own text: where sqlglot and Spark
read a text differently, nothing unchecked runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sqlglot import exp

from headwater.errors import HeadwaterError, InvalidView
from headwater.views.text import support
from headwater.views.text.checks import (
    calls_functions_for_readers,
    has_known_escapes,
    has_known_expressions,
    has_no_parameters,
    leaves_groups_out_before_windows,
)
from headwater.views.text.scope import relations_in
from headwater.views.text.spark_text import spark_text
from headwater.views.text.statement import Statement, read_statement, underline

_CHECKS: tuple[Callable[[Statement], None], ...] = (
    has_no_parameters,
    calls_functions_for_readers,
    has_known_expressions,
    has_known_escapes,
    leaves_groups_out_before_windows,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderQuery:
    """One SELECT of a reader that was checked, and the names of the views that it reads, in lower case, each once."""

    tree: exp.Query
    views: tuple[str, ...]
    named: tuple[str, ...]
    """Every table's name, those that WITH gives included: in its own definition such a name may mean a view."""

    @property
    def sql(self) -> str:
        """The query as Spark SQL."""
        return spark_text(self.tree)


def read_query(sql: str) -> ReaderQuery:
    """Read a reader's query. What is not one SELECT over plain names is refused.

    >>> read_query("WITH a AS (SELECT 1 AS x) SELECT * FROM Sales AS s JOIN a ON s.no = a.x").views
    ('sales',)
    """
    with _refusing("the query cannot be run"):
        statement = read_statement(sql)
        if not isinstance(statement.tree, exp.Query):
            raise _not_a_select("this is another statement")
        if any(not select.expressions for select in statement.tree.find_all(exp.Select)):
            raise _not_a_select("a SELECT names no columns")
        for check in _CHECKS:
            check(statement)
        for table in statement.tree.find_all(exp.Table):
            _refuse_other_tables(statement, table)
    return ReaderQuery(
        tree=statement.tree,
        views=_each_once(relations_in(statement.tree)),
        named=_each_once(statement.tree.find_all(exp.Table)),
    )


def read_condition(text: str) -> str:
    """Return a condition on rows, as Spark SQL. A query inside it, and what no view may say, is refused.

    >>> read_condition("city = 'Oslo' AND sold > 3")
    "city = 'Oslo' AND sold > 3"
    """
    with _refusing("the condition cannot be used"):
        statement = read_statement(text)
        _check_value(statement)
    return spark_text(statement.tree)


def check_value(text: str, value: exp.Expr) -> None:
    """Refuse a value in a text, of a row that a person wrote, if it is more than a view may say."""
    with _refusing("the row cannot be used"):
        _check_value(Statement(name="", sql=text, path="", tree=value))


def _check_value(statement: Statement) -> None:
    for node in statement.tree.walk():
        if isinstance(node, (exp.Query, exp.Subquery, exp.Table, exp.Exists)):
            raise InvalidView(
                "a query stands where a value is expected",
                code="HW-146",
                detail=_place(statement, node, "only columns, literals and functions can be used here"),
                hint="find the value with `headwater query` first",
            )
    for check in _CHECKS:
        check(statement)


def _refuse_other_tables(statement: Statement, table: exp.Table) -> None:
    if isinstance(table.this, exp.Identifier) and not table.db and not table.catalog:
        return
    raise InvalidView(
        "the query reads something that is not a view",
        code="HW-145",
        detail=_place(statement, table, "a query reads views of this project, by their plain names, and nothing else"),
        hint="write the view's name alone; `headwater status` lists the views",
    )


@contextmanager
def _refusing(summary: str) -> Iterator[None]:
    """Let refusals that speak of a view speak of what the reader wrote. Their codes mean the same."""
    try:
        yield
    except HeadwaterError as error:
        if error.code in {support.SEVERAL_STATEMENTS.code, support.NOT_A_QUERY.code}:
            raise _not_a_select("there are several statements") from None
        if error.code.startswith("HW-2"):
            raise type(error)(summary, code=error.code, detail=error.detail, hint=error.hint) from None
        raise


def _not_a_select(why: str) -> InvalidView:
    return InvalidView(
        "a query is one SELECT over views",
        code="HW-144",
        detail=why,
        hint="write one SELECT; nothing can be set, created, described or changed through `query`",
    )


def _place(statement: Statement, node: exp.Expr, why: str) -> str:
    span = statement.span_of(node)
    return why if span is None else f"{why}\n{underline(statement.sql, span)}"


def _each_once(tables: Iterable[exp.Table]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(table.name.lower() for table in tables))
