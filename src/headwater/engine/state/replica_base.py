"""Where the rows of a replica's checkpoint are: in memory, with indexes, or cached on Spark where they are too many."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Protocol

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from headwater.deltas.indexed_rows import IndexedRows
from headwater.deltas.on_spark import quoted, to_arrow, to_dataframe, under_keys


class ReplicaBase(Protocol):
    """Signed entries with `_count`: a checkpoint's, and changes that were laid into it."""

    @property
    def is_bare(self) -> bool:
        """Whether no changes were laid into it, so that it is netted."""
        ...

    @property
    def indexed(self) -> tuple[tuple[str, ...], ...]:
        """The lists of columns that have an index."""
        ...

    def make_indexes(self, columns: Iterable[tuple[str, ...]]) -> None:
        """Make the indexes of some lists of columns now, if there are indexes at all."""
        ...

    def matching(self, names: list[str], columns: tuple[str, ...], keys: pa.Table | None) -> pa.Table:
        """Return the named columns of the entries under the keys, or of all."""
        ...

    def dataframe(self) -> DataFrame:
        """Return all entries."""
        ...

    def laid_into(self, changes: pa.Table, most_rows: int) -> ReplicaBase | None:
        """Return it with changes laid into it; None if these are few, or it takes none."""
        ...

    def release(self, unless: ReplicaBase | None = None) -> None:
        """Give cached rows back, but for what another one still uses."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsInMemory:
    """The rows of a small replica; changes stay on top of it."""

    spark: SparkSession
    rows: IndexedRows
    is_bare: bool = True

    @property
    def indexed(self) -> tuple[tuple[str, ...], ...]:
        """The lists of columns that have an index."""
        return self.rows.indexed

    def make_indexes(self, columns: Iterable[tuple[str, ...]]) -> None:
        """Make the indexes of some lists of columns now."""
        self.rows.make_indexes(columns)

    def matching(self, names: list[str], columns: tuple[str, ...], keys: pa.Table | None) -> pa.Table:
        """Return the named columns of the entries under the keys, or of all."""
        return (self.rows.table if keys is None else self.rows.matching(columns, keys)).select(names)

    def dataframe(self) -> DataFrame:
        """Return all entries."""
        return to_dataframe(self.spark, self.rows.table)

    def laid_into(self, changes: pa.Table, most_rows: int) -> None:
        """Return None: changes are looked up in memory, too."""

    def release(self, unless: ReplicaBase | None = None) -> None:
        """Do nothing: nothing is cached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsOnSpark:
    """The rows of a large replica, and in `recent` those changes that were too many to be kept on top of it."""

    spark: SparkSession
    rows: DataFrame
    recent: DataFrame | None = None
    indexed: tuple[tuple[str, ...], ...] = ()

    @property
    def is_bare(self) -> bool:
        """Whether no changes were laid into it."""
        return self.recent is None

    def make_indexes(self, columns: Iterable[tuple[str, ...]]) -> None:
        """Do nothing: Spark looks at the key columns of all rows."""

    def matching(self, names: list[str], columns: tuple[str, ...], keys: pa.Table | None) -> pa.Table:
        """Return the named columns of the entries under the keys, or of all, by a Spark job."""
        del columns
        entries = self.dataframe() if keys is None else under_keys(self.spark, self.dataframe(), keys)
        return to_arrow(entries.select(*quoted(names)))

    def dataframe(self) -> DataFrame:
        """Return all entries."""
        return self.rows if self.recent is None else self.rows.unionByName(self.recent)

    def laid_into(self, changes: pa.Table, most_rows: int) -> RowsOnSpark | None:
        """Return it with changes in Spark's cache; None if they are few."""
        if changes.num_rows <= most_rows:
            return None
        added = to_dataframe(self.spark, changes)
        laid = (added if self.recent is None else self.recent.unionByName(added)).coalesce(1).persist()
        laid.count()
        return replace(self, recent=laid)

    def release(self, unless: ReplicaBase | None = None) -> None:
        """Give the cached rows back; of the base whose successor is given, only the changes."""
        if unless is None:
            self.rows.unpersist()
        if self.recent is not None:
            self.recent.unpersist()
