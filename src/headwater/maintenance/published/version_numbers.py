"""Version numbers: every answer says what it was read at, so channels may lose, repeat and reorder messages.

Law. An answer read at version b of its source, needed at version a, is brought there by the changes between:

    R@a = R@b - changes (a, b]   if b >= a       (interfering changes)
    R@a = R@b + changes (b, a]   if b < a        (missing changes)

Nothing is inferred from the order in which messages arrive; it is only needed that every change up to b is known. That,
and that each source's transactions are accepted once and in order, is seen to by the change log, and in the lab by
`headwater_lab/acceptance`.

    source 1:  R2 +(0,1)  ─────────────────►  accepted, ask R1 ...
    source 2:  R1 -(0,0)  ── lost             answer of R1: empty, read at version 1 of source 2
                                              version 1 is not known: let source 2 send it again, then use the
                                              answer: + (0,0), it was there before version 1

The paper's version numbers, and what they are here
  data-source version         counts a source's transactions; on every notification and every answer
  base-relation version       the last data-source version that wrote the relation; the log knows, so nothing is counted
  highest-processing version  per source, the last version accepted: all up to it have a tick
  initial versions            the states a change is computed from: those of the tick before and of the tick itself
  queried version             what an answer saw (its `sight`); of the answer, not of its rows: an empty one has it too
  refreshed version           the last tick installed

Invariants
  1. A transaction's parts are telescoped: neither "all before" nor "all after" are right initial versions when it
     changes several relations, or one that appears twice.
  2. Any number of transactions are computed at once; installs follow the order of acceptance (`in_order`).
  3. A source is asked once for all its relations that hang together, and answers with the rows of each and the
     executed keys; keys that rebasing makes necessary and that were not executed are asked for (`visits`).
  4. Parts that a foreign key makes irrelevant ask no source; deletes take rows out by key where the view holds it,
     and modifications of what is only shown are done there (`telescope`).

Guarantee: complete, also on channels with faults. Cost: one query for each source that a transaction's terms have to go
to, and a follow-up where a concurrent delete hid the way on.

Paper: 001. Errata (PAPERS.md §4): versions on rows (Lemma 1; 229 of 1,000 runs end wrong), one vector of initial
versions, no protocol for loss, order of completion, follow-ups that cost a message and are not counted.
`self_maintaining` looks for rows in the view itself before it asks a source (Lemma 2, safe form). A modification is one
change with two rows, whose keys are asked for together; it is not done in place (Lemma 3, see `telescope`). What each
of these does when it is taken literally is in `headwater_lab/literal`, with a scenario in which it fails.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headwater.maintenance.published.in_order import Ready, in_order, oldest_first, one_by_one
from headwater.maintenance.published.messages import Install, Running, ViewHistory, changes_of
from headwater.maintenance.published.self_maintenance import shows_rows
from headwater.maintenance.published.telescope import Parts, telescope
from headwater.maintenance.published.terms import Term
from headwater.maintenance.visits import Begun, Manner, visit_sources
from headwater.maintenance.walk import Questions
from headwater.model.position import Tick
from headwater.views.steps.join import JoinView

IN_FLIGHT = 8
_CLOSURE = Manner(closure=True)


def version_numbers(view: JoinView, lo: Tick, log: ViewHistory[Any]) -> Running:
    """Compute for several transactions at once, each source visited with all that hangs together there."""
    return by_versions(view, lo, log)


def self_maintaining(view: JoinView, lo: Tick, log: ViewHistory[Any]) -> Running:
    """As by version numbers, but look for rows in the view itself before a source is asked (`self_maintenance`)."""
    return by_versions(view, lo, log, manner=Manner(closure=True, looks=shows_rows))


def by_versions(
    view: JoinView,
    lo: Tick,
    log: ViewHistory[Any],
    *,
    manner: Manner = _CLOSURE,
    ready: Ready = oldest_first,
    take_apart: Parts = telescope,
) -> Running:
    """Compute by version numbers, with a given manner of visiting, order of installing, and parts of a transaction."""

    def compute(tick: Tick, latest: Callable[[], Tick]) -> Questions[Install[Any]]:
        changes = changes_of(view, log, Tick(tick - 1), tick)
        parts = take_apart(view, changes)
        begun = Begun(
            terms=tuple(Term(tick=tick, bound={a: changes[view.occurrence(a).relation.name]}) for a in parts.computed),
            changes=changes,
            needed=lambda alias, start: parts.needed(alias, start, tick),
            concurrent=lambda name: log.changes(name, view.relations[name], Tick(tick - 1), latest()),
        )
        terms = yield from visit_sources(view, begun, log, manner)
        return Install(upto=tick, terms=terms, removed=parts.removed, modified=parts.modified)

    return in_order(lo, lambda tick, latest: one_by_one(compute(tick, latest)), in_flight=IN_FLIGHT, ready=ready)
