"""What the contract of sources needs of a database: tables, users who write, and values that are hard to keep."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Protocol, TypeAlias

from headwater.model.relation import RelationName
from headwater.sources.source import Source

SOURCE = "shop"
"""The name under which the contract's views would know the source."""

Row: TypeAlias = tuple[Any, ...]
Bag: TypeAlias = Counter[Row]
Changes: TypeAlias = Mapping[str, Mapping[Row, int]]
"""What a transaction does, by table: how many copies of a row come, or go where the number is negative."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table that a test needs: its columns with the Spark types that they are read as, and its primary key."""

    name: str
    columns: tuple[tuple[str, str], ...]
    key: tuple[str, ...] = ()

    @property
    def relation(self) -> RelationName:
        """The name of its relation, in the source's default schema."""
        return RelationName(source=SOURCE, name=self.name)


class OpenTransaction(Protocol):
    """A transaction whose changes are made and not committed."""

    def commit(self) -> None:
        """Commit it."""
        ...

    def roll_back(self) -> None:
        """Give it up."""
        ...


class DatabaseUnderTest(Protocol):
    """The database behind a source: what its owner and its users do.

    Where each table has a log of its own, what is done to several tables is several transactions.

    One that lets rows share a key says `enforces_keys = False`: its relations have none.
    """

    @property
    def types(self) -> frozenset[str]:
        """The Spark types that its columns can be read as, among those of `EXTREMES`."""
        ...

    def create(self, table: Table) -> None:
        """Make an empty table."""
        ...

    def connect(self) -> Source:
        """Return a new client of the database, as another process would have it, called `SOURCE`."""
        ...

    def commit(self, changes: Changes) -> None:
        """Commit a transaction."""
        ...

    def begin(self, changes: Changes) -> OpenTransaction:
        """Make changes in one transaction. It does not wait: no other one touches the same rows."""
        ...

    def truncate(self, table: str) -> bool:
        """Empty a table as a whole, and return True, or False if the database has no statement for that."""
        ...

    def alter(self, table: str) -> bool:
        """Change a table so that its rows are others, without telling which. False if that cannot happen there."""
        ...

    def replace_log(self) -> bool:
        """Replace everything by another database with another log, under the same address. False if that is too hard.

        It has as many transactions as the one before.
        """
        ...

    def run(self, statement: str) -> None:
        """Run what the source says the owner has to run."""
        ...


ITEMS = Table(name="items", columns=(("id", "bigint"), ("name", "string"), ("price", "decimal(12,2)")), key=("id",))
NOTES = Table(name="notes", columns=(("item", "bigint"), ("note", "string")))
OTHER = Table(name="other", columns=(("id", "bigint"),), key=("id",))

EXTREMES: Mapping[str, tuple[Any, ...]] = {
    "boolean": (True, False),
    "smallint": (-(1 << 15), 0, (1 << 15) - 1),
    "int": (-(1 << 31), 0, (1 << 31) - 1),
    "bigint": (-(1 << 63), 0, (1 << 63) - 1),
    "float": (0.0, -1.5, 16777216.0, float("inf"), float("-inf")),
    "double": (0.0, 0.1, 5e-324, 1.7976931348623157e308, -1.7976931348623157e308, float("inf"), float("-inf")),
    "decimal(12,2)": (Decimal("0.00"), Decimal("0.01"), Decimal("9999999999.99"), Decimal("-9999999999.99")),
    "decimal(38,0)": (Decimal(0), Decimal(10**38 - 1), Decimal(-(10**38) + 1)),
    "string": ("", " ", "a ", "A", "a", "äöü", "\U0001f30a", "x" * 10_000, "line\nbreak\ttab", "'\"\\", "NULL"),
    "binary": (b"", b"\x00", b"\xff\x00", bytes(range(256))),
    "date": (date(1, 1, 1), date(1970, 1, 1), date(9999, 12, 31)),
    "timestamp": (
        datetime(1970, 1, 1, tzinfo=UTC),
        datetime(2026, 10, 25, 0, 30, 0, 1, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    ),
    "timestamp_ntz": (datetime(1970, 1, 1), datetime(2026, 10, 25, 2, 30, 0, 1), datetime(9999, 12, 31, 23, 59, 59)),  # noqa: DTZ001 — it has none
}
"""Values at the ends of every type, and such as are easily changed on the way."""
