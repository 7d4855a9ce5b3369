"""A modification of no join attribute, done in the view by key without asking a source: paper 001's Lemma 3.

    V = R join S where S.chosen > 0, the key of S is in V          S (1,5,0) becomes (1,5,1)

No row of V has that key, so there is nothing to modify; but the row passes the selection now, and is missing. One that
no longer passes it stays (PAPERS.md §4, erratum 7: 139 of 3,000 runs are not complete). What the view shows is not
modified here, so that doing it in place is to do nothing; a modification of what it shows is computed, as ours is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqlglot import exp

from headwater.maintenance.published.messages import Running, ViewHistory
from headwater.maintenance.published.telescope import Telescoped, telescope
from headwater.maintenance.published.version_numbers import by_versions
from headwater.model.position import Tick
from headwater.model.relation import RelationName
from headwater.views.steps.join import JoinView
from headwater.views.steps.keys import key_outputs
from headwater_lab.in_memory.bag import InMemoryBag, Row
from headwater_lab.literal.variant import Variant


def _run(view: JoinView, lo: Tick, log: ViewHistory[Any]) -> Running:
    return by_versions(view, lo, log, take_apart=leave_in_place)


def leave_in_place(view: JoinView, changes: Mapping[RelationName, Any]) -> Telescoped:
    """Take a transaction apart, and compute no part that leaves what the view shows and joins by as it was."""
    parts = telescope(view, changes)
    computed = [a for a in parts.computed if not _is_in_place(view, a, changes[view.occurrence(a).relation.name])]
    return replace(parts, computed=tuple(computed))


def _is_in_place(view: JoinView, alias: str, rows: InMemoryBag) -> bool:
    beyond = _columns_beyond_selections(view, alias)
    places = [place for place, column in enumerate(rows.columns) if column in beyond]
    left: Counter[Row] = Counter()
    for (_, row), count in rows.entries.items():
        left[tuple(row[place] for place in places)] += count
    return bool(key_outputs(view, alias)) and not any(left.values())


MODIFIED_IN_PLACE = Variant(
    name="modified-in-place",
    of="version-numbers",
    wrong="a modification that lets a row into a selection, or out of it, is taken for one of nothing",
    run=_run,
)


def _columns_beyond_selections(view: JoinView, alias: str) -> frozenset[str]:
    """Return the columns of an occurrence that a view shows or joins by. The others serve its own selections only."""
    beyond = [condition.expression for condition in view.conditions if condition.aliases != {alias}]
    beyond += [output.expression for output in view.outputs]
    return frozenset(one.name for each in beyond for one in each.find_all(exp.Column) if one.table == alias)
