"""The change log as an algorithm sees it: what was seen and is too new, what was not seen and is due."""

from __future__ import annotations

from collections import Counter
from typing import assert_never

import pyarrow as pa
import pyarrow.compute as pc

from headwater.changelog.change_log import ChangeLog
from headwater.deltas.on_arrow import ArrowBag
from headwater.maintenance.questions import SawTicks, SawTransactions, Sight
from headwater.position import Tick
from headwater.relation import TICK, RelationName


class AcceptedLog:
    """Answers an algorithm's questions about the change log.

    `settled` is, per source, a tick up to which every transaction is visible to any snapshot taken from now on;
    nothing at or before it needs to be looked at when asking what a snapshot did not see.
    """

    def __init__(self, log: ChangeLog, settled: dict[str, Tick]) -> None:
        """Look at the log as it stands when asked, not when this was made."""
        self._log = log
        self._settled = settled
        self.corrected: Counter[RelationName] = Counter()
        """How many rows came or went between what sources were seen to hold and what was needed of them."""

    def changes(self, relation: RelationName, columns: tuple[str, ...], after: Tick, upto: Tick) -> ArrowBag:
        """Return the signed rows of the ticks (after, upto]."""
        return ArrowBag(self._log.rows(relation, columns, after, upto))

    def seen_after(self, relation: RelationName, columns: tuple[str, ...], sight: Sight, tick: Tick) -> ArrowBag:
        """Return the signed rows of the transactions that were seen and whose tick is after this one."""
        match sight:
            case SawTicks():
                return self.changes(relation, columns, tick, max(tick, sight.upto))
            case SawTransactions():
                known = self._log.identities(relation.source, tick, self._log.last_tick)
                seen = [at for at, identity in known if sight.seen.sees(identity)]
                return self._at(relation, columns, seen)
        assert_never(sight)

    def unseen_upto(self, relation: RelationName, columns: tuple[str, ...], sight: Sight, tick: Tick) -> ArrowBag:
        """Return the signed rows of the transactions that were not seen and whose tick is not after this one."""
        match sight:
            case SawTicks():
                return self.changes(relation, columns, min(tick, sight.upto), tick)
            case SawTransactions():
                settled = min(self._settled_upto(relation.source), tick)
                known = self._log.identities(relation.source, Tick(settled), tick)
                unseen = [at for at, identity in known if not sight.seen.sees(identity)]
                return self._at(relation, columns, unseen)
        assert_never(sight)

    def settle(self, source: str, sight: SawTransactions) -> None:
        """Note how far every transaction of a source is visible by now."""
        settled = self._settled_upto(source)
        for at, identity in self._log.identities(source, settled, self._log.last_tick):
            if not sight.seen.sees(identity):
                break
            settled = at
        self._settled[source] = settled

    def _settled_upto(self, source: str) -> Tick:
        """Return how far nothing can be unseen: what retention has dropped was committed long ago."""
        return self._settled[source] if source in self._settled else self._log.horizon()

    def _at(self, relation: RelationName, columns: tuple[str, ...], ticks: list[Tick]) -> ArrowBag:
        if not ticks:
            last = self._log.last_tick
            return self.changes(relation, columns, last, last)
        bag = self.changes(relation, columns, Tick(ticks[0] - 1), ticks[-1])
        chosen = pc.is_in(bag.table[TICK], value_set=pa.array(ticks, pa.int64()))
        found = ArrowBag(bag.table.filter(chosen))
        self.corrected[relation] += len(found)
        return found
