"""What a view should be: its SQL, run whole by SQLite over whole relations.

Nothing of what installs a change is used here: not the steps that a view is compiled to, not the law, not the evaluator
of expressions. So a mistake in any of them cannot hide in what it is compared with.

    rows of each relation ──► tables of SQLite ──► the author's text, its names made SQLite's ──► a bag of rows
"""

from __future__ import annotations

import sqlite3
import threading
from collections import Counter
from collections.abc import Mapping
from datetime import date
from functools import lru_cache

import sqlglot
from sqlglot import exp

from headwater.model.relation import Relation, RelationName
from headwater_lab.in_memory.bag import Row

_DATE = "\0date "
"""Begins a text that stands for a date. Such texts have the order of their dates."""


def oracle(sql: str, relations: tuple[Relation, ...]) -> Oracle:
    """Return what recomputes a view. Its tables are made once in each thread: SQLite's are used by one alone."""
    return _made(sql, relations, threading.get_ident())


@lru_cache(maxsize=256)
def _made(sql: str, relations: tuple[Relation, ...], _thread: int) -> Oracle:
    return Oracle(sql, relations)


class Oracle:
    """A view's text over relations, in SQLite."""

    def __init__(self, sql: str, relations: tuple[Relation, ...]) -> None:
        """Make the tables, empty, and translate the text."""
        self._tables = {relation.name: f'"{relation.name}"' for relation in relations}
        self._run = sqlite3.connect(":memory:", check_same_thread=False).execute  # a thread's number comes again
        for relation in relations:
            columns = ", ".join(f'"{column.name}"' for column in relation.columns)  # no types: values stay as they are
            self._run(f"CREATE TABLE {self._tables[relation.name]} ({columns})")
        self._widths = {relation.name: len(relation.columns) for relation in relations}
        self._held: dict[RelationName, Mapping[Row, int]] = {}
        tree = sqlglot.parse_one(sql, read="spark")
        names = {str(name): name for name in self._tables}
        for table in tree.find_all(exp.Table):
            name = names[".".join(part.name for part in table.parts)]
            alias = table.alias or table.name
            table.replace(exp.alias_(exp.to_table(self._tables[name], dialect="sqlite"), alias, table=True))
        self._text = tree.sql(dialect="sqlite", identify=True)

    def rows(self, rows: Mapping[RelationName, Mapping[Row, int]]) -> Counter[Row]:
        """Return the view's rows over these rows of its relations."""
        for name, table in self._tables.items():
            own = rows.get(name, {})
            if self._held.get(name) == own:
                continue
            self._held[name] = dict(own)
            places = ", ".join("?" * self._widths[name])
            self._run(f"DELETE FROM {table}")
            for row, count in own.items():
                for _ in range(count):
                    self._run(f"INSERT INTO {table} VALUES ({places})", tuple(map(_bound, row)))
        return Counter(tuple(map(_read, row)) for row in self._run(self._text).fetchall())


def _bound(value: object) -> object:
    return _DATE + value.isoformat() if isinstance(value, date) else value


def _read(value: object) -> object:
    is_date = isinstance(value, str) and value.startswith(_DATE)
    return date.fromisoformat(str(value).removeprefix(_DATE)) if is_date else value
