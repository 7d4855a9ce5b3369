"""The part of a remainder that PostgreSQL can test: it reads no row that is not wanted, as far as it is sure to agree.

The caller tests the rows again, so a test may be left out, but may not fail a row that is wanted. Numbers and dates
compare alike everywhere; texts compare by their bytes if told to (`COLLATE "C"`). Values of other types that we hold as
texts (uuid, json, enumerations) are compared there by what they mean and here by what they look like, so they are not
tested. What is to be left out is tested only if all of it can be: by half a test too much would be left out.
"""

from __future__ import annotations

import re

from psycopg import sql

from headwater.deltas.extent import Extent, Remainder
from headwater.deltas.selection import SIGNS, Selection
from headwater.model.relation import Column, Relation
from headwater.sources.postgres.probing import PLAIN_TEXT
from headwater.sources.postgres.types import is_blank_padded

_NUMBER_OR_DATE = re.compile(r"smallint|integer|bigint|date|numeric(\(\d+,-?\d+\))?")


def conditions(relation: Relation, rows: Remainder) -> list[sql.Composable]:
    """Return tests, of the alias `r`, that every row of a remainder passes.

    >>> from headwater.model.relation import RelationName
    >>> sales = Relation(name=RelationName(source="shop", name="sales"), columns=(
    ...     Column(name="n", type="int", native="integer"), Column(name="city", type="string", native="text")))
    >>> few = Extent.of([Selection(column="n", compare="less", values=(3,))])
    >>> late = Extent.of([Selection(column="city", compare="greater", values=("Oslo",))])
    >>> for test in conditions(sales, Remainder(of=few, without=late)):
    ...     print(test.as_string(None))
    ("r"."n" < 3)
    ("r"."city"::text COLLATE "C" > 'Oslo') IS NOT TRUE
    """
    tests: list[sql.Composable] = []
    wanted = [_all_of(relation, selections) for selections in rows.of.any_of]
    if wanted and all(wanted):
        tests.append(_any_of(wanted))
    if rows.without.any_of and _is_tested(relation, rows.without):
        held = _any_of([_all_of(relation, selections) for selections in rows.without.any_of])
        tests.append(sql.SQL("{} IS NOT TRUE").format(held))
    return tests


def _any_of(lists: list[list[sql.Composable]]) -> sql.Composed:
    return sql.SQL("({})").format(sql.SQL(" OR ").join(sql.SQL(" AND ").join(tests) for tests in lists))


def _all_of(relation: Relation, selections: tuple[Selection, ...]) -> list[sql.Composable]:
    """Return the tests of those selections that can be tested. None: every row passes."""
    return [_test(relation.column(one.column), one) for one in selections if _can_test(relation, one)]


def _is_tested(relation: Relation, extent: Extent) -> bool:
    return all(_can_test(relation, one) for selections in extent.any_of for one in selections)


def _can_test(relation: Relation, selection: Selection) -> bool:
    column = relation.column(selection.column)
    if not _is_text(column):
        return _NUMBER_OR_DATE.fullmatch(column.native) is not None
    return all("\x00" not in value for value in selection.values)


def _is_text(column: Column) -> bool:
    return is_blank_padded(column.native) or PLAIN_TEXT.fullmatch(column.native) is not None


def _test(column: Column, selection: Selection) -> sql.Composed:
    """Return the test of a column. Equality is also tested as an index knows it, which says yes at least as often."""
    own = sql.Identifier("r", column.name)
    exact = sql.SQL('{}::text COLLATE "C"').format(own) if _is_text(column) else own
    values = sql.SQL(", ").join(map(sql.Literal, selection.values))
    if selection.compare != "equal":
        return sql.SQL("{} {} {}").format(exact, sql.SQL(SIGNS[selection.compare]), values)
    if _is_text(column):
        return sql.SQL("{0} IN ({2}) AND {1} IN ({2})").format(own, exact, values)
    return sql.SQL("{} IN ({})").format(own, values)
