"""SQLite databases, read with what Python brings along: all tables in one read transaction.

A column of SQLite holds values of any type, whatever it was declared as. So every value is looked at, and one that is
not of the declared type is refused. A column that was declared without a type, or with one that says nothing, is not
read.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pyarrow as pa

from headwater.errors import HeadwaterError, InvalidProject, SourceRefused, SourceUnavailable
from headwater.model.relation import DEFAULT_SCHEMA, Column, Relation, RelationName
from headwater.sources.polled.place import BATCH_ROWS, typed, wrong_value
from headwater.sources.source import Inspection, missing_relation

_EXACT_DIGITS = 15
"""Decimals with up to this number of digits survive being kept as a binary fraction, which is how SQLite keeps them."""


@dataclass(frozen=True, slots=True)
class SqlitePlace:
    """See `headwater.sources.polled.place.Place`."""

    source: str
    path: str
    timeout_seconds: float = 60.0
    default_schema: str = "main"

    @classmethod
    def at(cls, url: str, source: str, timeout_seconds: float) -> SqlitePlace:
        """Return the database that a URL names: `sqlite:////srv/shop.db`."""
        path = unquote(url.partition(":")[2].removeprefix("//")).removeprefix("/")
        if not path.startswith("/"):
            raise InvalidProject(
                f'the url of source "{source}" names no database file',
                code="HW-353",
                detail="a relative path would depend on where the command is run, and a database in memory is of one "
                "process",
                hint="write the whole path behind three slashes: sqlite:////srv/shop.db",
            )
        return cls(source, path, timeout_seconds)

    def describe(self, names: Sequence[RelationName]) -> Inspection:
        """Describe tables and views."""
        with self._connected() as connection:
            return _described(connection, names)

    @contextmanager
    def moment(self) -> Iterator[SqliteMoment]:
        """Open the database in one read transaction."""
        with self._connected() as connection:
            connection.execute("BEGIN")
            connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchall()  # only now it begins
            yield SqliteMoment(connection)

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        if not Path(self.path).is_file():
            raise self._unavailable("there is no such file")
        if Path(self.path).stat().st_size == 0:  # SQLite would take it for a database without tables
            raise self._unavailable("the file is empty: it is being written, perhaps")
        try:
            address = f"file:{quote(self.path)}?mode=ro"
            opened = sqlite3.connect(address, uri=True, timeout=self.timeout_seconds, isolation_level=None)
            with closing(opened) as connection:
                yield connection
        except sqlite3.Error as error:
            if match := re.match(r"Could not decode to UTF-8 column '(.*?)' with text", str(error)):
                raise SourceRefused(
                    f'column "{match[1]}" of a table of source "{self.source}" holds a text that is not in UTF-8',
                    code="HW-366",
                    detail=f'"{self.path}": SQLite takes any bytes for a text, and Spark does not',
                    hint="find it at the source and correct it",
                ) from None
            raise self._unavailable(f"{type(error).__name__}: {error}") from error

    def _unavailable(self, detail: str) -> SourceUnavailable:
        return SourceUnavailable(
            f'the database of source "{self.source}" cannot be read now',
            code="HW-354",
            detail=f'"{self.path}": {detail}',
            hint="it is tried again by itself; check that the file is there and may be read",
        )


@dataclass(frozen=True, slots=True)
class SqliteMoment:
    """One read transaction."""

    connection: sqlite3.Connection

    def describe(self, names: Sequence[RelationName]) -> Inspection:
        """Describe tables and views as the transaction shows them."""
        return _described(self.connection, names)

    def rows(self, relation: Relation) -> Iterator[pa.Table]:
        """Yield the rows of a table."""
        # with its table's name in front: SQLite takes a name in quotes that it does not know for a text
        names = ", ".join(f"r.{_quoted(name)}" for name in relation.column_names) or "NULL"
        cursor = self.connection.execute(f"SELECT {names} FROM {_quoted(relation.name.name)} AS r")
        schema = relation.arrow_schema()
        while lines := cursor.fetchmany(BATCH_ROWS):
            arrays = [
                typed([_VALUES[_kind(column)](value, column, relation.name) for value in values], column, relation.name)
                for column, values in zip(relation.columns, zip(*lines, strict=True), strict=True)
            ]
            yield pa.Table.from_arrays(arrays, schema=schema)

    def require_same(self) -> None:
        """Do nothing: a transaction shows one time."""


def _described(connection: sqlite3.Connection, names: Sequence[RelationName]) -> Inspection:
    relations: list[Relation] = []
    refusals: list[HeadwaterError] = []
    for name in names:
        columns = connection.execute('SELECT name, type, pk, "notnull" FROM pragma_table_info(?)', [name.name])
        found = columns.fetchall() if name.schema == DEFAULT_SCHEMA else []
        if found:
            relations.append(_relation(name, found, _is_strictly_keyed(connection, name)))
        else:
            tables = connection.execute("SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') ORDER BY name")
            there = ", ".join(one for (one,) in tables) or "none"
            refusals.append(missing_relation(name, f"tables of the database: {there}"))
    return Inspection(relations=tuple(relations), owner_sql=(), may_run_owner_sql=True, refusals=tuple(refusals))


def _is_strictly_keyed(connection: sqlite3.Connection, name: RelationName) -> bool:
    """Tell whether the primary key holds no NULL although its columns do not say so, as WITHOUT ROWID does."""
    found = connection.execute("SELECT wr FROM pragma_table_list(?)", [name.name]).fetchone()
    return bool(found and found[0])


def spark_type(declared: str) -> str | None:
    """Return the Spark type of a column that is declared with a type, or None if that does not say enough.

    >>> spark_type("INTEGER"), spark_type("VARCHAR(20)"), spark_type("DECIMAL(12, 2)"), spark_type("")
    ('bigint', 'string', 'decimal(12,2)', None)
    """
    text = declared.upper().strip()
    if match := re.fullmatch(r"(?:DECIMAL|NUMERIC)\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)", text):
        digits, scale = int(match[1]), int(match[2] or 0)
        return f"decimal({digits},{scale})" if scale <= digits <= _EXACT_DIGITS else None
    for words, kind in _BY_WORD:
        if any(word in text for word in words):
            return kind
    return None


_BY_WORD = (
    (("BOOL",), "boolean"),
    (("DATETIME", "TIMESTAMP"), "timestamp_ntz"),
    (("DATE",), "date"),
    (("INT",), "bigint"),
    (("CHAR", "CLOB", "TEXT"), "string"),
    (("BLOB",), "binary"),
    (("REAL", "FLOA", "DOUB"), "double"),
)


def _relation(name: RelationName, found: Sequence[tuple[str, str, int, int]], is_strictly_keyed: bool) -> Relation:
    columns, unusable, kinds = [], [], {}
    for column, declared, _, _ in found:
        kinds[column] = kind = spark_type(declared)
        if kind is None:
            unusable.append((column, declared or "no type"))
        else:
            columns.append(Column(name=column, type=kind, native=declared))
    keyed = sorted((place, column, declared, not_null) for column, declared, place, not_null in found if place)
    is_rowid = len(keyed) == 1 and keyed[0][2].upper() == "INTEGER"
    is_key = all(is_strictly_keyed or is_rowid or not_null for _, _, _, not_null in keyed)
    key = tuple(column for _, column, _, _ in keyed) if is_key else ()
    return Relation(
        name=name,
        columns=tuple(columns),
        unusable=tuple(unusable),
        key=key if all(kinds[column] for column in key) else (),
        not_null=frozenset({column for column, _, _, not_null in found if not_null and kinds[column]} | {*key}),
    )


def _kind(column: Column) -> str:
    return column.type.partition("(")[0]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


Read = Callable[[Any, Column, RelationName], Any]


def _of(*kinds: type) -> Read:
    def read(value: Any, column: Column, relation: RelationName) -> Any:
        if value is None or type(value) in kinds:
            return value
        raise wrong_value(value, column, relation)

    return read


def _boolean(value: Any, column: Column, relation: RelationName) -> bool | None:
    if value is None or (type(value) is int and value in (0, 1)):
        return None if value is None else bool(value)
    raise wrong_value(value, column, relation)


def _double(value: Any, column: Column, relation: RelationName) -> float | None:
    """Return a float. SQLite gives whole numbers of a column without affinity as integers."""
    if value is None or type(value) is float:
        return value
    if type(value) is int and int(float(value)) == value:
        return float(value)
    raise wrong_value(value, column, relation)


def _decimal(value: Any, column: Column, relation: RelationName) -> Decimal | None:
    if value is None:
        return None
    scale = int(column.type.rstrip(")").partition(",")[2])
    if type(value) in (int, float):
        try:
            exact = Decimal(repr(value))
            if exact == (rounded := exact.quantize(Decimal(1).scaleb(-scale))):
                return rounded
        except InvalidOperation:
            pass
    raise wrong_value(value, column, relation)


def _moment(read: Callable[[str], Any], pattern: str) -> Read:
    def parse(value: Any, column: Column, relation: RelationName) -> Any:
        if value is None:
            return None
        if type(value) is str and re.fullmatch(pattern, value, re.ASCII):
            try:
                return read(value)
            except ValueError:
                pass
        raise wrong_value(value, column, relation)

    return parse


_VALUES: Mapping[str, Read] = {
    "boolean": _boolean,
    "bigint": _of(int),
    "double": _double,
    "string": _of(str),
    "binary": _of(bytes),
    "decimal": _decimal,
    "date": _moment(date.fromisoformat, r"\d{4}-\d\d-\d\d"),
    "timestamp_ntz": _moment(datetime.fromisoformat, r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?"),
}
