"""Lookup: rows of a relation or segment under some keys, or all, or the first ones, and what was seen in reading them.

    RowRequest   relation, wanted columns, within (columns and keys), extent, order and limit
    RowResult    rows, and the sight: what the state held that they were read from

A lookup shows one state: a kept segment at a tick, a source as its snapshot saw it. The result says which, so that it
can be brought to another tick (`maintenance/rebase`). Everything that has rows answers the same request in the same
way: a source, a replica, a kept segment in memory, a stored table, a segment that is computed. What holds for all of
them is tested once, in `tests/contracts/test_lookups.py`:

1. Rows are a bag: a row that is there k times has the count k, in one entry or in several.
2. NULL is a key like any other. No keys find no rows; a request without keys finds all of them.
3. A key that no row has finds nothing. A key that occurs twice in a request counts once.
4. With a limit the result has at least the first `limit` rows of the order, in this order and netted, or all rows if
   they are fewer (`is_whole`).
5. Rows outside of the extent may be missing, or not: the caller leaves them out. To keys that are stored the result may
   have all rows (`has_all_rows`), all as its sight tells.

Of what kind the rows are is open: the bag is a type variable. A maintainer's bags are Arrow tables, tests and the lab
use plain Python, and a bag that stays on Spark or on disk is one more implementation of `SignedBag`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Generic, Protocol, TypeVar

from headwater.deltas.extent import EVERYTHING, Extent
from headwater.deltas.order import Order
from headwater.deltas.signed_bag import Keys, SignedBag
from headwater.model.position import Tick
from headwater.model.relation import RelationName
from headwater.model.transaction import Seen

B = TypeVar("B", bound=SignedBag)  # type: ignore[type-arg]  # of any keys: a type variable cannot be bound to another one
B_co = TypeVar("B_co", bound=SignedBag, covariant=True)  # type: ignore[type-arg]  # as above
K = TypeVar("K", bound=Keys)
K_co = TypeVar("K_co", bound=Keys, covariant=True)
K_contra = TypeVar("K_contra", bound=Keys, contravariant=True)

NO_TICK = Tick(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Restriction(Generic[K_co]):
    """Only rows whose `columns` hold one of the keys."""

    columns: tuple[str, ...]
    keys: K_co


@dataclass(frozen=True, slots=True, kw_only=True)
class RowRequest(Generic[K_co]):
    """The wanted columns of rows of a relation or segment: of those within a restriction, or of all.

    With a limit only the first rows are asked for. `extent` says which rows matter to the caller, in terms of the
    wanted columns.
    """

    relation: RelationName
    wanted: tuple[str, ...]
    within: Restriction[K_co] | None = None
    extent: Extent = EVERYTHING
    order: Order = ()
    limit: int | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that have keys, none if all rows are asked for."""
        return () if self.within is None else self.within.columns

    @property
    def keys(self) -> K_co | None:
        """The keys, None if all rows are asked for."""
        return None if self.within is None else self.within.keys

    @property
    def is_empty(self) -> bool:
        """Whether no row can be found, because there are no keys."""
        return self.within is not None and not self.within.keys.most

    def with_keys(self, keys: K) -> RowRequest[K]:
        """Return the same request under other keys."""
        assert self.within is not None, "a request for all rows has no keys"
        return self.restricted_to(Restriction(columns=self.columns, keys=keys))

    def restricted_to(self, within: Restriction[K] | None) -> RowRequest[K]:
        """Return the same request with another restriction."""
        return RowRequest(
            relation=self.relation,
            wanted=self.wanted,
            within=within,
            extent=self.extent,
            order=self.order,
            limit=self.limit,
        )


def restricted(columns: tuple[str, ...], keys: K | None) -> Restriction[K] | None:
    """Return the restriction of columns to keys. None, which is all rows, where columns or keys are missing."""
    return Restriction(columns=columns, keys=keys) if columns and keys is not None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class SawTransactions:
    """The rows were read in a source's snapshot, which saw a set of its transactions: all up to a tick, and others."""

    seen: Seen
    upto: Tick = NO_TICK


@dataclass(frozen=True, slots=True, kw_only=True)
class SawTicks:
    """The rows were read in a state of the warehouse: it saw exactly the transactions up to a tick."""

    upto: Tick


Sight = SawTransactions | SawTicks


class Origin(Enum):
    """Where rows were read."""

    VIEW = "the view"
    AUXILIARY_TABLE = "an auxiliary table"
    LINEAGE_VIEW = "a lineage view"
    SPLIT_LINEAGE = "a split lineage table"
    REPLICA = "a replica"
    SOURCE = "the source"
    COMPUTED = "computed"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowResult(Generic[B_co]):
    """The rows that a request found, and what was seen when they were read. Their stamps mean nothing.

    `is_whole` is False if a limit left rows out. `has_all_rows` is True if all rows are there although some keys were
    asked for, because that costs no more. `read_count` is how many rows were read to find these, where that is not the
    number of them. `seconds` is how long a source took to answer, and `byte_count` how much it sent.
    """

    rows: B_co
    sight: Sight
    origin: Origin = Origin.SOURCE
    is_whole: bool = True
    has_all_rows: bool = False
    read_count: int | None = None
    seconds: float = 0.0
    byte_count: int = 0

    def with_rows(self, rows: B) -> RowResult[B]:
        """Return the same of other rows."""
        return RowResult(
            rows=rows,
            sight=self.sight,
            origin=self.origin,
            is_whole=self.is_whole,
            has_all_rows=self.has_all_rows,
            read_count=self.read_count,
            seconds=self.seconds,
            byte_count=self.byte_count,
        )


class Lookup(Protocol[K_contra, B_co]):
    """Anything that has rows of relations or segments, in one state."""

    def lookup(self, requests: Sequence[RowRequest[K_contra]]) -> Sequence[RowResult[B_co]]:
        """Return the rows of each request, in the order of the requests.

        The requests do not depend on each other, so they may be answered at once. Raises `SourceUnavailable` if a
        source does not answer, and `NotReadable` if the state is not kept.
        """
        ...


def look_up(lookup: Lookup[K, B], request: RowRequest[K]) -> RowResult[B]:
    """Return the rows of one request."""
    [result] = lookup.lookup((request,))
    return result
