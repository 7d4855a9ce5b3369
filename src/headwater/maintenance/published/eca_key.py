"""ECA-Key: one source, one query for a transaction's inserts, nothing to compensate.

Law. All relations are at one source, which answers a query from one state. Where the view holds all keys, what such an
answer has too much is deleted by key or found a second time (`action_list`); so an insert needs one query and no
compensating one, and a delete needs none.

    s1: R1 +(3,0)   ── ask R2, R3 at once ──►
    s2: R1 -(3,0)   on the query's list
                    ◄── (3,0,0)     taken out: it was deleted while its own query was open

Invariants: those of Strobe.

Guarantee: strong, with quiescence. Cost: 1 query for a transaction with inserts, 0 for one of deletes only.
Needs: all relations at one source, and the primary key of every relation among the view's columns.

Paper: described in 000, §3 (ECA), with the keys of Strobe. Erratum (PAPERS.md §2.2.11): a delete applied only to what
has been collected misses the answer that is still on its way (403 of 2,000 runs end wrong).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headwater.maintenance.published.action_list import Terms, collect_until_quiet
from headwater.maintenance.published.messages import QueryPart, Running, ViewHistory
from headwater.maintenance.published.terms import steps_from
from headwater.maintenance.walk import Questions
from headwater.model.position import Tick
from headwater.views.steps.join import JoinView


def eca_key(view: JoinView, lo: Tick, log: ViewHistory[Any]) -> Running:
    """Ask the source once about a transaction's inserts. Install when no query is open."""
    return collect_until_quiet(view, lo, log, ask_at_once)


def ask_at_once(view: JoinView, inserted: Terms) -> Sequence[Questions[Terms]]:
    """Return one query with a part for each occurrence that was inserted into, or None if there is none."""
    return [_found_at_once(view, inserted)] if inserted else []


def _found_at_once(view: JoinView, inserted: Terms) -> Questions[Terms]:
    parts = tuple(QueryPart(carried=term.bound, steps=steps_from(view, set(term.bound))) for term in inserted)
    if len(view.occurrences) == 1:
        return inserted
    answered = yield ((view.occurrences[0].relation.name.source, parts),)
    found = []
    for term, part, steps in zip(inserted, parts, answered.found, strict=True):
        for step, (_, rows) in zip(part.steps, steps, strict=True):
            term = term.bind(step.alias, rows)  # noqa: PLW2901 - bound further, step by step
        found.append(term)
    return tuple(found)
