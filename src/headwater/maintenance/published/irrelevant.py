"""Irrelevant changes: what a foreign key says cannot change a view, so that no source is asked.

    orders.customer references customers, V = orders join customers on it
    a new customer has no orders yet         the change of customers, joined with the orders *before*, is empty
    a deleted customer has none any more     the change of customers, joined with the orders *after*, is empty

The first needs the customers' part of a transaction before the orders' part, the second the other way round: this is
the order inside a transaction that `telescope` sees to. A change that takes a row and puts another one under the same
key is neither, and is computed.

Conditions (PAPERS.md §4, erratum 8; paper 001 §4.2 names only the first): the source enforces the reference at once and
for all rows; both relations are at that source; the view joins them by all columns of that reference; these are never
NULL. All of it is read from the source's catalog. A reference that was declared and is not enforced (triggers switched
off) makes 640 of 3,000 runs wrong, and cannot be noticed here.
"""

from __future__ import annotations

from dataclasses import dataclass

from headwater.model.relation import ForeignKey
from headwater.views.steps.join import JoinView, Occurrence


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """Every row of the child, an occurrence, has exactly one partner in the parent, by the view's own conditions."""

    parent: str
    child: str


def references(view: JoinView) -> tuple[Reference, ...]:
    """Return the references between occurrences of a view along which changes of the parent may be irrelevant."""
    return tuple(
        Reference(parent=parent.alias, child=child.alias)
        for child in view.occurrences
        for parent in view.occurrences
        if parent.alias != child.alias and any(_joins(view, child, parent, key) for key in child.relation.foreign_keys)
    )


def _joins(view: JoinView, child: Occurrence, parent: Occurrence, key: ForeignKey) -> bool:
    if key.parent != parent.relation.name or not child.relation.not_null.issuperset(key.columns):
        return False
    equal: set[tuple[str, str]] = set()
    for edge in view.edges:
        if (edge.left, edge.right) == (child.alias, parent.alias):
            equal |= set(edge.pairs)
        if (edge.right, edge.left) == (child.alias, parent.alias):
            equal |= {(own, theirs) for theirs, own in edge.pairs}
    return equal.issuperset(zip(key.columns, key.parent_columns, strict=True))
