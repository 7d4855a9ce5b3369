"""Any database that SQLAlchemy knows, read in one transaction that sees one state where there is such a thing."""

from __future__ import annotations

import decimal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import pyarrow as pa

from headwater.errors import HeadwaterError, InvalidProject, LoginRefused, SourceUnavailable
from headwater.model.relation import DEFAULT_SCHEMA, Column, Relation, RelationName
from headwater.sources.net_changes import one_nan
from headwater.sources.polled.place import BATCH_ROWS, typed, wrong_value
from headwater.sources.source import Inspection, SourceSettings, missing_relation

try:
    import sqlalchemy as sa
    from sqlalchemy import types as sat
except ImportError as missing:
    raise InvalidProject(
        "a source with this url is read by SQLAlchemy, which is not installed",
        code="HW-361",
        detail='it is in the extra "polled", because SQLite and files are read without it',
        hint='pip install "headwater[polled]", and the driver that the url names',
    ) from missing

_ISOLATION: Mapping[str, str] = {
    "postgresql": "REPEATABLE READ",
    "mysql": "REPEATABLE READ",
    "mariadb": "REPEATABLE READ",
    "oracle": "SERIALIZABLE",
    "mssql": "SNAPSHOT",
    "cockroachdb": "SERIALIZABLE",
    "duckdb": "",
}
"""How a transaction sees one state, by the name of the dialect. Empty: it always does."""
_MOST_DIGITS = 38


@dataclass(frozen=True, slots=True)
class DatabasePlace:
    """See `headwater.sources.polled.place.Place`."""

    source: str
    settings: SourceSettings
    dialect: str

    @classmethod
    def at(cls, settings: SourceSettings) -> DatabasePlace:
        """Return the database that a URL names."""
        try:
            url = _address(settings)
            url.get_dialect().import_dbapi()
        except (sa.exc.ArgumentError, sa.exc.NoSuchModuleError, ImportError) as error:
            raise InvalidProject(
                f'the url of source "{settings.name}" names no database that SQLAlchemy can reach',
                code="HW-362",
                detail=f"{type(error).__name__}{_module_of(error)}",  # what it says of the url may show a password
                hint="write DIALECT+DRIVER://USER:${PASSWORD}@HOST/DATABASE, and install the driver",
            ) from None
        return cls(settings.name, settings, url.get_backend_name())

    @property
    def default_schema(self) -> str:
        """The schema that is looked at first."""
        return "."

    @property
    def _isolation(self) -> str | None:
        return _ISOLATION.get(self.dialect)

    def describe(self, names: Sequence[RelationName]) -> Inspection:
        """Describe tables and views."""
        with self._connected() as connection:
            return self.described(connection, names)

    def described(self, connection: sa.Connection, names: Sequence[RelationName]) -> Inspection:
        """Describe tables and views as a transaction shows them."""
        relations: list[Relation] = []
        refusals: list[HeadwaterError] = []
        inspector = sa.inspect(connection)
        for name in names:
            schema = None if name.schema == DEFAULT_SCHEMA else name.schema
            try:
                columns = inspector.get_columns(name.name, schema=schema)
                key = inspector.get_pk_constraint(name.name, schema=schema).get("constrained_columns", [])
            except sa.exc.NoSuchTableError:
                there = ", ".join(sorted(inspector.get_table_names(schema=schema))) or "none"
                refusals.append(missing_relation(name, f"tables of the database: {there}"))
                continue
            relations.append(_relation(name, columns, tuple(key)))
        warnings = [] if self._isolation is not None else [self._warning()]
        return Inspection(
            relations=tuple(relations),
            owner_sql=(),
            may_run_owner_sql=True,
            refusals=tuple(refusals),
            warnings=tuple(warnings),
        )

    def _warning(self) -> str:
        return (
            f'source "{self.source}" ({self.dialect}) is not known to show several tables at one moment: each of its '
            "tables is exact as it was read, and two of them may be of different moments"
        )

    @contextmanager
    def moment(self) -> Iterator[DatabaseMoment]:
        """Open a transaction that sees one state."""
        with self._connected(self._isolation or None) as connection, connection.begin():
            yield DatabaseMoment(self, connection)

    @contextmanager
    def _connected(self, isolation: str | None = None) -> Iterator[sa.Connection]:
        engine = sa.create_engine(_address(self.settings), poolclass=sa.pool.NullPool, hide_parameters=True)
        try:
            with engine.connect() as connection:
                yield connection.execution_options(isolation_level=isolation) if isolation else connection
        except sa.exc.OperationalError as error:
            raise self._unavailable(error) from None
        except sa.exc.DBAPIError as error:
            raise self._unavailable(error) from None
        finally:
            engine.dispose()

    def _unavailable(self, error: Exception) -> SourceUnavailable:
        """Return what failed, without what it says: a driver may put the address and its password into it."""
        kind = type(getattr(error, "orig", None) or error).__name__
        refused = LoginRefused if "Auth" in kind or "Password" in kind else SourceUnavailable
        return refused(
            f'source "{self.source}" ({self.dialect}) cannot be read now',
            code="HW-363",
            detail=f"its driver has raised {kind}",
            hint="it is tried again by itself; check the address, the account and its rights with the database's own "
            "client",
        )


@dataclass(frozen=True, slots=True)
class DatabaseMoment:
    """One transaction."""

    place: DatabasePlace
    connection: sa.Connection

    def describe(self, names: Sequence[RelationName]) -> Inspection:
        """Describe tables and views as the transaction shows them."""
        return self.place.described(self.connection, names)

    def rows(self, relation: Relation) -> Iterator[pa.Table]:
        """Yield the rows of a table."""
        schema = None if relation.name.schema == DEFAULT_SCHEMA else relation.name.schema
        columns: list[sa.ColumnClause[Any]] = [sa.column(name) for name in relation.column_names]
        query = sa.select(*columns).select_from(sa.table(relation.name.name, schema=schema))
        result = self.connection.execution_options(stream_results=True).execute(query)
        arrow = relation.arrow_schema()
        while lines := result.fetchmany(BATCH_ROWS):
            arrays = [
                one_nan(
                    pa.chunked_array(
                        [typed([_plain(one, column, relation.name) for one in values], column, relation.name)]
                    )
                )
                for column, values in zip(relation.columns, zip(*lines, strict=True), strict=True)
            ]
            yield pa.Table.from_arrays(arrays, schema=arrow)

    def require_same(self) -> None:
        """Do nothing: a transaction shows one time, where there is such a thing."""


def _module_of(error: Exception) -> str:
    """Return which module is missing, if that is what is wrong."""
    return f": {error.name}" if isinstance(error, ImportError) and error.name else ""


def _address(settings: SourceSettings) -> sa.URL:
    """Return the URL, with the drivers that come with Headwater where it names none."""
    url = sa.make_url(settings.url())
    return url.set(drivername="postgresql+psycopg") if url.drivername in {"postgresql", "postgres"} else url


def _relation(name: RelationName, found: Sequence[Any], key: tuple[str, ...]) -> Relation:
    columns: list[Column] = []
    unusable: list[tuple[str, str]] = []
    for one in found:
        kind = _spark_type(one["type"])
        native = type(one["type"]).__name__.lower()
        if kind is None:
            unusable.append((one["name"], native))
        else:
            columns.append(Column(name=one["name"], type=kind, native=native))
    held = {column.name for column in columns}
    return Relation(
        name=name,
        columns=tuple(columns),
        unusable=tuple(unusable),
        key=key if set(key) <= held else (),
        not_null=frozenset(one["name"] for one in found if not one.get("nullable", True) and one["name"] in held),
    )


def _spark_type(kind: Any) -> str | None:
    """Return the Spark type of a column, or None if it cannot be held."""
    if isinstance(kind, sat.Numeric) and not isinstance(kind, sat.Float):
        digits, scale = kind.precision, kind.scale or 0
        return f"decimal({digits},{scale})" if digits and scale <= digits <= _MOST_DIGITS else None
    if isinstance(kind, sat.DateTime):
        return "timestamp" if kind.timezone else "timestamp_ntz"
    if isinstance(kind, sat.Integer) and getattr(kind, "unsigned", False):
        return "decimal(20,0)"
    return next((name for name, kinds in _TYPES if isinstance(kind, kinds)), None)


_TYPES: tuple[tuple[str, tuple[type, ...]], ...] = (
    ("boolean", (sat.Boolean,)),
    ("smallint", (sat.SmallInteger,)),
    ("bigint", (sat.BigInteger,)),
    ("int", (sat.Integer,)),
    ("double", (sat.Float,)),
    ("string", (sat.String, sat.Uuid)),
    ("binary", (sat.LargeBinary,)),
    ("date", (sat.Date,)),
)


def _plain(value: Any, column: Column, relation: RelationName) -> Any:
    """Return a value as Arrow takes it. Drivers differ in what they return for one type."""
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, memoryview | bytearray):
        return bytes(value)
    if isinstance(value, datetime) and column.type == ("timestamp" if value.tzinfo is None else "timestamp_ntz"):
        raise wrong_value(value, column, relation)  # only one of them says in which zone it is
    if isinstance(value, decimal.Decimal) and column.type in {"double", "float"}:
        return float(value)
    if isinstance(value, int) and column.type.startswith("decimal"):
        return decimal.Decimal(value)
    return value
