"""A relation's rows at a tick, from what one snapshot of its source showed later. Only the judge uses it.

Maintenance and readers have ways of their own to bring rows to a tick. A judge that used them would repeat their
mistakes, so this one shares nothing with them but the change log. It says the law in one grouping of the whole
relation, and takes as long as that takes:

    rows(t) = shown − Σ Δ(s) {seen, s > t} + Σ Δ(s) {not seen, s <= t}
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses

from headwater.changelog.change_log import ChangeLog
from headwater.errors import SourceUnavailable
from headwater.model.position import Tick
from headwater.model.relation import COUNT, TICK, RelationName
from headwater.model.transaction import Seen
from headwater.warehouse.log_rows import spark_rows

_TICKS_AT_ONCE = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationInSnapshot:
    """A relation as a snapshot showed it: plain rows of some of its columns, and which transactions were seen."""

    name: RelationName
    columns: tuple[str, ...]
    rows: DataFrame
    files: tuple[str, ...]
    """The data files that hold them."""
    seen: Seen


@dataclass(frozen=True, slots=True, kw_only=True)
class Sightings:
    """Which transactions of a source a snapshot saw: those of the ticks up to `last_seen`, but for a few."""

    last_seen: Tick
    unseen: tuple[Tick, ...]

    @classmethod
    def of(cls, snapshot: RelationInSnapshot, log: ChangeLog) -> Self:
        """Look at a source's transactions in the log, in parts. A tick of which a part was seen is refused.

        A source has several transactions in one tick where global transactions crossed, and the log does not tell
        their rows apart.
        """
        source, last = snapshot.name.source, log.last_tick
        after = Tick(max(log.horizon(), log.since(source)))
        last_seen, unseen = after, list[Tick]()  # what is older was seen
        while after < last:
            upto = Tick(min(after + _TICKS_AT_ONCE, last))
            accepted = log.transactions(source, after, upto)
            sightings = [(at, snapshot.seen.sees(one.identity, one.position.log)) for at, one in accepted]
            by_tick = dict(sightings)
            if any(by_tick[at] is not seen for at, seen in sightings):
                raise SourceUnavailable(
                    f'the snapshot of source "{source}" saw a part of a tick',
                    code="HW-539",
                    detail="it was taken between two of its transactions that became one tick",
                    hint="run the check again",
                )
            last_seen = max([last_seen, *(at for at, seen in by_tick.items() if seen)])
            unseen.extend(at for at, seen in by_tick.items() if not seen)
            after = upto
        return cls(last_seen=last_seen, unseen=tuple(at for at in unseen if at < last_seen))

    def oldest_correction(self, tick: Tick) -> Tick:
        """Return the tick after which the log is needed to get from the snapshot to a tick.

        >>> Sightings(last_seen=Tick(6), unseen=(Tick(5),)).oldest_correction(Tick(5))
        4
        """
        return min([tick, self.last_seen, *(Tick(at - 1) for at in self.unseen)])

    def corrected(self, rows: pa.Table, tick: Tick) -> pa.Table:
        """Return log rows with the counts that bring the snapshot to a tick: taken back, added, or left out.

        >>> rows = pa.table({"_tick": [3, 5, 6, 9], "_count": [1, 1, 1, 1]})
        >>> Sightings(last_seen=Tick(6), unseen=(Tick(5),)).corrected(rows, Tick(5)).to_pydict()
        {'_tick': [5, 6], '_count': [1, -1]}
        """
        ticks, none = rows[TICK], pa.array(self.unseen, pa.int64())
        seen = pc.and_(pc.less_equal(ticks, self.last_seen), pc.invert(pc.is_in(ticks, value_set=none)))
        later = pc.greater(ticks, tick)
        sign = pc.if_else(seen, pc.if_else(later, -1, 0), pc.if_else(later, 0, 1))
        signed = pc.multiply(rows[COUNT], sign)
        return rows.set_column(rows.column_names.index(COUNT), COUNT, signed).filter(pc.not_equal(sign, 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedRelation:
    """A relation as it was shown, with its signed rows from the log, read once for all ticks that are judged.

    What Spark keeps of them for the next tick is on disk: a long log is not held in memory.
    """

    snapshot: RelationInSnapshot
    changes: DataFrame
    sightings: Sightings

    @classmethod
    def read(cls, spark: SparkSession, snapshot: RelationInSnapshot, log: ChangeLog, since: Tick) -> Self:
        """Read what the log holds after a tick. No state before that tick can be asked for."""
        sightings = Sightings.of(snapshot, log)
        after = sightings.oldest_correction(since)
        changes = spark_rows(spark, log, snapshot.name, snapshot.columns, after=after, upto=log.last_tick)
        kept = replace(snapshot, rows=snapshot.rows.persist(StorageLevel.DISK_ONLY))
        return cls(snapshot=kept, changes=changes.coalesce(1).persist(StorageLevel.DISK_ONLY), sightings=sightings)

    def release(self) -> None:
        """Give the cached rows back."""
        self.snapshot.rows.unpersist()
        self.changes.unpersist()


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """How to get from what was shown to a tick: which ticks of the log to look at, and which of them were seen.

    Looked at are those of (after, upto]. Seen were those up to `last_seen`, but for the few in `unseen`.
    """

    after: Tick
    upto: Tick
    tick: Tick
    last_seen: Tick
    unseen: tuple[Tick, ...]

    def sign_sql(self) -> str:
        """Return by what to multiply the count of a log row: -1 takes it back, 1 adds it, 0 leaves it alone.

        >>> Correction(after=Tick(4), upto=Tick(6), tick=Tick(5), last_seen=Tick(6), unseen=(Tick(5),)).sign_sql()
        'CASE WHEN _tick <= 6 AND _tick NOT IN (0, 5) THEN IF(_tick > 5, -1, 0) ELSE IF(_tick > 5, 0, 1) END'
        """
        listed = ", ".join(str(tick) for tick in (0, *self.unseen))
        seen = f"{TICK} <= {self.last_seen} AND {TICK} NOT IN ({listed})"
        return f"CASE WHEN {seen} THEN IF({TICK} > {self.tick}, -1, 0) ELSE IF({TICK} > {self.tick}, 0, 1) END"


def correction(sightings: Sightings, tick: Tick) -> Correction:
    """Return how to get to a tick from what a snapshot saw.

    >>> correction(Sightings(last_seen=Tick(6), unseen=(Tick(5),)), Tick(5))
    Correction(after=4, upto=6, tick=5, last_seen=6, unseen=(5,))
    >>> correction(Sightings(last_seen=Tick(6), unseen=()), Tick(9))
    Correction(after=6, upto=9, tick=9, last_seen=6, unseen=())
    """
    return Correction(
        after=sightings.oldest_correction(tick),
        upto=max(tick, sightings.last_seen),
        tick=tick,
        last_seen=sightings.last_seen,
        unseen=sightings.unseen,
    )


def rolled_back(relation: LoggedRelation, tick: Tick) -> DataFrame:
    """Return a relation's plain rows at a tick. Reading them fails if a row would be there fewer than zero times."""
    snapshot, needed = relation.snapshot, correction(relation.sightings, tick)
    looked_at = (F.col(TICK) > needed.after) & (F.col(TICK) <= needed.upto)
    signed = F.col(COUNT) * F.expr(needed.sign_sql())
    corrections = relation.changes.where(looked_at).withColumn(COUNT, signed).drop(TICK)
    columns = [f"`{column}`" for column in snapshot.columns]
    both = snapshot.rows.select(*columns, F.lit(1).cast("bigint").alias(COUNT)).unionByName(corrections)
    counted = both.groupBy(*columns).agg(F.sum(COUNT).alias(COUNT)).where(F.col(COUNT) != 0)
    impossible = F.raise_error(F.concat(F.lit(f"{IMPOSSIBLE} {snapshot.name}: "), F.to_json(F.struct(*columns))))
    times = F.when(F.col(COUNT) < 0, impossible).otherwise(F.array_repeat(F.lit(0), F.col(COUNT).cast("int")))
    return counted.select(*columns, F.explode(times)).select(*columns)


IMPOSSIBLE = "the change log takes away a row that was not there:"
"""How the error begins that Spark raises where source and change log contradict each other."""
