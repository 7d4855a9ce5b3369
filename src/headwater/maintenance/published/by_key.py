"""By key: what a view that holds the keys of all its relations lets a warehouse do without asking anybody.

    deleted row of R  ──►  every row of the view made from it goes, and every row of an answer that is still on its way
    one row twice     ──►  it is the same one: the keys say which rows it was made from

A transaction is its deletes, then its inserts; a modification is one of each under the same key. A deleted row of a
relation is deleted at every occurrence of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headwater.deltas.lookup import B
from headwater.deltas.signed_bag import Keys
from headwater.maintenance.published.terms import Term, started_terms
from headwater.model.position import Tick
from headwater.model.relation import RelationName
from headwater.views.steps.join import JoinView

DeletedKeys = Mapping[str, Keys]
"""Per occurrence, the keys of deleted rows."""


def deleted_keys(view: JoinView, changes: Mapping[RelationName, B]) -> DeletedKeys:
    """Return the keys of the rows that a change deletes, for each occurrence of their relations."""
    return keys_of(view, {name: change.negated().positive() for name, change in changes.items()})


def keys_of(view: JoinView, rows: Mapping[RelationName, B]) -> DeletedKeys:
    """Return the keys of rows, for each occurrence of their relations, or nothing for an occurrence without rows."""
    found = {}
    for occurrence in view.occurrences:
        relation = occurrence.relation
        if relation.name in rows and len(own := rows[relation.name]):
            found[occurrence.alias] = own.keys(relation.key, own, relation.key)
    return found


def inserted_terms(view: JoinView, tick: Tick, changes: Mapping[RelationName, B]) -> tuple[Term[B], ...]:
    """Return one term for each occurrence that a change inserts into, bound to the inserted rows."""
    return started_terms(view, tick, {name: change.positive() for name, change in changes.items()})


def with_keys(some: DeletedKeys, more: DeletedKeys) -> DeletedKeys:
    """Return the keys of both."""
    both: dict[str, Any] = dict(some)
    for alias, keys in more.items():
        both[alias] = both[alias].plus(keys) if alias in both else keys
    return both


def without_keys(view: JoinView, term: Term[B], deleted: DeletedKeys) -> Term[B]:
    """Return a term without the rows that hold a deleted key."""
    for alias, keys in deleted.items():
        if alias in term.bound:
            rows = term.bound[alias]
            gone = rows.matching(view.occurrence(alias).relation.key, keys)
            term = term.bind(alias, rows.plus(gone.negated()).net())
    return term
