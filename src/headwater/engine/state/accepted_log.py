"""The change log as an algorithm sees it: what was seen and is too new, what was not seen and is due."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Generic, assert_never

from pyspark.sql import SparkSession

from headwater.changelog.change_log import ChangeLog
from headwater.changelog.layout import stamped_schema
from headwater.deltas.lookup import B, SawTicks, SawTransactions, Sight
from headwater.deltas.on_arrow import ArrowBag
from headwater.deltas.on_spark import large_session
from headwater.deltas.stored_bag import Bag, StoredBag
from headwater.errors import SourceUnavailable
from headwater.maintenance.placing import seen_upto
from headwater.model.position import Tick
from headwater.model.relation import RelationName
from headwater.warehouse.log_rows import spark_rows

ReadChanges = Callable[[RelationName, tuple[str, ...], Tick, Tick], B]
"""Returns a relation's signed rows of the ticks (after, upto], with some columns."""


def held_changes(log: ChangeLog) -> ReadChanges[ArrowBag]:
    """Return how the changes are read that a log holds or that are read into this process."""
    return lambda relation, columns, after, upto: ArrowBag(log.rows(relation, columns, after, upto))


def sized_changes(log: ChangeLog, spark: SparkSession, held_rows: int) -> ReadChanges[Bag]:
    """Return how changes are read in the form that their number asks for: many are left to Spark."""

    def read(relation: RelationName, columns: tuple[str, ...], after: Tick, upto: Tick) -> Bag:
        count = log.row_count(relation, after, upto)
        if count <= held_rows:
            return ArrowBag(log.rows(relation, columns, after, upto))
        schema = log.relation_schema(relation)
        frame = spark_rows(large_session(spark), log, relation, columns, after=after, upto=upto)
        return StoredBag(frame=frame, schema=stamped_schema(schema.field(name) for name in columns), most=count)

    return read


class AcceptedLog(Generic[B]):
    """Answers an algorithm's questions about the change log.

    `settled` is, per source, a tick up to which every transaction is visible to any snapshot taken from now on;
    nothing at or before it needs to be looked at when asking what a snapshot did not see.
    """

    def __init__(self, log: ChangeLog, settled: dict[str, Tick], read: ReadChanges[B]) -> None:
        """Look at the log as it stands when asked, not when this was made. `read` reads its rows."""
        self._log = log
        self._read = read
        self._settled = settled
        self.corrected: Counter[RelationName] = Counter()
        """How many rows came or went between what sources were seen to hold and what was needed of them."""

    def changes(self, relation: RelationName, columns: tuple[str, ...], after: Tick, upto: Tick) -> B:
        """Return the signed rows of the ticks (after, upto]."""
        return self._read(relation, columns, after, upto)

    def seen_after(self, relation: RelationName, columns: tuple[str, ...], sight: Sight, tick: Tick) -> B:
        """Return the signed rows of the transactions that were seen and whose tick is after this one."""
        match sight:
            case SawTicks():
                return self._counted(relation, self.changes(relation, columns, tick, max(tick, sight.upto)))
            case SawTransactions():
                known = self.known(relation.source, sight, tick, self._log.last_tick)
                return self._at(relation, columns, [at for at, seen in known if seen])
        assert_never(sight)

    def unseen_upto(self, relation: RelationName, columns: tuple[str, ...], sight: Sight, tick: Tick) -> B:
        """Return the signed rows of the transactions that were not seen and whose tick is not after this one."""
        match sight:
            case SawTicks():
                return self._counted(relation, self.changes(relation, columns, min(tick, sight.upto), tick))
            case SawTransactions():
                settled = min(sight.upto or self._settled_upto(relation.source), tick)
                known = self.known(relation.source, sight, Tick(settled), tick)
                return self._at(relation, columns, [at for at, seen in known if not seen])
        assert_never(sight)

    def settle(self, source: str, sight: SawTransactions) -> None:
        """Note how far every transaction of a source is visible by now."""
        settled = self._settled_upto(source)
        known = self._log.identities(source, settled, self._log.last_tick)
        self._settled[source] = seen_upto(known, sight.seen, settled)

    def known(self, source: str, sight: SawTransactions, after: Tick, upto: Tick) -> list[tuple[Tick, bool]]:
        """Return a source's ticks in (after, upto], and whether they were seen. One that was half seen is refused.

        A source has several transactions in one tick only where global transactions crossed. The log does not tell
        their rows apart, so an answer that saw some of them and not all can be brought to no tick: ask again.
        """
        known = [(at, sight.seen.sees(one, log)) for at, one, log in self._log.identities(source, after, upto)]
        by_tick = dict(known)
        if len(by_tick) < len(known) and any(by_tick[at] is not seen for at, seen in known):
            raise SourceUnavailable(
                f'an answer of source "{source}" saw a part of a tick',
                code="HW-538",
                detail="it was read between two transactions that became one tick, because global transactions crossed",
                hint="it is asked again by itself",
            )
        return list(by_tick.items())

    def _settled_upto(self, source: str) -> Tick:
        """Return how far nothing can be unseen: what retention has dropped was committed long ago."""
        return self._settled[source] if source in self._settled else self._log.horizon()

    def _at(self, relation: RelationName, columns: tuple[str, ...], ticks: list[Tick]) -> B:
        if not ticks:
            last = self._log.last_tick
            return self.changes(relation, columns, last, last)
        found: B = self.changes(relation, columns, Tick(ticks[0] - 1), ticks[-1]).at(ticks)
        return self._counted(relation, found)

    def _counted(self, relation: RelationName, found: B) -> B:
        self.corrected[relation] += found.most
        return found
