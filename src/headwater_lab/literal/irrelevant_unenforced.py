"""Changes of a parent left out though nothing holds the reference: paper 001's section 4.2 where it is only assumed.

    orders (2, customer 2) is there, customers 2 is not       customers +(2, Oslo): its orders were there before it

"A new customer has no orders yet" is what the source has to enforce, for all rows and at once. A column that is called
customer does not, nor does a constraint that is declared and switched off (PAPERS.md §4, erratum 8: 640 of 3,000 runs
are not complete). Ours leaves out only what the source's catalog says is enforced (`irrelevant`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headwater.maintenance.published.irrelevant import Reference
from headwater.maintenance.published.messages import Running, ViewHistory
from headwater.maintenance.published.telescope import Telescoped, telescope
from headwater.maintenance.published.terms import steps_to
from headwater.maintenance.published.version_numbers import by_versions
from headwater.model.position import Tick
from headwater.model.relation import RelationName
from headwater.views.steps.join import JoinView
from headwater_lab.literal.variant import Variant


def _run(view: JoinView, lo: Tick, log: ViewHistory[Any]) -> Running:
    return by_versions(view, lo, log, take_apart=_take_apart)


def _take_apart(view: JoinView, changes: Mapping[RelationName, Any]) -> Telescoped:
    return telescope(view, changes, assumed_references)


def assumed_references(view: JoinView) -> tuple[Reference, ...]:
    """Return a reference for every equality with the key of another relation of the same source."""
    return tuple(
        Reference(parent=parent.alias, child=child.alias)
        for child in view.occurrences
        for parent in view.occurrences
        if parent.relation.name.source == child.relation.name.source
        for step in steps_to(view, parent.alias, [child.alias])
        if set(step.columns) == set(parent.relation.key)
    )


IRRELEVANT_UNENFORCED = Variant(
    name="irrelevant-unenforced",
    of="version-numbers",
    wrong="takes a join by a key for a reference, which no source enforces",
    run=_run,
)
