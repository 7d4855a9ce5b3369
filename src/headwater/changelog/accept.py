"""Accept transactions: give each its tick, make it durable in the change log, and only then let its source forget it.

One thread takes what all source threads hand over, in the order it comes, and appends it to the change log: that order
is the order of ticks. Many small transactions that wait together share one append. An append costs much the same for
one transaction as for a hundred, so after each the thread lets others come for some times as long as it took, up to a
limit (`append_pause_times`, `append_pause`): appending takes a small part of the time and leaves the processor to the
batches. While somebody waits for the log to be followed to some position (every batch that probes does, at its
beginning), it appends at once.

How far a source was followed is durable in the change log before the source may forget it, also where the log of the
source held nothing for us. With every append that costs nothing. Where nothing is appended it costs a commit, so it is
noted when much has come or some time has passed, and at the end.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType

from headwater.changelog.change_log import AcceptedSpan, ChangeLog
from headwater.changelog.follow import Followed, HandedOver, SourceThread
from headwater.changelog.global_transaction_buffer import Holding
from headwater.model.memory_budget import DEFAULT_BUDGET, MemoryBudget
from headwater.model.position import Positions, are_reached, of_source
from headwater.model.relation import Relation
from headwater.model.settings import DEFAULTS, CaptureSettings
from headwater.model.transaction import Capture
from headwater.observe.events import Listener, TransactionsAccepted
from headwater.sources.source import Source

_WAIT_SECONDS = 0.05

Resolver = Callable[[Capture], Capture]


class Acceptor:
    """Follows a set of sources and appends their transactions to the change log."""

    def __init__(
        self,
        log: ChangeLog,
        listener: Listener,
        resolve: Resolver,
        holding: Holding | None = None,
        settings: CaptureSettings = DEFAULTS.capture,
        budget: MemoryBudget = DEFAULT_BUDGET,
    ) -> None:
        """`resolve` completes a capture with what only the warehouse knows (the rows a TRUNCATE removed).

        `holding` keeps the parts of global transactions until they are complete, where there are such.
        """
        self._log = log
        self._listener = listener
        self._resolve = resolve
        self.holding = Holding(None, tuple) if holding is None else holding
        self._settings = settings
        self._append_bytes = budget.queue_bytes
        self._queue = HandedOver(budget.queue_bytes)
        self._threads: dict[str, SourceThread] = {}
        self._accepted_to: Positions = {}
        self._committed_at: dict[str, datetime] = {}
        self._noted_at = time.monotonic()
        self._changed = threading.Condition()
        self._awaited: list[Positions] = []
        self._news = self._told = 0
        self._is_idle_there = False
        """Whether the maintainer has nothing to do until something is accepted."""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="accept", daemon=True)
        self.error: BaseException | None = None
        self.append_seconds = 0.0

    def start(self) -> None:
        """Begin to accept."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the source threads, then accept what they handed over, then end."""
        for thread in self._threads.values():
            thread.stop()
        self._stop.set()
        with self._changed:
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join(timeout=60)

    def follow(self, source: Source, relations: Sequence[Relation]) -> None:
        """Follow these relations of a source, by the log's slot, from where the change log ends."""
        thread = SourceThread(
            source,
            relations,
            self._log.slots()[source.name].name,
            lambda: of_source(self._log.positions(), source.name),
            self._queue,
            self._listener,
            lambda: self.holding.is_full(source.name),
            self._settings,
        )
        self._threads[source.name] = thread
        thread.start()

    def threads(self) -> Mapping[str, SourceThread]:
        """Return the source threads by name, to show their state."""
        return dict(self._threads)

    @property
    def waiting_bytes(self) -> int:
        """About how large everything is that was read of the sources, and is not appended yet."""
        return self._queue.byte_count + self.holding.byte_count

    def accepted_to(self) -> Positions:
        """Return, for each log of a source, the position up to which all it committed is in the change log."""
        with self._changed:
            return self._accepted_to

    def held(self, source: str) -> Positions:
        """Return the same for one source."""
        return of_source(self.accepted_to(), source)

    def committed_at(self) -> Mapping[str, datetime]:
        """Return, per source, when the newest transaction accepted since we follow it was committed there."""
        with self._changed:
            return dict(self._committed_at)

    def wait_for(self, positions: Positions, timeout_seconds: float) -> bool:
        """Wait until everything that was committed up to positions is in the change log. Tell whether it is.

        A source that has long stood still at an incomplete global transaction is not waited for: that would hold up
        a caller that asks for others as well. If parts are always that late, views that probe the source fall behind.
        """
        if self._has_reached(positions):
            return True
        sources = {position.source for position in positions.values()}
        threads = [self._threads[source] for source in sources]
        deadline = time.monotonic() + timeout_seconds
        for position in positions.values():
            self._threads[position.source].hasten(position)
        with self._changed:
            self._awaited.append(positions)
            self._changed.notify_all()
            try:
                while not self._has_reached(positions):
                    left = deadline - time.monotonic()
                    if left <= 0 or any(thread.has_ended for thread in threads) or self.error is not None:
                        return False
                    if any(map(self.holding.is_stuck, sources)) and self.holding.has_read(positions):
                        return False
                    self._changed.wait(min(left, _WAIT_SECONDS))
            finally:
                self._awaited.remove(positions)
        return True

    def is_held_before(self, positions: Positions) -> bool:
        """Tell whether a source stands still at an incomplete global transaction, and all before that is in the log."""
        holding, accepted, reached = self.holding, self.accepted_to(), self.holding.reached()
        is_read = any(position.source in holding.held() for position in positions.values())
        return (
            is_read and holding.has_read(positions) and all(accepted.get(log) == reached.get(log) for log in positions)
        )

    def _has_reached(self, positions: Positions) -> bool:
        return are_reached(positions, self._accepted_to)

    def wait_for_news(self, timeout_seconds: float) -> None:
        """Wait until something was accepted since this was last called, or the time is over.

        The caller has nothing to do meanwhile, so nothing gathers before the next append.
        """
        with self._changed:
            self._is_idle_there = True
            self._changed.notify_all()
            try:
                self._changed.wait_for(lambda: self._news != self._told, timeout_seconds)
            finally:
                self._is_idle_there = False
                self._told = self._news

    def _run(self) -> None:
        try:
            while not (self._stop.is_set() and self._queue.empty()):
                taken = self._take()
                released = self.holding.look()
                if taken or released or self._is_worth_noting(self.holding.reached()):
                    started = time.monotonic()
                    self._accept(taken, released)
                    self._gather(time.monotonic() - started)
            self._log.note(self.holding.reached())
        except BaseException as error:  # noqa: BLE001 - kept, and raised by the maintainer's loop
            self.error = error
        finally:
            with self._changed:
                self._changed.notify_all()

    def _take(self) -> list[Followed]:
        """Return what waits, at least one if one comes in time."""
        taken: list[Followed] = []
        rows = byte_count = 0
        try:
            while rows < self._settings.append_rows and byte_count < self._append_bytes:
                followed = self._queue.get(timeout=0 if taken else _WAIT_SECONDS)
                taken.append(followed)
                byte_count += followed.byte_count
                rows += 0 if followed.capture is None else followed.capture.row_count
        except queue.Empty:
            pass
        return taken

    def _gather(self, spent_seconds: float) -> None:
        """Let more come before the next append, unless somebody waits for it, or has nothing to do without it."""
        pause_seconds = min(self._settings.append_pause_times * spent_seconds, self._settings.append_pause_seconds)
        with self._changed:
            self._changed.wait_for(self._is_hurried, pause_seconds)

    def _is_hurried(self) -> bool:
        return self._stop.is_set() or self._is_idle_there or not all(map(self._has_reached, self._awaited))

    def _accept(self, taken: Sequence[Followed], released: Sequence[Capture]) -> None:
        started = time.perf_counter()
        captures = [*released, *(capture for followed in taken for capture in self.holding.take(followed))]
        reached = self.holding.reached()
        waiting: list[Capture] = []
        for capture in captures:
            if capture.truncated:
                self._append(waiting)
                waiting = []
            waiting.append(self._resolve(capture) if capture.truncated else capture)
        self._append(waiting, reached)
        if self._is_worth_noting(reached):
            self._log.note(reached)
            self._noted_at = time.monotonic()
        self.append_seconds += time.perf_counter() - started
        with self._changed:
            self._news += bool(captures)
            self._accepted_to = {**self._accepted_to, **reached}
            for capture in captures:
                newest = capture.transactions if capture.joint else capture.transactions[-1:]
                self._committed_at.update({one.source: one.committed_at for one in newest})
            self._changed.notify_all()
        for position in self._log.positions().values():
            thread = self._threads.get(position.source)
            if thread is not None:
                thread.acknowledge(position)

    def _is_worth_noting(self, reached: Positions) -> bool:
        """Tell whether sources were followed so far since it was last noted that they should be let forget."""
        held = self._log.positions()
        ahead = [
            self._threads[held[log].source].source.distance(held[log], reached[log])
            for log in reached.keys() & held.keys()
            if reached[log].offset > held[log].offset
        ]
        settings = self._settings
        is_old = time.monotonic() - self._noted_at >= settings.note_interval_seconds
        return any(is_old or (one.unit == "bytes" and one.amount >= settings.note_after_bytes) for one in ahead)

    def _append(self, captures: Sequence[Capture], reached: Positions = MappingProxyType({})) -> None:
        if captures:
            self._tell(self._log.append(captures, reached), captures)

    def _tell(self, span: AcceptedSpan, captures: Sequence[Capture]) -> None:
        row_counts = Counter[str]()
        for name, table in (one for capture in captures for one in capture.rows.items()):
            row_counts[name.source] += table.num_rows
        for source in dict.fromkeys(transaction.source for _, transaction in span.transactions):
            accepted = [(tick, transaction) for tick, transaction in span.transactions if transaction.source == source]
            self._listener(
                TransactionsAccepted(
                    source=source,
                    first=accepted[0][0],
                    last=accepted[-1][0],
                    row_count=row_counts[source],
                    position=accepted[-1][1].position,
                    transaction_count=len(accepted),
                    committed_at=min(transaction.committed_at for _, transaction in accepted),
                )
            )

    def raise_error(self) -> None:
        """Raise what ended the accepting thread, or a thread that follows a source, if that was not the source."""
        for error in (self.error, *(thread.failure for thread in self._threads.values())):
            if error is not None:
                raise error
