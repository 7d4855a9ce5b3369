"""A relation's rows at a tick, from what one snapshot of its source showed later. Only the judge uses it.

Maintenance and readers have ways of their own to bring rows to a tick. A judge that used them would repeat their
mistakes, so this one shares nothing with them but the change log. It says the law in one grouping of the whole
relation, and takes as long as that takes:

    rows(t) = shown − Σ Δ(s) {seen, s > t} + Σ Δ(s) {not seen, s <= t}
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses

from headwater.changelog.change_log import ChangeLog
from headwater.errors import SourceUnavailable
from headwater.model.position import Tick
from headwater.model.relation import COUNT, TICK, RelationName
from headwater.model.transaction import Seen
from headwater.warehouse.log_rows import spark_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationInSnapshot:
    """A relation as a snapshot showed it: plain rows of some of its columns, and which transactions were seen."""

    name: RelationName
    columns: tuple[str, ...]
    rows: DataFrame
    seen: Seen


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedRelation:
    """A relation as it was shown, with its signed rows from the log, read once for all ticks that are judged.

    `ticks` are those of the source's transactions, each with whether it was seen.
    """

    snapshot: RelationInSnapshot
    changes: DataFrame
    ticks: tuple[tuple[Tick, bool], ...]

    @classmethod
    def read(cls, spark: SparkSession, snapshot: RelationInSnapshot, log: ChangeLog, since: Tick) -> Self:
        """Read what the log holds after a tick. No state before that tick can be asked for."""
        sightings = _sightings(snapshot, log)
        after = min([since, *(Tick(at - 1) for at, seen in sightings if not seen)])
        changes = spark_rows(spark, log, snapshot.name, snapshot.columns, after=after, upto=log.last_tick)
        kept = replace(snapshot, rows=snapshot.rows.persist())
        return cls(snapshot=kept, changes=changes.coalesce(1).persist(), ticks=tuple(sightings))

    def release(self) -> None:
        """Give the cached rows back."""
        self.snapshot.rows.unpersist()
        self.changes.unpersist()


def _sightings(snapshot: RelationInSnapshot, log: ChangeLog) -> list[tuple[Tick, bool]]:
    """Return the ticks of a relation's source, in order, and whether they were seen. One that was half seen is refused.

    A source has several transactions in one tick where global transactions crossed, and the log does not tell their
    rows apart.
    """
    accepted = log.transactions(snapshot.name.source, log.horizon(), log.last_tick)
    sightings = [(at, snapshot.seen.sees(one.identity, one.position.log)) for at, one in accepted]
    by_tick = dict(sightings)
    if any(by_tick[at] is not seen for at, seen in sightings):
        raise SourceUnavailable(
            f'the snapshot of source "{snapshot.name.source}" saw a part of a tick',
            code="HW-539",
            detail="it was taken between two of its transactions that became one tick",
            hint="run the check again",
        )
    return list(by_tick.items())


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


def correction(ticks: Sequence[tuple[Tick, bool]], tick: Tick) -> Correction:
    """Return how to get to a tick, given every tick of the source's transactions, in order, and whether it was seen.

    >>> correction([(Tick(3), True), (Tick(5), False), (Tick(6), True), (Tick(9), False)], Tick(5))
    Correction(after=4, upto=6, tick=5, last_seen=6, unseen=(5,))
    >>> correction([(Tick(3), True), (Tick(6), True), (Tick(8), False)], Tick(9))
    Correction(after=7, upto=9, tick=9, last_seen=6, unseen=())
    """
    last_seen = max((at for at, seen in ticks if seen), default=Tick(0))
    missed = [at for at, seen in ticks if not seen and at <= max(tick, last_seen)]
    return Correction(
        after=min([tick, *(Tick(at - 1) for at in missed)]),
        upto=max(tick, last_seen),
        tick=tick,
        last_seen=last_seen,
        unseen=tuple(at for at in missed if at < last_seen),
    )


def rolled_back(relation: LoggedRelation, tick: Tick) -> DataFrame:
    """Return a relation's plain rows at a tick. Reading them fails if a row would be there fewer than zero times."""
    snapshot, needed = relation.snapshot, correction(relation.ticks, tick)
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
