"""Strobe: ask every source about an insert, never correct an answer, take out by key what was deleted meanwhile.

Law. In a view that holds the keys of all its relations an answer may be wrong in two ways only. Both are corrected
without asking again: it may hold rows that were deleted since (their keys are on the query's list), and rows that the
query of another insert found too (equal keys: the same row). `action_list` has the argument.

    s1: R1 +(3,5)   ── ask R2 ──►
    s2: R2 +(5,7)   ── ask R1 ──►
                    ◄── R2: (5,7)       s1's answer: (3,5,7)
                    ◄── R1: (3,5)       s2's answer: (3,5,7), the same row: once
    s3: R2 -(5,7)   in either answer it is taken out by its key, also while that answer is on its way

Invariants
  1. A query's list holds the deletes delivered after it was sent; those before it cannot be in its answers.
  2. A transaction's deletes come before its inserts, so that a modification does not take out its own new row.
  3. Nothing is installed while a query is open: an install holds whole transactions, up to the last one delivered.

Guarantee: strong. While inserts keep coming faster than answers, nothing is installed at all.
Cost: n - 1 queries for each occurrence that a transaction inserts into, 0 for deletes; fewer if an answer is empty.
Needs: the primary key of every relation among the view's columns.

Paper: described in 000, §3. No erratum: keys may be used again, and an occurrence of a self-join counts as a relation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headwater.maintenance.published.action_list import Terms, collect_until_quiet
from headwater.maintenance.published.messages import Running, ViewHistory
from headwater.maintenance.published.terms import Term
from headwater.maintenance.walk import Questions, walk_as_answered
from headwater.model.position import Tick
from headwater.views.steps.join import JoinView


def strobe(view: JoinView, lo: Tick, log: ViewHistory[Any]) -> Running:
    """Ask one source after another about each insert. Install when no query is open."""
    return collect_until_quiet(view, lo, log, _one_source_after_another)


def _one_source_after_another(view: JoinView, inserted: Terms) -> Sequence[Questions[Terms]]:
    return [_found(view, term) for term in inserted]


def _found(view: JoinView, term: Term[Any]) -> Questions[Terms]:
    found = yield from walk_as_answered(view, term)
    return (found,)
