"""The log, watched: what an algorithm looks up in it while it takes an answer in is what it corrects the answer by."""

from __future__ import annotations

from collections import Counter
from typing import Any

from headwater.deltas.lookup import RowRequest, Sight
from headwater.model.position import Tick
from headwater.model.relation import RelationName
from headwater_lab.in_memory.bag import InMemoryBag, Row
from headwater_lab.ledger import Ledger

Corrections = dict[tuple[RelationName, Tick], Counter[Row]]


class WatchedLog:
    """A ledger for one algorithm. `corrections` tells how the answer that it takes in now is brought to which tick."""

    def __init__(self, ledger: Ledger) -> None:
        """Watch a ledger."""
        self._ledger = ledger
        self._answered: tuple[RowRequest[Any], ...] = ()
        self._found: dict[tuple[RelationName, Tick], dict[int, dict[tuple[Tick, Row], int]]] = {}

    def watch(self, answered: tuple[RowRequest[Any], ...]) -> None:
        """Start again, with the requests whose answer is taken in now."""
        self._answered = answered
        self._found = {}

    def corrections(self) -> Corrections:
        """Return what was put back (counts above zero) and taken out (below), by relation and the tick needed."""
        netted: Corrections = {}
        for place, by_sign in self._found.items():
            rows: Counter[Row] = Counter()
            for sign, entries in by_sign.items():
                for (_, row), count in entries.items():
                    rows[row] += sign * count
            if kept := {row: count for row, count in rows.items() if count}:
                netted[place] = Counter(kept)
        return netted

    def changes(self, relation: RelationName, columns: tuple[str, ...], after: Tick, upto: Tick) -> InMemoryBag:
        """Return the signed rows of the ticks (after, upto]."""
        return self._ledger.changes(relation, columns, after, upto)

    def seen_after(self, relation: RelationName, columns: tuple[str, ...], sight: Sight, tick: Tick) -> InMemoryBag:
        """Return the signed rows of the transactions that were seen and whose tick is after this one."""
        return self._noted(-1, relation, tick, self._ledger.seen_after(relation, columns, sight, tick))

    def unseen_upto(self, relation: RelationName, columns: tuple[str, ...], sight: Sight, tick: Tick) -> InMemoryBag:
        """Return the signed rows of the transactions that were not seen and whose tick is not after this one."""
        return self._noted(1, relation, tick, self._ledger.unseen_upto(relation, columns, sight, tick))

    def used(self, relation: RelationName, tick: Tick, bag: InMemoryBag) -> None:
        """Record what a literal reading takes out, instead of all that was seen too early."""
        self._found.pop((relation, tick), None)
        self._noted(-1, relation, tick, bag)

    def _noted(self, sign: int, relation: RelationName, tick: Tick, bag: InMemoryBag) -> InMemoryBag:
        """Note what of a bag lies under the keys that were asked for. Outside of them the answer says nothing."""
        for request in self._answered:
            if request.relation == relation:
                matching = bag if request.keys is None else bag.matching(request.columns, request.keys)
                self._found.setdefault((relation, tick), {}).setdefault(sign, {}).update(matching.entries)
        return bag
