"""Walk: bind the occurrences of a term one after another, and take out of every answer what does not belong in it.

    term {S: +(2, 5)}  ── ask R through S ──►  answer of R  ── rebase to the tick needed ──►  {S: +(2, 5), R: (9, 2)}

This is the inner loop of SWEEP and of all that is built on it. It asks one question at a time and does not know what
else is in the air: `Walks` lets any number of them wait for their answers together. Others ask several sources at once.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, Generic, TypeVar

from headwater.deltas.lookup import B, RowRequest, RowResult
from headwater.maintenance.published.messages import Answered, Query, QueryPart
from headwater.maintenance.published.terms import Term, TermStep, steps_from
from headwater.maintenance.rebase import Log, rebase
from headwater.model.position import Tick
from headwater.views.steps.join import JoinView

R = TypeVar("R")

Round = Sequence[tuple[str, tuple[QueryPart[Any], ...]]]
"""Sources, and what to ask each: they are asked at once."""

Questions = Generator[Round, Answered[Any], R]
"""Yields a round, is sent its answers one by one as they arrive, and returns what it found.

While it waits for more answers of a round it yields an empty one.
"""

Correct = Callable[[RowRequest[Any], RowResult[Any]], Any]
"""What an answer is taken for: a request and its result give the rows of the occurrence that they are about."""


def walk(
    view: JoinView, term: Term[B], log: Log[B], needed: Callable[[str], Tick], within: set[str] | None = None
) -> Questions[Term[B]]:
    """Bind every occurrence of a view (or of a part of it) to its rows at the tick that is `needed` of it."""
    for step in steps_from(view, set(term.bound), within):
        if term.is_empty:
            return term
        (term,) = yield from bind_step(view, step, (term,), log, needed(step.alias))
    return term


def walk_as_answered(view: JoinView, term: Term[B]) -> Questions[Term[B]]:
    """Bind every occurrence of a view to the rows that its answer holds, whatever that answer saw."""
    for step in steps_from(view, set(term.bound)):
        if term.is_empty:
            return term
        (term,) = yield from _bind(view, step, (term,), lambda _, result: result.rows)
    return term


def bind_step(
    view: JoinView, step: TermStep, terms: tuple[Term[B], ...], log: Log[B], needed: Tick
) -> Questions[tuple[Term[B], ...]]:
    """Bind one occurrence in several terms, to its rows at one tick: one message, one part for each term.

    An occurrence that is read whole is read once for all of them.
    """
    return _bind(view, step, terms, lambda request, result: rebase(request, result, log, needed))


def _bind(
    view: JoinView, step: TermStep, terms: tuple[Term[B], ...], correct: Correct
) -> Questions[tuple[Term[B], ...]]:
    carried = [{step.via: term.bound[step.via]} for term in terms] if step.via is not None else [{}]
    source = view.occurrence(step.alias).relation.name.source
    answered = yield ((source, tuple(QueryPart(carried=rows, steps=(step,)) for rows in carried)),)
    found = [correct(*only) for (only,) in answered.results]
    if step.via is None:
        found *= len(terms)
    return tuple(term.bind(step.alias, rows) for term, rows in zip(terms, found, strict=True))


class Walks(Generic[R]):
    """Open questions: numbers the queries, and returns every answer to its asker."""

    def __init__(self) -> None:
        """Begin with nothing in the air."""
        self._open: dict[int, tuple[int, Questions[R]]] = {}
        self._finished: list[tuple[int, R]] = []
        self._last = 0
        self._started = 0

    @property
    def is_quiet(self) -> bool:
        """Whether no answer is awaited."""
        return not self._open

    def start(self, questions: Questions[R]) -> tuple[int, Sequence[Query[Any]]]:
        """Begin to ask, and return a number for it, and the first queries, if there are any."""
        self._started += 1
        return self._started, self._go_on(questions, self._started, None)

    def take(self, answered: Answered[Any]) -> Sequence[Query[Any]]:
        """Give an answer to its asker, and return the next queries, if there are any."""
        started, questions = self._open.pop(answered.number)
        return self._go_on(questions, started, answered)

    def finished(self) -> list[tuple[int, R]]:
        """Return what came to its end since this was last asked: the numbers `start` gave, and the results."""
        finished, self._finished = self._finished, []
        return finished

    def _go_on(self, questions: Questions[R], started: int, answered: Answered[Any] | None) -> Sequence[Query[Any]]:
        try:
            asked = next(questions) if answered is None else questions.send(answered)
        except StopIteration as end:
            self._finished.append((started, end.value))
            return ()
        queries = []
        for source, parts in asked:
            self._last += 1
            self._open[self._last] = (started, questions)
            queries.append(Query(number=self._last, source=source, parts=parts))
        return queries
