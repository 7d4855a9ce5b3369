"""The random worlds have what each optimisation needs: it is admissible, and used, in at least a twentieth of steps.

A step is a transaction that changes something a view reads. Without these counters the contracts of the algorithms
could hold because nothing was ever looked up, left out or put together.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from volume import volume

from headwater.maintenance.published.irrelevant import references
from headwater.maintenance.published.messages import Answered, Query, changes_of
from headwater.maintenance.published.self_maintenance import shows_rows
from headwater.maintenance.published.telescope import telescope
from headwater.maintenance.published.terms import steps_to
from headwater.model.position import Tick
from headwater.views.steps.join import JoinView
from headwater_lab.chance import chances_for, play
from headwater_lab.entrants import entrant
from headwater_lab.world import Rebased, Sent, World

SEEDS = volume(150, 1_000)
LEAST = 0.05


def _views_can(view: JoinView) -> Counter[str]:
    """Count what a view admits, once for each of its steps."""
    aliases = {one.alias for one in view.occurrences}
    relations = [one.relation.name for one in view.occurrences]
    sources = Counter(name.source for name in set(relations))
    return Counter(
        {
            "rows are found in the view": any(
                shows_rows(view, step) for alias in aliases for step in steps_to(view, alias, aliases - {alias})
            ),
            "a reference makes a part irrelevant": bool(references(view)),
            "a source goes on by itself": max(sources.values()) > 1,
            "a relation appears twice": len(set(relations)) < len(relations),
            "the view is cyclic": len(view.edges) >= len(aliases),
            "the view is a star": any(
                sum(alias in (edge.left, edge.right) for edge in view.edges) > 2 for alias in aliases
            ),
        }
    )


@pytest.fixture(scope="module")
def counted() -> tuple[int, Counter[str], Counter[str]]:
    """Play `version-numbers-from-view`, which has all of them, and count steps, what they admit, and what they use."""
    described = entrant("version-numbers-from-view")
    assert described.run is not None
    steps, admitted, used = 0, Counter[str](), Counter[str]()
    look = World._look

    def counting(world: World, query: Query[Any]) -> Answered[Any]:
        answered = look(world, query)
        used["rows are found in the view"] += any(len(rows) for part in answered.found for _, rows in part)
        return answered

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(World, "_look", counting)
        for seed in range(SEEDS):
            world = play(seed, described.run, chances_for(described))
            view, ledger = world.setting.view, world.ledger
            able = _views_can(view)
            for tick in range(1, ledger.last_tick + 1):
                changes = changes_of(view, ledger, Tick(tick - 1), Tick(tick))
                changed = {one.alias for one in view.occurrences if len(changes[one.relation.name])}
                if not changed:
                    continue
                steps += 1
                admitted += able
                parts = telescope(view, changes)
                used["deletes go by key"] += bool(parts.removed)
                used["rows are modified in place"] += bool(parts.modified)
                left_out = changed - set(parts.computed) - set(parts.removed) - set(parts.modified)
                used["a reference makes a part irrelevant"] += bool(left_out)
                used["a transaction has several parts"] += len(changed) > 1
                used["a row is modified"] += any(
                    len(rows.positive()) and len(rows.negated().positive()) for rows in changes.values()
                )
            for event in world.events:
                if isinstance(event, Sent):
                    used["a source goes on by itself"] += any(len(part.steps) > 1 for part in event.query.parts)
                used["an answer is rebased"] += isinstance(event, Rebased)
    return steps, admitted, used


@pytest.mark.parametrize(
    "what",
    [
        "rows are found in the view",
        "a reference makes a part irrelevant",
        "a source goes on by itself",
        "a relation appears twice",
        "the view is cyclic",
        "the view is a star",
    ],
)
def test_is_admissible(what: str, counted: tuple[int, Counter[str], Counter[str]]) -> None:
    steps, admitted, _ = counted
    assert admitted[what] >= LEAST * steps, f"{what}: {admitted[what]} of {steps}"


@pytest.mark.parametrize(
    "what",
    [
        "rows are found in the view",
        "deletes go by key",
        "a reference makes a part irrelevant",
        "a transaction has several parts",
        "a row is modified",
        "a source goes on by itself",
        "an answer is rebased",
    ],
)
def test_is_used(what: str, counted: tuple[int, Counter[str], Counter[str]]) -> None:
    steps, _, used = counted
    assert used[what] >= LEAST * steps, f"{what}: {used[what]} of {steps}"
