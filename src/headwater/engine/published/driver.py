"""A published algorithm at work on live sources: what it sends is asked, what arrives is delivered in order.

Most papers' channels keep their order: an answer arrives after every transaction that it saw and before every one that
it did not see. A source gives answers and its log on separate connections, so the order is made here:

    query to s sent ──► snapshot of s ──► the log is followed past what it saw ──► rows
                                                       │
    ticks of other sources go on;  ticks of s wait  ───┘  seen ones are delivered, then the answer, then the others

An algorithm that goes by version numbers is not made to wait: ticks are delivered as they are accepted, an answer when
it comes, with the set of transactions that it saw.

Invariants
1. Where order is needed: while a query to a source is open, no transaction of that source is delivered unless the
   answer is known to have seen it.
2. An answer that has no place in the order (`placing`) is asked for again. Without order, one that saw half a tick is.
3. An answer that saw a TRUNCATE can be brought to no tick before it: the view stops where it is.
4. An algorithm begins where the view's table ends. What it holds is in memory only: after a crash it begins again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from headwater.changelog.accept import Acceptor
from headwater.changelog.change_log import ChangeLog
from headwater.deltas.lookup import NO_TICK, RowRequest, SawTicks, SawTransactions, Sight, look_up
from headwater.deltas.on_arrow import ArrowBag, ArrowRequest
from headwater.deltas.stored_bag import ALL_ROWS, held
from headwater.engine.batch.join_batch import ViewChange
from headwater.engine.batch.round import Outcome
from headwater.engine.published.install import install_on_spark
from headwater.engine.state.accepted_log import AcceptedLog, held_changes
from headwater.engine.state.live_view import LiveView
from headwater.engine.state.source_lookup import SourceLookup, require_followed
from headwater.engine.state.stored_segment import StoredSegment
from headwater.engine.state.truncation import before_truncate
from headwater.engine.state.view_lookup import Shown, ViewLookup, stored_view
from headwater.errors import HeadwaterError, SourceUnavailable
from headwater.maintenance.placing import is_half_seen, place, seen_upto
from headwater.maintenance.published.messages import (
    VIEW,
    Algorithm,
    Answered,
    Delivered,
    Effect,
    Event,
    Found,
    Install,
    Query,
    QueryPart,
    answer_part,
    step_request,
)
from headwater.model.position import Tick
from headwater.model.relation import RelationName
from headwater.model.transaction import Seen
from headwater.observe.events import Listener
from headwater.observe.probe_stats import ProbeStats
from headwater.project.resolve import ResolvedProject
from headwater.spark.view_errors import is_view_error, stopping_error
from headwater.storage.storage_errors import befalls_all
from headwater.views.steps.join import JoinView


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """What a source answered, and what it had seen."""

    found: Found[ArrowBag]
    seen: Seen


@dataclass(slots=True, kw_only=True)
class _Open:
    """A query under way. Everything up to `after` was visible when it was sent, `asked` is what it has cost.

    Once the answer is there, it saw everything up to `seen_upto`, and is delivered when `place` is.
    """

    query: Query[ArrowBag]
    reading: Future[_Read]
    asked: ProbeStats
    """The thread that reads writes it. It is looked at after the read has ended."""
    after: Tick
    read: _Read | None = None
    seen_upto: Tick = NO_TICK
    place: Tick = NO_TICK


Ask = Callable[[Query[ArrowBag], ProbeStats], _Read]
"""Asks a source, and writes down what that costs."""


class Correspondences:
    """The correspondence of every view that a published algorithm maintains."""

    def __init__(
        self, spark: SparkSession, resolved: ResolvedProject, log: ChangeLog, acceptor: Acceptor, listener: Listener
    ) -> None:
        """Begin with none. A view's begins when it is first due."""
        self._make = partial(
            Correspondence, spark=spark, resolved=resolved, log=log, acceptor=acceptor, listener=listener
        )
        self._by_view: dict[LiveView, Correspondence] = {}
        self._settings = resolved.project.settings.batch

    def advance(self, due: Sequence[LiveView]) -> dict[str, Outcome]:
        """Return how far each of these views comes that a published algorithm maintains.

        Answers are waited for before what can be installed is installed: one Spark job then serves many ticks.
        """
        corresponding = {view.name: self._of(view) for view in due if view.resolved.algorithm.run is not None}
        deadline = time.monotonic() + self._settings.answer_wait_seconds
        while True:
            for one in corresponding.values():
                one.deliver()
            waiting = [reading for one in corresponding.values() for reading in one.open_readings()]
            left = deadline - time.monotonic()
            if not waiting or left <= 0:
                return {name: one.outcome() for name, one in corresponding.items()}
            wait(waiting, left, FIRST_COMPLETED)

    def _of(self, view: LiveView) -> Correspondence:
        if view not in self._by_view:
            assert view.resolved.algorithm.run is not None, "a view of a published algorithm"
            self._by_view[view] = self._make(view=view, algorithm=view.resolved.algorithm.run)
        return self._by_view[view]

    def close(self) -> None:
        """Ask nothing more."""
        for correspondence in self._by_view.values():
            correspondence.close()


class Correspondence:
    """Plays one view's algorithm against its sources."""

    def __init__(
        self,
        *,
        spark: SparkSession,
        view: LiveView,
        algorithm: Algorithm,
        resolved: ResolvedProject,
        log: ChangeLog,
        acceptor: Acceptor,
        listener: Listener,
    ) -> None:
        """Begin where the view's table ends."""
        self._spark = spark
        self._view = view
        self._resolved = resolved
        self._few_rows = resolved.project.settings.batch.lookup_rows
        self._log = log
        self._settled: dict[str, Tick] = {}
        self._accepted = AcceptedLog(log, {}, held_changes(log))
        self._acceptor = acceptor
        self._listener = listener
        self._delivered = view.frontier
        self._end = view.frontier
        self._halt: HeadwaterError | None = None
        self._needs_order = view.resolved.algorithm.needs_order
        self._closed = threading.Event()
        self._open: dict[int, _Open] = {}
        self._installs: list[Install[ArrowBag]] = []
        self._asked: list[ProbeStats] = []
        self._pool = ThreadPoolExecutor(4, thread_name_prefix=f"ask for {view.name}")
        self._running = algorithm(view.resolved.join, view.frontier, self._accepted)
        self._act(next(self._running))

    def close(self) -> None:
        """Ask nothing more."""
        self._closed.set()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def open_readings(self) -> list[Future[_Read]]:
        """Return the questions that no source has answered yet."""
        return [one.reading for one in self._open.values() if not one.reading.done()]

    def deliver(self) -> None:
        """Hand over to the algorithm whatever has arrived, in the one order that is right."""
        view = self._view
        relations = list(view.resolved.join.relations)
        self._end, self._halt = before_truncate(self._log, view.name, relations, view.frontier, self._log.last_tick)
        try:
            while self._deliver_next():
                pass
        except HeadwaterError as error:
            if befalls_all(error):
                raise
            self._end, self._halt = view.frontier, error

    def outcome(self) -> Outcome:
        """Return how far the view comes by what was delivered, and its changes on the way."""
        started, lo = time.perf_counter(), self._view.frontier
        installs, self._installs = self._installs, []
        if not installs:
            return Outcome(upto=lo, halt=self._halt if lo == self._end else None)
        upto = installs[-1].upto
        asked = ProbeStats.merge(self._asked)
        self._asked.clear()
        try:
            rows = install_on_spark(self._spark, self._view, installs, self._few_rows)
        except Exception as error:  # what is not the view's own is raised again
            if not is_view_error(error):
                raise
            return replace(self._stopped(error, installs), asked=asked)
        change = ViewChange(rows=ArrowBag(rows), seconds_asking=0.0, seconds_joining=time.perf_counter() - started)
        return Outcome(upto=upto, change=change, halt=self._halt if upto == self._end else None, asked=asked)

    def _stopped(self, error: Exception, installs: Sequence[Install[ArrowBag]]) -> Outcome:
        """Return how far the view comes before the install that raises, and why it stops there."""
        good: list[Install[ArrowBag]] = []
        rows: pa.Table | None = None
        for install in installs:
            try:
                rows = install_on_spark(self._spark, self._view, [*good, install], self._few_rows)
            except Exception as again:
                if not is_view_error(again):
                    raise
                break
            good.append(install)
        last = good[-1].upto if good else self._view.frontier
        failed = installs[len(good)].upto
        (tick, transaction), *_ = self._log.transactions(None, Tick(failed - 1), failed)
        halt = stopping_error(self._view.name, error, tick, transaction)
        change = None if rows is None else ViewChange(rows=ArrowBag(rows), seconds_asking=0.0, seconds_joining=0.0)
        return Outcome(upto=last, change=change, halt=halt)

    def _deliver_next(self) -> bool:
        """Hand over the next answer or transaction. False if there is none, or it has to wait."""
        self._take_answers()
        following = Tick(self._delivered + 1)
        for one in self._open.values():
            if one.read is not None and one.place <= self._delivered:
                self._answer(one, one.read)
                return True
        if following > self._end or self._must_wait(following):
            return False
        self._delivered = following
        self._send(Delivered(tick=following))
        return True

    def _must_wait(self, tick: Tick) -> bool:
        """Tell whether a transaction has to wait for an answer of its source that has not seen it, or may not have."""
        if not self._open or not self._needs_order:
            return False
        sources = {transaction.source for _, transaction in self._log.transactions(None, Tick(tick - 1), tick)}
        return any(
            one.query.source in sources and (one.read is None or one.place < tick) for one in self._open.values()
        )

    def _take_answers(self) -> None:
        """Find the place of every answer that has come. Ask again for one that has none."""
        for number, one in self._open.items():
            if one.read is not None or not one.reading.done():
                continue
            try:
                read = one.reading.result()
            except SourceUnavailable:
                self._ask_again(number, one, self._ask_later)
                continue
            if not self._place(one, read):
                self._ask_again(number, one, self._ask)

    def _ask_again(self, number: int, one: _Open, ask: Ask) -> None:
        """Send a query once more. What it cost in vain counts too."""
        self._tell(one.asked)
        self._open[number] = self._sent(one.query, ask)

    def _place(self, one: _Open, read: _Read) -> bool:
        """Find where an answer belongs: after a tick that it saw, or, without order, here. Tell whether it does.

        One that saw past where the view can go belongs nowhere, and so will any other: the view stops.
        """
        source, seen = one.query.source, read.seen
        known = self._log.identities(source, one.after, self._log.last_tick)
        one.seen_upto = seen_upto(known, seen, one.after)
        self._settled[source] = max(self._settled.get(source, NO_TICK), one.seen_upto)
        if self._needs_order:
            placed = place(known, seen, one.after, self._delivered)
        else:
            placed = None if is_half_seen(known, seen) else NO_TICK
        if placed is None:
            return False
        saw_end = any(tick == self._end + 1 and seen.sees(identity, log) for tick, identity, log in known)
        if self._halt is not None and (saw_end or placed > self._end):
            raise self._halt
        one.read, one.place = read, placed
        return True

    def _answer(self, one: _Open, read: _Read) -> None:
        query = one.query
        del self._open[query.number]
        self._send(Answered(number=query.number, found=read.found, sight=self._sight(one, read.seen)))
        one.asked.take_corrected(self._accepted.corrected)
        self._tell(one.asked)

    def _tell(self, asked: ProbeStats) -> None:
        """Say what was asked, and keep it for the install that it was asked for."""
        self._asked.append(asked)
        asked.tell(self._listener, self._view.name)

    def _sight(self, one: _Open, seen: Seen) -> Sight:
        if self._needs_order:
            return SawTicks(upto=self._delivered)
        return SawTransactions(seen=seen, upto=one.seen_upto)

    def _send(self, event: Event) -> None:
        self._act(self._running.send(event))

    def _act(self, effects: Sequence[Effect]) -> None:
        looks: list[Query[ArrowBag]] = []
        for effect in effects:
            match effect:
                case Query(source=source) if source == VIEW:
                    looks.append(effect)
                case Query():
                    self._open[effect.number] = self._sent(effect, self._ask)
                case Install():
                    self._installs.append(effect)
        for look in looks:
            self._send(self._shown(look))

    def _shown(self, query: Query[ArrowBag]) -> Answered[ArrowBag]:
        """Answer a query to the view itself, as of the tick that its table is committed to.

        What was installed since and is not committed is not seen; the answer says so, and is rebased from there.
        """
        view, join = self._view, self._view.resolved.join
        table = stored_view(self._spark, view.resolved.view, view.table, view.frontier, self._few_rows, ALL_ROWS)
        found = tuple((_shown_rows(table, join, part),) for part in query.parts)
        return Answered(number=query.number, found=found, sight=SawTicks(upto=view.frontier))

    def _sent(self, query: Query[ArrowBag], ask: Ask) -> _Open:
        """Send a query. What is visible by now is noted before its snapshot is taken."""
        after = self._settled[query.source] if query.source in self._settled else self._log.horizon()
        asked = ProbeStats()
        return _Open(query=query, reading=self._pool.submit(ask, query, asked), asked=asked, after=after)

    def _ask_later(self, query: Query[ArrowBag], asked: ProbeStats) -> _Read:
        """Ask again after a pause, so that a source that is away is not hammered. Closing ends the pause."""
        self._closed.wait(self._resolved.project.settings.batch.ask_again_pause_seconds)
        return self._ask(query, asked)

    def _ask(self, query: Query[ArrowBag], asked: ProbeStats) -> _Read:
        """Answer a query by one reader of its source, once the log has been followed past what that saw."""
        source = self._resolved.sources[query.source]
        own = [name for name in self._view.resolved.join.relations if name.source == query.source]
        wait_seconds = self._resolved.project.settings.batch.follow_wait_seconds
        with source.snapshot(own) as snapshot, snapshot.reader() as reader:
            require_followed(self._acceptor, reader.positions, wait_seconds)
            view = self._view.resolved.join
            lookup = SourceLookup(reader=reader, relations=self._resolved.relations)
            found = tuple(
                answer_part(view, part, self._like, lambda request: self._looked_up(lookup, request, asked))
                for part in query.parts
            )
            if not snapshot.is_valid(self._acceptor):
                raise SourceUnavailable(
                    "a source restarted, or rewrote a table, while it was asked",
                    code="HW-533",
                    detail=f'what the snapshot of "{query.source}" saw may be lost',
                    hint="it is asked again when the source answers",
                )
            return _Read(found=found, seen=reader.seen)

    def _like(self, relation: RelationName) -> ArrowBag:
        last = self._log.last_tick
        return self._accepted.changes(relation, self._view.resolved.join.relations[relation], last, last)

    def _looked_up(self, lookup: SourceLookup, request: ArrowRequest, asked: ProbeStats) -> ArrowBag:
        result = look_up(lookup, request)
        asked.count(request, result)
        return held(result.rows)


def _shown_rows(table: StoredSegment, join: JoinView, part: QueryPart[ArrowBag]) -> tuple[RowRequest[Any], ArrowBag]:
    """Return the rows of an occurrence that a view shows under some keys, each once, and the keys that were found."""
    (step,) = part.steps
    request = step_request(join, step, part.keys)
    shown = ViewLookup(shown=Shown(segment=None, join=join, alias=step.alias), kept=table)
    rows = held(look_up(shown, request).rows)
    return request.with_keys(rows.keys(step.columns, rows, step.columns)), rows
