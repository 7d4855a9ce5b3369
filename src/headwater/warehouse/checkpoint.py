"""The plain rows of a kept table as of one tick, replaced as a whole.

Invariant: the rows and the tick they are of change in one Delta commit; a checkpoint never goes back to an older tick.

A checkpoint whose rows are looked up by some columns has them first, and its rows lie in their order, in files whose
bounds are known: looking up a few keys reads the few files that may hold them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import pyarrow as pa
import pyarrow.compute as pc

from headwater.errors import NotReadable
from headwater.fail_points import reach
from headwater.model.position import Tick
from headwater.storage.data_file import DataFile, write_rows
from headwater.storage.fenced_table import FencedTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

AT = "headwater"
ORDERED = "headwater.ordered"
"""The number that tells by how many of its first columns the rows lie in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointSnapshot:
    """The data files of a checkpoint and the tick their rows are of, seen together."""

    tick: Tick
    files: tuple[str, ...]
    version: int


class Checkpoint:
    """A Delta table that holds one state."""

    def __init__(self, table: FencedTable) -> None:
        """Wrap an open table. Use `open`."""
        self.table = table

    @classmethod
    def open(cls, path: str) -> Self:
        """Open the checkpoint at its newest version."""
        return cls(FencedTable.open(path))

    def order(self) -> tuple[str, ...]:
        """Return the columns by which the rows are sorted. None if they are not sorted."""
        return tuple(self.table.schema().names[: self.table.number(ORDERED) or 0])

    def tick(self) -> Tick | None:
        """Return the tick the rows are of, or None if none was written yet."""
        self.table.reload()
        number = self.table.number(AT)
        return None if number is None else Tick(number)

    def snapshot(self, keys: pa.Table | None = None) -> CheckpointSnapshot:
        """Return the newest state written. With keys, of its files those that may hold rows with these values."""
        with self.table.lock:
            tick = self.tick()
            if tick is None:
                raise NotReadable(
                    "the table has no rows yet", code="HW-413", detail="it is being filled", hint="wait, then ask again"
                )
            files = self.table.files() if keys is None else self.table.files_holding(keys)
            return CheckpointSnapshot(tick=tick, files=tuple(files), version=self.table.version)

    def row_count(self) -> int:
        """Return how many rows are stored, without reading them."""
        return sum(int(entry["num_records"]) for entry in self.table.entries())

    def write(self, rows: pa.Table, at: Tick) -> bool:
        """Replace the rows by those of a later tick. Return False if the checkpoint is there already, or later."""
        schema = self.table.schema()
        order = self.order()
        typed = _sorted(rows.select(schema.names).cast(schema), order)
        return self._replace([write_rows(self.table.path, typed, bounded=order)] if rows.num_rows else [], at)

    def write_from_dataframe(self, frame: DataFrame, at: Tick) -> bool:
        """Replace the rows as `write` does, letting the executors write the data files."""
        from headwater.deltas.on_spark import quoted  # noqa: PLC0415 - readers need no Spark
        from headwater.storage.spark_files import write_files  # noqa: PLC0415 - as above

        ordered = frame.select(*quoted(self.table.schema().names))
        return self._replace(write_files(ordered, self.table.path, self.order()), at)

    def write_files(self, files: Sequence[DataFile], at: Tick) -> bool:
        """Replace the rows as `write` does by those of files that are in the table's folder already."""
        return self._replace(files, at)

    def _replace(self, files: Sequence[DataFile], at: Tick) -> bool:
        while (current := self.tick()) is None or current < at:
            reach("before checkpoint write")
            if self.table.register(files, numbers={AT: at}, instead_of=self.table.entries()):
                reach("after checkpoint write")
                return True
        return False


def _sorted(rows: pa.Table, order: Sequence[str]) -> pa.Table:
    """Return rows in the order of columns, NULL first. Nested values have no order in Arrow, and stay as they came."""
    keys = [(name, "ascending", "at_start") for name in order if not pa.types.is_nested(rows.schema.field(name).type)]
    return rows.take(pc.sort_indices(rows, sort_keys=keys)) if keys else rows
