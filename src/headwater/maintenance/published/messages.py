"""What travels between a warehouse and its sources, as far as an algorithm is concerned.

A published algorithm is a generator that lives as long as its view. It yields the queries it sends and the changes it
installs, and is sent the next thing that arrives: a transaction, or an answer.

    effects = next(algorithm)                 nothing yet
    effects = algorithm.send(Delivered(7))    Query 1 to source s
    effects = algorithm.send(Delivered(8))    nothing: it waits for the answer
    effects = algorithm.send(Answered(1))     Install up to tick 7

Channels keep their order, unless the algorithm can do without (`needs_order`): an answer arrives after all transactions
that it saw and before all that it did not see. The driver of the algorithm takes care of that, in the lab and on live
sources; the sight of an answer is then the last tick delivered before it. Without order it is what the answer saw.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol

from headwater.deltas.lookup import B, B_co, RowRequest, RowResult, Sight, restricted
from headwater.deltas.signed_bag import Keys
from headwater.maintenance.published.terms import Term, TermStep
from headwater.model.position import Tick
from headwater.model.relation import RelationName
from headwater.views.steps.join import JoinView


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryPart(Generic[B]):
    """One of a query's questions: from the rows sent along, step to occurrences of the source, one after another.

    `keys` are the keys of the first step where they are sent instead of the rows they come from.
    """

    carried: Mapping[str, B]
    steps: tuple[TermStep, ...]
    keys: Keys | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Query(Generic[B]):
    """One message to one source. All of it is answered from one state of the source, in one message."""

    number: int
    source: str
    parts: tuple[QueryPart[B], ...]


Found = tuple[tuple[tuple[RowRequest[Any], B], ...], ...]
"""What a query found, part by part and step by step: each request, and its rows. Not a join: rows stay apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered(Generic[B]):
    """An answer arrived: what a query found, all of it in one state of the source, and what that state had seen."""

    number: int
    found: Found[B]
    sight: Sight

    @property
    def results(self) -> tuple[tuple[tuple[RowRequest[Any], RowResult[B]], ...], ...]:
        """The requests of each part, step by step, and their results."""
        return tuple(
            tuple((request, RowResult(rows=rows, sight=self.sight)) for request, rows in part) for part in self.found
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """A transaction arrived: it is in the log under this tick."""

    tick: Tick


@dataclass(frozen=True, slots=True, kw_only=True)
class Install(Generic[B]):
    """Bring the view to a tick: take out the rows with these keys, modify others, then add what the terms give.

    `removed` are, per occurrence, key values: every row of the view that was made from such a row goes. `modified` are,
    per occurrence and in their order, new rows under keys that stay: every row of the view that was made from one with
    the key shows the new one's columns. With `distinct` a row that the terms give more than once counts once, and one
    that is there already is not added: for views that hold the keys of all their relations, where no row can be there
    twice.
    """

    upto: Tick
    terms: tuple[Term[B], ...] = ()
    removed: Mapping[str, Keys] = field(default_factory=dict)
    modified: Mapping[str, B] = field(default_factory=dict)
    distinct: bool = False


VIEW = ""
"""Not a source: a query to it reads the view's own rows, as they are at the tick last installed.

The driver answers it at once, and counts no message. Each of its parts has one step, to an occurrence by its key,
and the keys to look for. The answer's rows are the occurrence's rows that the view shows, each once; its request names
the keys that were found and no others, because what a view does not show may still be there; its sight is that tick.
"""

Event = Delivered | Answered[Any]
Effect = Query[Any] | Install[Any]
Running = Generator[Sequence[Effect], Event, None]


class ViewHistory(Protocol[B_co]):
    """The log as a published algorithm sees it: what was delivered, by tick, and what rebasing asks for."""

    def changes(self, relation: RelationName, columns: tuple[str, ...], after: Tick, upto: Tick) -> B_co:
        """Return the signed rows of the ticks (after, upto]."""
        ...

    def seen_after(self, relation: RelationName, columns: tuple[str, ...], sight: Sight, tick: Tick) -> B_co:
        """Return the signed rows of the transactions that were seen and whose tick is after this one."""
        ...

    def unseen_upto(self, relation: RelationName, columns: tuple[str, ...], sight: Sight, tick: Tick) -> B_co:
        """Return the signed rows of the transactions that were not seen and whose tick is not after this one."""
        ...


Algorithm = Callable[[JoinView, Tick, ViewHistory[Any]], Running]
"""Begins at a view that is right at a tick; every later tick is delivered, in order."""


def changes_of(view: JoinView, log: ViewHistory[B], after: Tick, upto: Tick) -> dict[RelationName, B]:
    """Return what the ticks (after, upto] changed in each relation of a view, netted."""
    return {name: log.changes(name, columns, after, upto).net() for name, columns in view.relations.items()}


def answer_part(
    view: JoinView, part: QueryPart[B], like: Callable[[RelationName], B], ask: Callable[[RowRequest[Any]], B]
) -> tuple[tuple[RowRequest[Any], B], ...]:
    """Take a part's steps at a source: each step's keys come from the rows sent along or from the steps before it.

    `like` gives a bag of a relation, maybe empty, whose column types the keys take; `ask` performs one probe.
    """
    rows: dict[str, B] = dict(part.carried)
    found: list[tuple[RowRequest[Any], B]] = []
    for step in part.steps:
        relation = view.occurrence(step.alias).relation.name
        keys = part.keys if step is part.steps[0] else None
        if keys is None and step.via is not None:
            keys = rows[step.via].keys(step.via_columns, like(relation), step.columns)
        request = step_request(view, step, keys)
        rows[step.alias] = ask(request)
        found.append((request, rows[step.alias]))
    return tuple(found)


def step_request(view: JoinView, step: TermStep, keys: Keys | None) -> RowRequest[Any]:
    """Return the request for the rows of an occurrence that a step leads to, or for all of them without keys."""
    relation = view.occurrence(step.alias).relation.name
    return RowRequest(relation=relation, wanted=view.relations[relation], within=restricted(step.columns, keys))
