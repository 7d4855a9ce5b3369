"""By which rows of the log what was staged of a relation is brought to a tick.

Chunks that saw the same are corrected alike: by the transactions up to the tick that they did not see, and by those
after it that they saw, taken back. Which ticks those are is known from the log's records, of which a limited number is
looked at together. Their rows are read into this process where the log's files hold few rows for these ticks, and else
by Spark: a large relation that changes much while it is read has more of them than this process should hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import or_
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

from headwater.changelog.change_log import ChangeLog
from headwater.deltas.lookup import SawTransactions
from headwater.deltas.on_arrow import ArrowBag
from headwater.deltas.on_spark import passing, quoted, to_arrow, to_dataframe
from headwater.engine.bootstrap.staging import StagedChunk, StagedRelation
from headwater.engine.state.accepted_log import AcceptedLog, held_changes
from headwater.errors import SourceUnavailable
from headwater.model.position import Tick
from headwater.model.relation import COUNT, TICK, Relation, arrow_type
from headwater.model.transaction import Seen
from headwater.sources.source import Chunk
from headwater.storage.spark_files import spark_schema
from headwater.warehouse.log_rows import spark_rows

_TICKS_TOGETHER = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TickSpan:
    """The ticks with after < tick <= upto."""

    after: Tick
    upto: Tick


def spans_of(ticks: Iterable[tuple[Tick, bool]]) -> Iterator[TickSpan]:
    """Yield the spans of the ticks that are marked. Ticks in between that are not named do not matter.

    >>> marked = [(Tick(2), True), (Tick(5), True), (Tick(6), False), (Tick(9), True)]
    >>> [(span.after, span.upto) for span in spans_of(marked)]
    [(1, 5), (8, 9)]
    """
    current: TickSpan | None = None
    for tick, is_marked in ticks:
        if is_marked:
            current = TickSpan(after=Tick(tick - 1), upto=tick) if current is None else replace(current, upto=tick)
        elif current is not None:
            yield current
            current = None
    if current is not None:
        yield current


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed:
    """The ticks that a sight lacks for a tick, and those after it that it shows already."""

    lacking: tuple[TickSpan, ...]
    early: tuple[TickSpan, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MissedTicks:
    """Compares sights of sources with the log, for one tick: each once, however many relations were read in it."""

    log: ChangeLog
    tick: Tick
    _found: dict[tuple[str, Seen], Missed] = field(default_factory=dict)

    def of(self, source: str, seen: Seen) -> Missed:
        """Return what a sight of a source lacks, and what it shows too early."""
        if (source, seen) not in self._found:
            before = self._known(source, seen, self.log.horizon(), self.tick)
            later = self._known(source, seen, self.tick, self.log.last_tick)
            self._found[source, seen] = Missed(
                lacking=tuple(spans_of((tick, not is_seen) for tick, is_seen in before)),
                early=tuple(spans_of(later)),
            )
        return self._found[source, seen]

    def _known(self, source: str, seen: Seen, after: Tick, upto: Tick) -> Iterator[tuple[Tick, bool]]:
        accepted, sight = AcceptedLog(self.log, {}, held_changes(self.log)), SawTransactions(seen=seen)
        for start in range(after, upto, _TICKS_TOGETHER):
            yield from accepted.known(source, sight, Tick(start), Tick(min(start + _TICKS_TOGETHER, upto)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sight:
    """What chunks that saw the same missed, and the key ranges that they are together."""

    missed: Missed
    ranges: tuple[Chunk, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrections:
    """The rows of the log that bring a staged relation to a tick."""

    spark: SparkSession
    log: ChangeLog
    staged: StagedRelation
    sights: tuple[_Sight, ...]
    is_few: bool
    """Whether they are few enough to be held in this process."""

    @classmethod
    def find(cls, spark: SparkSession, staged: StagedRelation, missed: MissedTicks, few: int) -> Self:
        """Compare what the chunks saw with the log. No rows are read."""
        source = staged.relation.name.source
        sights = tuple(_Sight(missed=missed.of(source, seen), ranges=staged.ranges(seen)) for seen in staged.sights)
        spans = [span for sight in sights for span in (*sight.missed.lacking, *sight.missed.early)]
        is_few = not spans or missed.log.most_rows(*_around(spans)) <= few
        return cls(spark=spark, log=missed.log, staged=staged, sights=sights, is_few=is_few)

    def require_untruncated(self) -> None:
        """Refuse a relation that was truncated after it was read: the log does not say which rows that took."""
        if self._is_truncated():
            raise SourceUnavailable(
                f"{self.staged.relation.name} was truncated while it was being read",
                code="HW-535",
                hint="it is read again by itself",
            )

    def _is_truncated(self) -> bool:
        lacking = [span for sight in self.sights for span in sight.missed.lacking]
        if self.is_few:
            return any(pc.any(pc.equal(self._held(span)[COUNT], 0)).as_py() for span in lacking)
        marks = self._logged().where(_is_in(lacking) & (F.col(COUNT) == 0))
        return bool(to_arrow(marks.limit(1)).num_rows)

    def untouched(self) -> tuple[StagedChunk, ...]:
        """Return the chunks that need no correction, as far as that is known."""
        if not self.is_few:
            return ()
        found = self._few_rows()
        if not found.num_rows:
            return self.staged.chunks
        if not self.staged.is_in_ranges:
            return ()
        return tuple(one for one in self.staged.chunks if not self.staged.in_chunk(found, one.chunk).num_rows)

    def rows(self) -> DataFrame | None:
        """Return the signed rows: the wanted columns and `_count`. None if there are none, as far as that is known."""
        if self.is_few:
            found = self._few_rows()
            return self._typed(to_dataframe(self.spark, found)) if found.num_rows else None
        is_whole, relation = self.staged.is_of_one_sight, self.staged.relation
        signed = F.lit(None).cast("bigint")
        for sight in self.sights:
            is_here = F.lit(True) if is_whole else _in_ranges(relation, sight.ranges)
            signed = F.when(is_here & _is_in(sight.missed.lacking), F.col(COUNT)).otherwise(signed)
            signed = F.when(is_here & _is_in(sight.missed.early), -F.col(COUNT)).otherwise(signed)
        rows = self.staged.rows
        is_left_out = F.coalesce(passing(rows.without), F.lit(False))
        found = self._logged().where(passing(rows.of) & ~is_left_out).withColumn(COUNT, signed)
        return self._typed(found.where(F.col(COUNT).isNotNull()))

    def _typed(self, rows: DataFrame) -> DataFrame:
        """Return rows in the types of what was staged: handed to Spark, timestamps without a zone have one."""
        schema = spark_schema(self.staged.relation.arrow_schema(self.staged.wanted))
        columns = zip(quoted(self.staged.wanted), schema, strict=True)
        return rows.select(*(F.col(name).cast(one.dataType).alias(one.name) for name, one in columns), COUNT)

    def _few_rows(self) -> pa.Table:
        return pa.concat_tables(self._few_parts())

    def _few_parts(self) -> Iterator[pa.Table]:
        """Yield the rows part by part, each in the ranges of its sight."""
        yield self._held(TickSpan(after=self.log.last_tick, upto=self.log.last_tick))
        for sight in self.sights:
            for span in sight.missed.lacking:
                yield self.staged.within(self._held(span), sight.ranges)
            for span in sight.missed.early:
                yield ArrowBag(self.staged.within(self._held(span), sight.ranges)).negated().table

    def _held(self, span: TickSpan) -> pa.Table:
        return self.log.rows(self.staged.relation.name, self.staged.wanted, span.after, span.upto)

    def _logged(self) -> DataFrame:
        spans = [span for sight in self.sights for span in (*sight.missed.lacking, *sight.missed.early)]
        after, upto = _around(spans)
        return spark_rows(self.spark, self.log, self.staged.relation.name, self.staged.wanted, after=after, upto=upto)


def _around(spans: Sequence[TickSpan]) -> tuple[Tick, Tick]:
    return min(span.after for span in spans), max(span.upto for span in spans)


def _is_in(spans: Iterable[TickSpan]) -> Column:
    tests = ((F.col(TICK) > span.after) & (F.col(TICK) <= span.upto) for span in spans)
    return reduce(or_, tests, F.lit(False))


def _in_ranges(relation: Relation, ranges: Iterable[Chunk]) -> Column:
    return reduce(or_, (_in_range(relation, one) for one in ranges), F.lit(False))


def _in_range(relation: Relation, chunk: Chunk) -> Column:
    """Return the test that `StagedRelation.within` makes, of a key whose order we can repeat."""
    assert chunk.column is not None, "only key ranges are read in several snapshots"
    [name] = quoted([chunk.column])
    key, kind = F.col(name), relation.column(chunk.column).type
    inside = F.lit(True)
    if chunk.low is not None:
        inside &= key > _bound(chunk.low, kind)
    if chunk.high is not None:
        inside &= key <= _bound(chunk.high, kind)
    return F.coalesce(inside, F.lit(chunk.low is None))


def _bound(text: str, kind: str) -> Column:
    """Return a bound as Arrow understands it: by its number, which no calendar and no time zone changes."""
    value = pa.scalar(text).cast(arrow_type(kind))
    match kind:
        case "date":
            return F.date_from_unix_date(F.lit(value.cast(pa.int32()).as_py()))
        case "timestamp" | "timestamp_ntz":
            return F.timestamp_micros(F.lit(value.cast(pa.int64()).as_py())).cast(kind)
        case _:
            return F.lit(value.as_py()).cast(kind)
