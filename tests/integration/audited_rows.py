"""The rows of relations at a tick, from what triggers noted: for tests that look below the views."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal
from typing import Any

from audited import AuditedWorld, relations, unticked

from headwater.model.position import Tick
from headwater.model.relation import Relation, RelationName
from headwater.warehouse.query import Warehouse

Row = tuple[Any, ...]

_READ: Mapping[str, Callable[[str], Any]] = {"int": int, "string": str, "double": float, "date": date.fromisoformat}


class AuditedRows:
    """What triggers have noted by now, in the order of ticks."""

    def __init__(self, world: AuditedWorld, warehouse: Warehouse) -> None:
        self.relations = {relation.name: relation for relation in relations(world)}
        self._history = [change for source in world.names for change in world.audited(source)]
        accepted = warehouse.log.transactions(None, Tick(0), warehouse.log.last_tick)
        ticks = [(at, one.source, one.identity) for at, one in accepted]
        order = {key: place for place, key in enumerate(unticked(world, self._history, ticks), start=-1_000_000)}
        self._order = order | {(source, identity): int(at) for at, source, identity in ticks}

    def at(self, tick: Tick) -> dict[RelationName, list[Row]]:
        """Return every relation's rows after a tick, whole."""
        found: dict[RelationName, Counter[Row]] = {name: Counter() for name in self.relations}
        for change in self._history:
            if self._order.get((change.source, change.identity), tick + 1) > tick:
                continue
            for text, sign in ((change.old, -1), (change.new, 1)):
                if text is not None:
                    found[change.relation][_row(self.relations[change.relation], text)] += sign
        assert all(count >= 0 for rows in found.values() for count in rows.values())
        return {name: list(rows.elements()) for name, rows in found.items()}


def _row(relation: Relation, text: Mapping[str, str | None]) -> Row:
    return tuple(
        None if (value := text[column.name]) is None else _READ.get(column.type, Decimal)(value)
        for column in relation.columns
    )
