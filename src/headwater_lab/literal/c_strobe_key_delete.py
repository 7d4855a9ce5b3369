"""C-Strobe that takes concurrent inserts out of an answer by their keys, and puts back whatever was deleted.

    R1 = {(0,0,0)}     R2 +(0,0,0), R2 -(0,0,0), R2 +(0,0,0), all delivered before R1's answer

The key of the third takes out the row that belongs to the first: the state after the first is never shown (PAPERS.md
§2.2.12). Right as long as no key is used again, also not by a modification; 167 of 2,000 simulated runs are not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headwater.maintenance.published.by_key import keys_of, without_keys
from headwater.maintenance.published.c_strobe import Changes, compensate_by_asking
from headwater.maintenance.published.messages import Running, ViewHistory
from headwater.maintenance.published.terms import Term
from headwater.model.position import Tick
from headwater.model.relation import RelationName
from headwater.views.steps.join import JoinView
from headwater_lab.literal.variant import Variant


class KeyDelete:
    """Concurrent changes, each for itself: every delete is put back, every insert taken out by its key."""

    def __init__(self) -> None:
        """Begin with no concurrent changes."""
        self._inserted: dict[RelationName, Any] = {}
        self._deleted: dict[tuple[RelationName, Tick], Any] = {}

    def take(self, tick: Tick, changes: Changes) -> None:
        """Count one more transaction as concurrent."""
        for name, change in changes.items():
            came, went = change.positive(), change.negated().positive()
            self._inserted[name] = self._inserted[name].plus(came) if name in self._inserted else came
            if len(went):
                self._deleted[name, tick] = went

    def deleted(self) -> Mapping[tuple[RelationName, Tick], Any]:
        """Return every deleted row, by relation and by the transaction that deleted it."""
        return self._deleted

    def correct(self, view: JoinView, term: Term[Any], own: set[str]) -> Term[Any]:  # noqa: ARG002 - no row is spared
        """Take out every row with the key of an insert."""
        return without_keys(view, term, keys_of(view, self._inserted))


def _run(view: JoinView, lo: Tick, log: ViewHistory[Any]) -> Running:
    return compensate_by_asking(view, lo, log, KeyDelete)


C_STROBE_KEY_DELETE = Variant(
    name="c-strobe-key-delete",
    of="c-strobe",
    wrong="a concurrent insert under a key that is used again takes out the row that was there before it",
    run=_run,
)
