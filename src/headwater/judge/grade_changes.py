"""Grade a long history by its changes, at a cost that follows the changes.

Two histories that start equal have equal states at a tick exactly if the running difference of their changes is empty
there. So instead of comparing a thousand states of a million rows, one signed bag is kept: right minus shown. It is
looked at after every tick; where it is not empty, it *is* the difference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from headwater.deltas.compare import Bag, Difference, Row, RowKey, difference, row_key
from headwater.judge.grade import Verdict
from headwater.model.guarantee import Guarantee
from headwater.model.position import Tick


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """A view's state at its birth, and the signed rows of each later tick. A tick without an entry changed nothing."""

    birth: Tick
    start: Bag
    changes: Mapping[Tick, Bag]


def grade_changes(expected: History, observed: History, *, through: Tick) -> Verdict:
    """Return the guarantee that every state from the birth through a tick keeps.

    Every tick is a state that claims this tick, so there is nothing between complete and convergent: a wrong state
    is wrong under its tick, whatever state of another tick it may equal.

    >>> right = History(birth=Tick(4), start={("a",): 1}, changes={Tick(6): {("b",): 1}})
    >>> print(grade_changes(right, right, through=Tick(6)))
    complete, 3 states checked
    >>> late = History(birth=Tick(4), start={("a",): 1}, changes={Tick(7): {("b",): 1}})
    >>> print(grade_changes(right, late, through=Tick(7)))
    convergent, 4 states checked
      tick 6 differs
      missing 1 × ('b')
    """
    assert expected.birth == observed.birth, "both histories must begin at one birth"
    balance = _Balance()
    balance.add(expected.start, 1)
    balance.add(observed.start, -1)
    first_bad: tuple[Tick, Difference] | None = (expected.birth, balance.as_difference()) if balance.counts else None
    for tick in sorted(expected.changes.keys() | observed.changes.keys()):
        if not expected.birth < tick <= through:
            assert tick > through or not observed.changes.get(tick), "a history must not change before its birth"
            continue
        balance.add(expected.changes.get(tick, {}), 1)
        balance.add(observed.changes.get(tick, {}), -1)
        if first_bad is None and balance.counts:
            first_bad = (tick, balance.as_difference())
    states_checked = through - expected.birth + 1
    if first_bad is None:
        return Verdict(guarantee=Guarantee.COMPLETE, states_checked=states_checked)
    return Verdict(
        guarantee=Guarantee.NONE if balance.counts else Guarantee.CONVERGENT,
        states_checked=states_checked,
        first_bad_tick=first_bad[0],
        difference=first_bad[1],
    )


class _Balance:
    """Right minus shown: the one value that changes here, so that a long history costs no copies."""

    def __init__(self) -> None:
        self.counts: Counter[RowKey] = Counter()
        self._spelling: dict[RowKey, Row] = {}

    def add(self, bag: Bag, sign: int) -> None:
        for row, count in bag.items():
            key = row_key(row)
            self.counts[key] += sign * count
            self._spelling.setdefault(key, row)
            if not self.counts[key]:
                del self.counts[key], self._spelling[key]

    def as_difference(self) -> Difference:
        missing = {self._spelling[key]: count for key, count in self.counts.items() if count > 0}
        surplus = {self._spelling[key]: -count for key, count in self.counts.items() if count < 0}
        return difference(missing, surplus)
