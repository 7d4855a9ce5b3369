"""Probe cache: what one transaction has asked for already, and every answer ready to be brought to any tick.

    (relation, columns, values)  ->  (rows, sight)

A second appearance of a relation may need the same rows as the first, at another tick: they are asked for once, and
rebased once for each term that needs them. A probe of fewer columns holds the answer to one of more; a relation that
was read whole holds the answer to every probe.

Invariant: rows are given out only for keys that were asked for. What was not asked for is unknown, never empty.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic

from headwater.deltas.lookup import B, RowRequest, RowResult
from headwater.deltas.signed_bag import Keys
from headwater.maintenance.published.terms import TermStep
from headwater.maintenance.rebase import Log, rebase
from headwater.model.position import Tick
from headwater.model.relation import RelationName

Correct = Callable[[RowRequest[Any], RowResult[Any], Log[Any], Tick], Any]
"""How an answer is brought to a tick: `rebase`."""

_Key = tuple[RelationName, tuple[str, ...]]


@dataclass(slots=True, kw_only=True)
class ProbeCache(Generic[B]):
    """The executed probes of one transaction. `like` has a bag of each relation, whose column types keys take."""

    like: Mapping[RelationName, B]
    log: Log[B]
    correct: Correct = rebase
    _kept: dict[_Key, list[tuple[RowRequest[Any], RowResult[B]]]] = field(default_factory=dict)

    def keep(self, request: RowRequest[Any], result: RowResult[B]) -> None:
        """Take in what a source found, and what it had seen by then."""
        self._kept.setdefault((request.relation, request.columns), []).append((request, result))

    def missing(self, relation: RelationName, step: TermStep, leading: B | None) -> Keys | None:
        """Return the keys of a step that were not asked for. None stands for the whole relation."""
        if leading is None:
            return None
        keys = self._keys(relation, step, leading, step.columns)
        return self._uncovered((relation, step.columns), keys)

    def is_covered(self, relation: RelationName, step: TermStep, leading: B | None) -> bool:
        """Tell whether everything that a step leads to was asked for."""
        return self._covering(relation, step, leading) is not None

    def rows(self, relation: RelationName, step: TermStep, leading: B | None, tick: Tick) -> B:
        """Return the rows of a tick that a step leads to, as far as they were asked for."""
        columns = self._covering(relation, step, leading)
        key = (relation, step.columns if columns is None else columns)
        if leading is None:
            return self._whole(key, tick)
        keys: Any = self._keys(relation, step, leading, step.columns)
        if key[1] == ():
            whole: B = self._whole(key, tick).matching(step.columns, keys)
            return whole
        found: B = self.like[relation].matching(step.columns, keys.without(keys))
        remaining: Any = self._keys(relation, step, leading, key[1])
        for request, result in self._kept.get(key, []):
            other = remaining.without(request.keys)
            hit = remaining.without(other)
            remaining = other
            if len(hit):
                answer = replace(result, rows=result.rows.matching(key[1], hit))
                found = found.plus(self.correct(request.with_keys(hit), answer, self.log, tick))
        return found if key[1] == step.columns else found.matching(step.columns, keys)

    def _whole(self, key: _Key, tick: Tick) -> B:
        rows: B = self.correct(*self._kept[key][0], self.log, tick)
        return rows

    def _covering(self, relation: RelationName, step: TermStep, leading: B | None) -> tuple[str, ...] | None:
        """Return the columns of probes that together hold all that a step leads to, or None if there are none."""
        if (relation, ()) in self._kept:
            return ()
        if leading is None:
            return None
        usable = [key for key in self._kept if key[0] == relation and set(key[1]) <= set(step.columns)]
        for key in [(relation, step.columns), *usable]:
            if not len(self._uncovered(key, self._keys(relation, step, leading, key[1]))):
                return key[1]
        return None

    def _keys(self, relation: RelationName, step: TermStep, leading: B, columns: tuple[str, ...]) -> Keys:
        """Return the values of the leading rows for some of a step's columns."""
        theirs = dict(zip(step.columns, step.via_columns, strict=True))
        keys: Keys = leading.keys(tuple(theirs[column] for column in columns), self.like[relation], columns)
        return keys

    def _uncovered(self, key: _Key, keys: Any) -> Keys:
        for request, _ in self._kept.get(key, []):
            keys = keys.without(request.keys)
        uncovered: Keys = keys
        return uncovered
