"""Segments evaluated in DuckDB, and SELECTs typed by it: what the compiler makes of a view, compared with the view.

DuckDB stands in for Spark: the texts are transpiled. It gives sums of integers and averages other types than Spark
does, so values are compared, not types.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache

import duckdb
import sqlglot

from headwater.errors import InvalidView
from headwater.judge.complete_orders import judged_text
from headwater.model.relation import Column, Relation, RelationName
from headwater.views.compile.compile_view import compile_view
from headwater.views.laws.join import renamed_sql
from headwater.views.steps.segments import SegmentedView
from headwater.views.steps.union_step import UnionStep
from headwater.views.text.upstream_views import ViewText

Rows = Sequence[tuple[object, ...]]

_TO_DUCKDB = {"int": "INTEGER", "string": "VARCHAR", "array<int>": "INTEGER[]"}
_FROM_DUCKDB = {"integer": "int", "integer[]": "array<int>", "varchar": "string", "hugeint": "decimal(38,0)"}


def relation(source: str, name: str, *, key: tuple[str, ...] = (), **types: str) -> Relation:
    """Return a relation; a type that ends in ! is never NULL."""
    columns = tuple(Column(name=c, type=kind.rstrip("!"), native=kind.rstrip("!")) for c, kind in types.items())
    never_null = frozenset(c for c, kind in types.items() if kind.endswith("!"))
    return Relation(name=RelationName(source=source, name=name), columns=columns, key=key, not_null=never_null)


@cache
def in_duckdb(sql: str) -> str:
    """Return Spark SQL as DuckDB's."""
    return sqlglot.transpile(sql, read="spark", write="duckdb")[0]


class World:
    """Relations with rows, in a DuckDB of their own."""

    def __init__(self, relations: Sequence[Relation]) -> None:
        self.catalog = {each.name: each for each in relations}
        self.connection = duckdb.connect()
        self.connection.execute("SET threads = 1")
        self.connection.execute("CREATE MACRO raise_error(message) AS error(message)")
        self.tables = {name: f"{name.source}_{name.name}" for name in self.catalog}
        for name, described in self.catalog.items():
            columns = ", ".join(f"{c.name} {_TO_DUCKDB.get(c.type, c.type)}" for c in described.columns)
            self.connection.execute(f"CREATE TABLE {self.tables[name]} ({columns})")

    def fill(self, rows: Mapping[RelationName, Rows]) -> None:
        for name, table in self.tables.items():
            self.connection.execute(f"DELETE FROM {table}")
            if found := rows.get(name):
                places = ", ".join("?" for _ in found[0])
                self.connection.executemany(f"INSERT INTO {table} VALUES ({places})", [list(row) for row in found])

    def types(self, sql: str, relations: Mapping[RelationName, Relation]) -> tuple[Column, ...]:
        names = {name: f"typed{place}" for place, name in enumerate(relations)}
        empty = ", ".join(
            f"{names[name]} AS (SELECT "
            + ", ".join(f'CAST(NULL AS {_TO_DUCKDB.get(c.type, c.type)}) AS "{c.name}"' for c in described.columns)
            + ")"
            for name, described in relations.items()
        )
        text = in_duckdb(renamed_sql(sql, names))
        try:
            found = self.connection.execute(f"DESCRIBE (WITH {empty} SELECT * FROM ({text}))").fetchall()
        except duckdb.Error as error:
            raise InvalidView("cannot be typed", code="HW-244", detail=f"{text}\n{error}") from error
        kinds = [(name, kind.lower()) for name, kind, *_ in found]
        return tuple(Column(name=n, type=_FROM_DUCKDB.get(k, k), native=k) for n, k in kinds)

    def compile(
        self, sql: str, *, strict: bool = False, name: str = "v", lower: Sequence[ViewText] = ()
    ) -> SegmentedView:
        return compile_view(name, sql, self.catalog, self.types, strict=strict, lower=lower)

    def original(self, sql: str) -> Counter[tuple[object, ...]]:
        return self.bag(in_duckdb(renamed_sql(judged_text(sql, self.catalog.values()), self.tables)))

    def bag(self, text: str) -> Counter[tuple[object, ...]]:
        """Return the rows that DuckDB gives for a text of its own."""
        return _bag(self.connection.execute(text).fetchall())

    def by_hand(self, text: str) -> Counter[tuple[object, ...]]:
        """Return the same with NULLs first wherever the text does not say where they are."""
        self.connection.execute("SET default_null_order = 'nulls_first'")
        try:
            return self.bag(text)
        finally:
            self.connection.execute("RESET default_null_order")

    def evaluate(self, view: SegmentedView) -> Counter[tuple[object, ...]]:
        """Return the view's rows, from its segments one after the other; also see to it that none is ill-made."""
        tables = dict(self.tables)
        for place, segment in enumerate(view.segments):
            table = f"segment{place}"
            text = in_duckdb(segment.whole_sql(tables))
            self.connection.execute(f"CREATE OR REPLACE TEMP TABLE {table} AS {text}")
            held = [row[0] for row in self.connection.execute(f"DESCRIBE {table}").fetchall()]
            assert held == list(segment.relation.column_names), segment
            for column in segment.relation.not_null:
                unknown = f'SELECT COUNT(*) FROM {table} WHERE "{column}" IS NULL'
                assert self.connection.execute(unknown).fetchall() == [(0,)], (column, segment)
            if isinstance(segment.step, UnionStep):
                self._check_takes_only_what_is_there(segment.step, tables)
            tables[segment.name] = table
        return _bag(self.connection.execute(f"SELECT * FROM {table}").fetchall())

    def _check_takes_only_what_is_there(self, step: UnionStep, tables: Mapping[RelationName, str]) -> None:
        sides = {
            sign: " UNION ALL ".join(f"SELECT * FROM {tables[one.input]}" for one in step.inputs if one.sign == sign)
            for sign in (1, -1)
        }
        if sides[-1]:
            too_many = self.connection.execute(f"({sides[-1]}) EXCEPT ALL ({sides[1]})").fetchall()
            assert too_many == [], "a union takes away only what is there"


def _bag(rows: Rows) -> Counter[tuple[object, ...]]:
    return Counter(tuple(_plain(value) for value in row) for row in rows)


def _plain(value: object) -> object:
    """Return a value that equals its like in another number type."""
    if value is None or isinstance(value, (bool, str)):
        return value
    try:
        return round(float(value), 6)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return value
