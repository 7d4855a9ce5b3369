"""Run a batch's queries on Spark, and choose in which form their results are kept: held here, or stored in files.

    held      up to `held_rows` entries: Arrow in, Arrow out, one small job
    stored    more: frames in, data files out, which executors write where they stay

The form is chosen before a query runs, by how many entries it takes. What is written is counted, and held after all if
it is little: a step that sums much up gives little, and the steps above it need no large jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

from headwater.deltas.on_arrow import ArrowBag
from headwater.deltas.on_spark import collect_few, large_session, quoted, run_stamped, select_over, to_arrow
from headwater.deltas.stored_bag import UNKNOWN, Bag, StoredBag, StoredKeys, as_frame, as_stored, held
from headwater.fail_points import reach
from headwater.maintenance.rebase import refuse_negative
from headwater.model.position import Tick
from headwater.model.relation import COUNT, TICK
from headwater.storage.data_file import write_rows
from headwater.storage.few_rows import read_in_parts
from headwater.storage.spark_files import spark_schema, write_files
from headwater.storage.stored_rows import of_files, write_bag

KEYS_PER_PART = 20_000
"""The most keys that a source is asked for at a time."""
_IMPOSSIBLE = "rows that would exist fewer than zero times: "

Rows: TypeAlias = pa.Table | DataFrame
"""What a query reads, held or on Spark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Runner:
    """Spark, up to how many entries are held, and the folder for results that no table keeps."""

    spark: SparkSession
    held_rows: int
    scratch: str
    _texts: dict[Hashable, tuple[object, str]] = field(default_factory=dict)

    def text(self, view: object, further: Hashable, write: Callable[[], str]) -> str:
        """Return the text of a view's law. It is the same in every batch, and writing it takes longer than to find it.

        `further` is what it depends on besides the view, which is kept so that no other one is taken for it.
        """
        key = (id(view), further)
        if key not in self._texts:
            self._texts[key] = view, write()
        return self._texts[key][1]

    def formed(self, bag: Bag) -> Bag:
        """Return a bag in the form that its size asks for."""
        return as_stored(large_session(self.spark), bag) if bag.most > self.held_rows else bag

    def run(
        self,
        sql: str,
        tables: Mapping[str, Rows],
        schema: pa.Schema,
        *,
        shifted: int = 0,
        folder: str | None = None,
        is_large: bool = False,
    ) -> Bag:
        """Return what a query over tables gives, by the names that it uses, with its ticks shifted.

        Many rows are written below a folder. `is_large` says that few rows may give many.
        """
        few = {name: rows for name, rows in tables.items() if isinstance(rows, pa.Table)}
        if len(few) == len(tables) and not is_large:
            found = run_stamped(self.spark, sql, few, will_come_again=True)
            return ArrowBag(found.select(schema.names).cast(schema)).shifted(shifted)
        session = large_session(self.spark)
        frames = {name: as_frame(session, rows) for name, rows in tables.items()}
        found_rows = select_over(session, sql, frames)
        moved = found_rows.withColumn(TICK, F.col(TICK) + F.lit(shifted).cast("bigint")) if shifted else found_rows
        return self.written(moved, schema, folder)

    def number(self, sql: str, tables: Mapping[str, Rows]) -> int:
        """Return the one number that a query gives."""
        session = large_session(self.spark)
        frames = {name: as_frame(session, rows) for name, rows in tables.items()}
        return int(to_arrow(select_over(session, sql, frames)).column(0)[0].as_py())

    def written(self, frame: DataFrame, schema: pa.Schema, folder: str | None = None) -> Bag:
        """Return what a frame gives: held if it is little, and else in files below a folder."""
        try:
            found = write_bag(frame, schema, folder or self.scratch, self.held_rows)
        except PySparkException as error:
            _raise_impossible(error)
            raise
        reach("rows written")
        return found

    def whole(self, sql: str, tables: Mapping[str, Rows], schema: pa.Schema, tick: Tick) -> Bag:
        """Return the rows that a query over plain rows gives, stamped with a tick. Stored, if stored ones are read."""
        few = {name: rows for name, rows in tables.items() if isinstance(rows, pa.Table)}
        if len(few) == len(tables):
            found = run_stamped(self.spark, sql, few, will_come_again=True)
            return ArrowBag.of_plain(found.select(schema.names).cast(schema), tick)
        session = large_session(self.spark)
        given = select_over(session, sql, {name: as_frame(session, rows) for name, rows in tables.items()})
        counted = (
            given.select(*quoted(schema.names)).to(spark_schema(schema)).withColumn(COUNT, F.lit(1).cast("bigint"))
        )
        return StoredBag.of_counted(counted, schema, tick, UNKNOWN)

    def settled(self, bag: Bag, folder: str | None = None) -> Bag:
        """Return a bag whose entries are computed."""
        if (stored := bag.stored) is None or stored.files is not None:
            return bag
        return self.written(stored.frame, stored.schema, folder)

    def key_parts(self, keys: StoredKeys) -> Iterator[pa.Table]:
        """Yield keys in small tables."""
        files = write_files(keys.frame, self.scratch)
        yield from read_in_parts([f"{self.scratch}/{file.path}" for file in files], keys.schema, KEYS_PER_PART)

    def collected(self, bag: StoredBag) -> Bag:
        """Return a bag that is expected to be little: held if it is, and as it was otherwise."""
        few = collect_few(bag.frame, self.held_rows)
        return bag if few is None else ArrowBag(few.select(bag.schema.names).cast(bag.schema))


@dataclass(slots=True, kw_only=True)
class Spool:
    """Rows that come part by part: held as long as they are few, and else in files. Without a runner all are held.

    Files are below a folder, or where the runner has what no table keeps.
    """

    schema: pa.Schema
    runner: Runner | None
    folder: str | None = None
    _held: list[pa.Table] = field(default_factory=list)
    _files: list[str] = field(default_factory=list)
    _written: int = 0

    def add(self, rows: Bag) -> None:
        """Take rows that are computed: held, or in files, which stay where they are."""
        if (stored := rows.stored) is not None:
            assert stored.files is not None, "rows are computed before they are taken"
            self._files += stored.files
            self._written += stored.most
            return
        self._held.append(held(rows).table.select(self.schema.names).cast(self.schema))
        if self.runner is not None and sum(part.num_rows for part in self._held) > self.runner.held_rows:
            self._write(self.folder or self.runner.scratch)

    def bag(self) -> Bag:
        """Return all that was taken."""
        if not self._files or self.runner is None:
            return ArrowBag(pa.concat_tables([self.schema.empty_table(), *self._held]).combine_chunks())
        if self._held:
            self._write(self.folder or self.runner.scratch)
        return of_files(large_session(self.runner.spark), tuple(self._files), self.schema, self._written)

    def _write(self, folder: str) -> None:
        rows, self._held = pa.concat_tables(self._held), []
        self._files.append(f"{folder}/{write_rows(folder, rows, quick=True).path}")
        self._written += rows.num_rows


def existing(bag: Bag, relation: str, at: Tick) -> Bag:
    """Return a bag whose rows of a tick exist: that any would have to exist fewer than zero times is refused.

    Where rows are stored it is refused once they are computed.
    """
    if (stored := bag.stored) is None:
        old = held(bag).at([at]).table
        refuse_negative(pc.sum(pc.less(old[COUNT], 0)).as_py() or 0, relation, at)
        return bag
    impossible = F.raise_error(F.lit(f"{_IMPOSSIBLE}{at} {relation}"))
    count = F.when((F.col(TICK) == at) & (F.col(COUNT) < 0), impossible.cast("bigint")).otherwise(F.col(COUNT))
    return stored.of_frame(stored.frame.withColumn(COUNT, count))


def _raise_impossible(error: PySparkException) -> None:
    """Raise what an error of Spark means, if it is that rows do not exist."""
    _, said, rest = str(error).partition(_IMPOSSIBLE)
    if said:
        tick, relation, *_ = rest.split()
        refuse_negative(1, relation, Tick(int(tick)))
