"""A log that shows less, or other rows, than there are: it makes a corrected algorithm a literal reading of its paper.

The algorithms take out of an answer what their log says the answer saw too early. So most literal readings need no code
of their own in the algorithm: they are the algorithm, on a log that tells it what the paper's figure would look at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from headwater.deltas.lookup import Sight
from headwater.maintenance.published.messages import ViewHistory
from headwater.model.position import Tick
from headwater.model.relation import RelationName
from headwater_lab.in_memory.bag import InMemoryBag
from headwater_lab.watched_log import WatchedLog

Alter = Callable[[InMemoryBag], InMemoryBag]


def as_it_is(bag: InMemoryBag) -> InMemoryBag:
    """Alter nothing."""
    return bag


@dataclass(frozen=True, slots=True, kw_only=True)
class AlteredLog:
    """A log, with two of its answers altered: a transaction's own rows, and what an answer saw too early."""

    log: ViewHistory[InMemoryBag]
    own: Alter = as_it_is
    too_early: Alter = as_it_is

    def changes(self, relation: RelationName, columns: tuple[str, ...], after: Tick, upto: Tick) -> InMemoryBag:
        """Return the signed rows of the ticks (after, upto], altered."""
        return self.own(self.log.changes(relation, columns, after, upto))

    def seen_after(self, relation: RelationName, columns: tuple[str, ...], sight: Sight, tick: Tick) -> InMemoryBag:
        """Return the signed rows of the transactions that were seen and whose tick is after this one, altered."""
        altered = self.too_early(self.log.seen_after(relation, columns, sight, tick))
        if isinstance(self.log, WatchedLog):
            self.log.used(relation, tick, altered)
        return altered

    def unseen_upto(self, relation: RelationName, columns: tuple[str, ...], sight: Sight, tick: Tick) -> InMemoryBag:
        """Return the signed rows of the transactions that were not seen and whose tick is not after this one."""
        return self.log.unseen_upto(relation, columns, sight, tick)


def of_ticks(bag: InMemoryBag, chosen: Callable[[Tick], bool]) -> InMemoryBag:
    """Return the rows that are stamped with chosen ticks."""
    return InMemoryBag(bag.columns, Counter({entry: count for entry, count in bag.entries.items() if chosen(entry[0])}))


def first_change(bag: InMemoryBag) -> InMemoryBag:
    """Return the rows of the oldest transaction among them."""
    ticks = [tick for (tick, _), count in bag.entries.items() if count]
    return of_ticks(bag, lambda tick: bool(ticks) and tick == min(ticks))


class LastBegun:
    """Which sweep has begun last: the transaction whose own rows were read last has left the queue."""

    def __init__(self) -> None:
        """Begin with none."""
        self.newest = Tick(0)

    def own(self, bag: InMemoryBag) -> InMemoryBag:
        """Note that a transaction's rows are read."""
        self.newest = max([self.newest, *(tick for tick, _ in bag.entries)])
        return bag
