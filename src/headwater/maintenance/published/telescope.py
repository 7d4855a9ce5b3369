"""Telescope: in which order the parts of one transaction happen, and which of them need no computing.

    change of V = sum over changed occurrences p of  (those before p: new)  change at p  (those after p: old)

holds for any order of the occurrences. It is chosen so that as many of these terms as possible need no source:

- a part that only deletes, at an occurrence whose key the view holds, is done by taking out the view's rows with those
  keys. These parts come first: the view that they take rows out of is the one before the transaction.
- a part that only inserts into the parent of a reference comes before the child's part, and is then empty; one that
  only deletes from it comes after the child's part, and is then empty (`irrelevant`).

A modification is one change. Where every row keeps its key, which the view holds, and every column that a condition or
an expression reads, only columns that are shown as they are differ: the view's rows are modified in place, and no
source is asked. Such parts come right after those that delete by key. (Paper 001's Lemma 3 looks at join attributes
only; a selection that changes its mind brings a row in or takes it out, PAPERS.md §4, erratum 7.) Any other part that
deletes and inserts is computed as one: both of its rows lead on by keys that are asked for together, equal ones once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from headwater.deltas.signed_bag import Keys
from headwater.maintenance.published.irrelevant import Reference, references
from headwater.model.position import Tick
from headwater.model.relation import RelationName
from headwater.views.steps.join import JoinView
from headwater.views.steps.keys import key_outputs, read_columns


@dataclass(frozen=True, slots=True, kw_only=True)
class Telescoped:
    """The parts of a transaction: their order, those that are computed, those done in the view by key."""

    order: tuple[str, ...]
    computed: tuple[str, ...]
    removed: Mapping[str, Keys]
    modified: Mapping[str, Any] = field(default_factory=dict)

    def needed(self, alias: str, start: str, tick: Tick) -> Tick:
        """Return the state in which the part at one occurrence needs another occurrence."""
        return tick if self.order.index(alias) < self.order.index(start) else Tick(tick - 1)


Parts = Callable[[JoinView, Mapping[RelationName, Any]], Telescoped]
"""How a transaction is taken apart, given what it changes in each relation: `telescope`."""


def telescope(
    view: JoinView,
    changes: Mapping[RelationName, Any],
    refer: Callable[[JoinView], Iterable[Reference]] = references,
) -> Telescoped:
    """Choose the order of a transaction's parts. `refer` tells along which references some may be irrelevant."""
    parts = {o.alias: changes[o.relation.name] for o in view.occurrences if len(changes[o.relation.name])}
    deleting = {alias for alias, rows in parts.items() if not len(rows.positive())}
    inserting = {alias for alias, rows in parts.items() if not len(rows.negated().positive())}
    by_key = [alias for alias in parts if alias in deleting and key_outputs(view, alias)]
    in_place = [alias for alias in parts if alias not in by_key and is_modified_in_place(view, alias, parts[alias])]
    early = [*by_key, *in_place]
    order = (*early, *(o.alias for o in view.occurrences if o.alias not in early))
    before = {(first, other) for place, first in enumerate(early) for other in order[place + 1 :]}
    left_out: set[str] = set()
    for reference in refer(view):
        if reference.parent not in parts or reference.parent in {*early, *left_out}:
            continue
        if (wish := _wish(reference, parts, early, deleting, inserting)) is None:
            continue
        if (sorted_by := _sorted(order, before | wish)) is not None:
            order, before = sorted_by, before | wish
            left_out.add(reference.parent)
    return Telescoped(
        order=order,
        computed=tuple(alias for alias in order if alias in parts and alias not in {*early, *left_out}),
        removed={alias: _keys(view, alias, parts[alias]) for alias in by_key},
        modified={alias: parts[alias].positive() for alias in in_place},
    )


def _wish(
    reference: Reference, parts: Mapping[str, Any], early: Iterable[str], deleting: set[str], inserting: set[str]
) -> set[tuple[str, str]] | None:
    """Return what has to come before what, for a parent's part to be empty, or None if it may not be."""
    if reference.parent not in deleting | inserting:
        return None
    if reference.child not in parts or reference.child in early:
        return set()  # an unchanged child refers to the same before and after; so does one that only loses rows
    if reference.parent in inserting:
        return {(reference.parent, reference.child)}
    return {(reference.child, reference.parent)}


def _sorted(aliases: tuple[str, ...], before: set[tuple[str, str]]) -> tuple[str, ...] | None:
    """Return the aliases so that each pair is in its order, else as they are, or None if that is impossible.

    >>> _sorted(("a", "b", "c"), {("c", "a")})
    ('b', 'c', 'a')
    >>> _sorted(("a", "b"), {("a", "b"), ("b", "a")})
    """
    placed: list[str] = []
    waiting = list(aliases)
    while waiting:
        free = [alias for alias in waiting if not any((other, alias) in before for other in waiting)]
        if not free:
            return None
        placed.append(free[0])
        waiting.remove(free[0])
    return tuple(placed)


def is_modified_in_place(view: JoinView, alias: str, rows: Any) -> bool:
    """Tell whether a part only modifies columns that the view shows as they are, of rows whose keys it holds."""
    key = view.occurrence(alias).relation.key
    if not key_outputs(view, alias):
        return False
    came, went = rows.positive(), rows.negated().positive()
    keys = len(came.keys(key, came, key))
    is_one_to_one = 0 < len(came) == len(went) == keys == len(went.keys(key, went, key))
    return is_one_to_one and not len(rows.picked(tuple(sorted(read_columns(view, alias)))).net())


def _keys(view: JoinView, alias: str, rows: Any) -> Keys:
    key = view.occurrence(alias).relation.key
    keys: Keys = rows.keys(key, rows, key)
    return keys
