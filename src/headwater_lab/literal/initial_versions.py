"""One vector of initial versions for a whole transaction, as paper 001 has it: all before it, or all after it.

    source s:  1: R1 +(0,1), R2 +(1,0)   in one transaction, V = R1 join R2, both empty before

Section 3 takes the versions before they are incremented, and neither part meets the other: their row is lost. Example 2
takes those after, and each part meets the other: their row counts twice. A relation that appears twice does the same
with itself. (PAPERS.md §4, erratum 2.)

A part that a foreign key makes irrelevant shows it from another side: a new child has to meet the new parent, a child
that goes with its parent the old one (erratum 8: 1,465 of 1,465 and 661 of 1,159 simulated transactions are wrong).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headwater.maintenance.published.messages import Running, ViewHistory
from headwater.maintenance.published.telescope import Telescoped, telescope
from headwater.maintenance.published.version_numbers import by_versions
from headwater.model.position import Tick
from headwater.model.relation import RelationName
from headwater.views.steps.join import JoinView
from headwater_lab.literal.variant import Variant


class Before(Telescoped):
    """The parts of a transaction, each of which meets everything as it was before."""

    def needed(self, alias: str, start: str, tick: Tick) -> Tick:  # noqa: ARG002 - the same for all
        """Return the state before the transaction."""
        return Tick(tick - 1)


class After(Telescoped):
    """The parts of a transaction, each of which meets everything as it is afterwards."""

    def needed(self, alias: str, start: str, tick: Tick) -> Tick:  # noqa: ARG002 - the same for all
        """Return the state after the transaction."""
        return tick


def _run(view: JoinView, lo: Tick, log: ViewHistory[Any], parts_of: type[Telescoped]) -> Running:
    def take_apart(view: JoinView, changes: Mapping[RelationName, Any]) -> Telescoped:
        parts = telescope(view, changes)
        return parts_of(order=parts.order, computed=parts.computed, removed=parts.removed, modified=parts.modified)

    return by_versions(view, lo, log, take_apart=take_apart)


INITIAL_VERSIONS_BEFORE = Variant(
    name="initial-versions-before",
    of="version-numbers",
    wrong="the parts of a transaction do not meet each other",
    run=lambda view, lo, log: _run(view, lo, log, Before),
)
INITIAL_VERSIONS_AFTER = Variant(
    name="initial-versions-after",
    of="version-numbers",
    wrong="the parts of a transaction meet each other twice",
    run=lambda view, lo, log: _run(view, lo, log, After),
)
