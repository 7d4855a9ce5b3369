"""The in-memory evaluator agrees with a real engine on everything it knows."""

from __future__ import annotations

import duckdb
import pytest
import sqlglot
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater_lab.in_memory.evaluate import evaluate

numbers = st.sampled_from(["r.x", "r.y", "0", "1", "2", "NULL"])
texts = st.sampled_from(["r.t", "'a'", "'B'", "upper(r.t)", "lower('Q')", "concat(r.t, 'z')", "r.t || 'a'"])


def of_numbers(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operators = st.sampled_from(["+", "-", "*"])
    return st.one_of(
        st.builds("({} {} {})".format, inner, operators, inner),
        st.builds("coalesce({}, {})".format, inner, inner),
        st.builds("CASE WHEN {} > {} THEN {} ELSE {} END".format, inner, inner, inner, inner),
        st.builds("CASE {} WHEN {} THEN {} END".format, inner, inner, inner),
        st.builds("(-{})".format, inner),
    )


amounts = st.recursive(numbers, of_numbers, max_leaves=4)
comparisons = st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "<=>"])


def of_truths(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds("({} AND {})".format, inner, inner),
        st.builds("({} OR {})".format, inner, inner),
        st.builds("(NOT {})".format, inner),
        st.builds("({} IS NULL)".format, inner),
    )


truths = st.recursive(
    st.one_of(
        st.builds("({} {} {})".format, amounts, comparisons, amounts),
        st.builds("({} {} {})".format, texts, comparisons, texts),
        st.builds("({} IN ({}, {}))".format, amounts, amounts, amounts),
        st.builds("({} NOT BETWEEN {} AND {})".format, amounts, amounts, amounts),
        st.sampled_from(["TRUE", "FALSE", "(r.x IS NOT NULL)"]),
    ),
    of_truths,
    max_leaves=4,
)

CONNECTION = duckdb.connect()
NUMBER = st.sampled_from([None, 0, 1, 2])


@given(sql=st.one_of(truths, amounts, texts), x=NUMBER, y=NUMBER, t=st.sampled_from([None, "a", "B", ""]))
@settings(max_examples=300, deadline=None)
def test_it_agrees_with_duckdb(sql: str, x: int | None, y: int | None, t: str | None) -> None:
    expression = sqlglot.parse_one(sql, read="spark")
    statement = (
        f"SELECT {expression.sql(dialect='duckdb')} FROM (SELECT ?::INT AS x, ?::INT AS y, ?::VARCHAR AS t) AS r"
    )
    ((expected,),) = CONNECTION.execute(statement, [x, y, t]).fetchall()
    assert evaluate(expression, {("r", "x"): x, ("r", "y"): y, ("r", "t"): t}) == expected


@pytest.mark.parametrize("sql", ["1 / 0", "1.5 / 0", "0.0 / 0", "1e3 / 0"])
def test_dividing_by_zero_raises(sql: str) -> None:
    with pytest.raises(ArithmeticError):
        evaluate(sqlglot.parse_one(sql, read="spark"), {})


def test_what_it_does_not_know_it_does_not_guess() -> None:
    with pytest.raises(AssertionError, match="does not know"):
        evaluate(sqlglot.parse_one("sqrt(2)", read="spark"), {})
