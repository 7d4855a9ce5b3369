"""Runtime self-maintenance: which rows a batch need not ask for, because its own changes tell them.

A batch (lo, hi] asks for the rows that a relation had at lo under some keys. Let N be the net change of a relation over
the batch, the sum over its ticks. N is what it holds at hi less what it held at lo, so

    by its key          at most one row is under a key at lo, and at most one at hi. Where N has rows under the key, the
                        negative one is the row at lo, and if there is none, no row was there.
    by a reference      the children of a parent that is not there at lo are none at lo: N of the parent has a positive
                        row under the key, and no negative one. Those of a parent that is not there at hi are none at
                        hi, so what was there at lo is what went: the negative of the children's N.

    customers −(7, Oslo) +(7, Bergen)        asked for customers 7: (7, Oslo), by its key
    customers +(8, Rome)                     asked for orders of 8: none, by the reference of orders to customers
    customers −(9, Bonn)   orders −(31, 9)   asked for orders of 9: (31, 9), by the same

A key under which N is empty says nothing: the row may never have changed, or have changed back. `self_maintenance`
finds more, in rows that are kept. What neither knows is asked for; if that is nothing, no source is asked at all.

Conditions: keys are primary keys, and references are enforced by the source for all rows (`ForeignKey`). Both hold at
every tick, since a tick is a whole transaction. A relation's changes have to be all of them: none may be left out by a
selection, or an update that ends outside of it would look like a deletion.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic

from headwater.deltas.lookup import B, RowRequest
from headwater.model.relation import ForeignKey, Relation, RelationName


@dataclass(frozen=True, slots=True, kw_only=True)
class Known(Generic[B]):
    """The rows that a relation had under some keys before the batch, and these keys. Under others it is not known."""

    keys: Any
    rows: B


def known_rows(
    probe: RowRequest[Any],
    relation: Relation,
    net: Mapping[RelationName, B],
    columns: Mapping[RelationName, tuple[str, ...]],
) -> Known[B]:
    """Return what the net changes of a batch's relations, which have some columns, tell of what a probe asks for."""
    assert probe.keys is not None, "a question for all rows is not known by keys"
    own: Any = net[relation.name]
    none = probe.keys.without(probe.keys)
    known = Known(keys=none, rows=own.matching(probe.columns, none))
    if relation.key and set(probe.columns) == set(relation.key):
        known = _by_key(probe, own)
    for reference in relation.foreign_keys:
        is_seen = set(reference.parent_columns) <= set(columns.get(reference.parent, ()))
        if is_seen and set(reference.columns) == set(probe.columns):
            left = probe.keys.without(known.keys)
            found = _by_reference(probe, left, own, net[reference.parent], reference)
            known = Known(keys=known.keys.plus(found.keys), rows=known.rows.plus(found.rows))
    return known


def _by_key(probe: RowRequest[Any], own: Any) -> Known[Any]:
    keys = _both(probe.keys, own.keys(probe.columns, own, probe.columns))
    return Known(keys=keys, rows=own.negated().positive().matching(probe.columns, keys))


def _by_reference(probe: RowRequest[Any], asked: Any, own: Any, parents: Any, reference: ForeignKey) -> Known[Any]:
    referred = tuple(reference.parent_columns[reference.columns.index(column)] for column in probe.columns)
    came = parents.positive().keys(referred, own, probe.columns)
    went = parents.negated().positive().keys(referred, own, probe.columns)
    gone = _both(asked, went.without(came))
    keys = gone.plus(_both(asked, came.without(went)))
    return Known(keys=keys, rows=own.negated().matching(probe.columns, gone))


def _both(some: Any, others: Any) -> Any:
    return some.without(some.without(others))
