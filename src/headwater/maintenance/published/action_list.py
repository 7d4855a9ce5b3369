"""Action list: note deletes and answers as they come, and install them together once no answer is awaited.

Both algorithms that wait for quiescence and know rows by their keys, Strobe and ECA-Key, are this; they differ in how
they ask.

    delete      its key is taken out of the answers that are there, goes on the list of every query that is still open,
                and will take rows out of the view
    insert      opens a query; nothing is taken out of its answer but what was deleted while it was open
    quiescence  take the deleted keys out of the view, add every answer's rows, each row once

Law. Let T be the last tick delivered when no query is open. A row of the view at T is made of rows that are there at T;
the query of the one that was inserted last was sent when all others were there, and no delete on its list is theirs, so
it found them. A row that is not of T holds some row deleted since: by a delete that came while its query was open, or
after it had ended. Channels keep their order, so there is no third case.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headwater.maintenance.published.by_key import DeletedKeys, deleted_keys, inserted_terms, with_keys, without_keys
from headwater.maintenance.published.messages import (
    Answered,
    Delivered,
    Effect,
    Install,
    Running,
    ViewHistory,
    changes_of,
)
from headwater.maintenance.published.terms import Term
from headwater.maintenance.walk import Questions, Walks
from headwater.model.position import Tick
from headwater.views.steps.join import JoinView

Terms = tuple[Term[Any], ...]

AskFor = Callable[[JoinView, Terms], Sequence[Questions[Terms]]]
"""How the inserts of a transaction are asked about: one query for all of them, or one for each."""

Remember = Callable[[DeletedKeys, DeletedKeys], DeletedKeys]
"""What is on an open query's list after a delete: the list, and the delete's keys, give the list."""


class _ActionList:
    """What the view waits for: deleted keys, the answers that are there, and the list of each open query."""

    def __init__(self, view: JoinView, remember: Remember) -> None:
        self._view = view
        self._remember = remember
        self._removed: DeletedKeys = {}
        self._terms: list[Term[Any]] = []
        self._pending: dict[int, DeletedKeys] = {}

    def delete(self, keys: DeletedKeys) -> None:
        """Note a delete: for the view, for the answers that are there, and for those still on their way."""
        self._removed = with_keys(self._removed, keys)
        self._terms = [without_keys(self._view, term, keys) for term in self._terms]
        self._pending = {number: self._remember(pending, keys) for number, pending in self._pending.items()}

    def opened(self, number: int) -> None:
        """Begin a query's list."""
        self._pending[number] = {}

    def closed(self, number: int, terms: Terms) -> None:
        """Take over a query's answer, without what was deleted while it was open."""
        pending = self._pending.pop(number)
        self._terms += [without_keys(self._view, term, pending) for term in terms]

    def install(self, upto: Tick) -> Install[Any]:
        """Return everything collected, as one change of the view, and start again."""
        terms = tuple(term.at(upto) for term in self._terms if not term.is_empty)
        install = Install(upto=upto, terms=terms, removed=self._removed, distinct=True)
        self._removed, self._terms = {}, []
        return install


def collect_until_quiet(
    view: JoinView, lo: Tick, log: ViewHistory[Any], ask: AskFor, remember: Remember = with_keys
) -> Running:
    """Maintain a view that holds all keys: deletes by key, inserts by asking, installs when no query is open."""
    walks: Walks[Terms] = Walks()
    actions = _ActionList(view, remember)
    delivered = installed = lo
    effects: list[Effect] = []
    while True:
        event = yield effects
        effects = []
        match event:
            case Delivered():
                assert event.tick == delivered + 1, "ticks are delivered in order, none left out"
                changes = changes_of(view, log, delivered, event.tick)
                delivered = event.tick
                actions.delete(deleted_keys(view, changes))
                for questions in ask(view, inserted_terms(view, delivered, changes)):
                    number, queries = walks.start(questions)
                    actions.opened(number)
                    effects += queries
            case Answered():
                effects += walks.take(event)
        for number, terms in walks.finished():
            actions.closed(number, terms)
        if walks.is_quiet and installed < delivered:
            effects.append(actions.install(delivered))
            installed = delivered
