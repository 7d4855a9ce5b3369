"""Appends share their cost, and nobody who waits for the log waits for that."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from headwater.changelog import ChangeLog
from headwater.changelog.accept import Acceptor
from headwater.changelog.follow import Followed
from headwater.model.position import Distance, Position, Positions, Tick, by_log
from headwater.model.settings import CaptureSettings
from headwater.model.transaction import Capture, Transaction
from headwater.observe.events import Event, TransactionsAccepted


class Thread:
    """A source's thread that hands over what a test says."""

    has_ended = False

    def __init__(self, out: queue.Queue[Followed]) -> None:
        self._out = out
        self.source = self

    def distance(self, earlier: Position, later: Position) -> Distance:
        return Distance(amount=later.offset - earlier.offset, unit="bytes")

    def commit(self, offset: int) -> Positions:
        position = Position(source="shop", history="1:1", offset=offset)
        transaction = Transaction(position=position, identity=offset, committed_at=datetime.now(UTC))
        capture = Capture(transactions=(transaction,), rows={})
        self._out.put(Followed(source="shop", capture=capture, followed_to=by_log([position])))
        return by_log([position])

    def idle(self, offset: int) -> Positions:
        """Hand over that there is nothing for us up to here."""
        positions = by_log([Position(source="shop", history="1:1", offset=offset)])
        self._out.put(Followed(source="shop", capture=None, followed_to=positions))
        return positions

    def hasten(self, position: Position) -> None: ...

    def acknowledge(self, position: Position) -> None: ...

    def stop(self) -> None: ...


@pytest.fixture
def appends() -> list[TransactionsAccepted]:
    return []


@pytest.fixture
def accepting(tmp_path: Path, appends: list[TransactionsAccepted]) -> Iterator[tuple[Acceptor, Thread]]:
    settings = CaptureSettings(append_pause_times=10**9, append_pause_seconds=60.0)

    def listen(event: Event) -> None:
        if isinstance(event, TransactionsAccepted):
            appends.append(event)

    made = Acceptor(ChangeLog.create(str(tmp_path / "log")), listen, lambda capture: capture, None, settings)
    thread = Thread(made._queue)
    made._threads["shop"] = thread  # type: ignore[assignment]
    made.start()
    yield made, thread
    made.stop()


def test_transactions_that_come_while_others_are_gathered_share_an_append(
    accepting: tuple[Acceptor, Thread], appends: list[TransactionsAccepted]
) -> None:
    acceptor, thread = accepting
    assert acceptor.wait_for(thread.commit(1), 10)
    time.sleep(0.1)  # it gathers now, for a minute
    for offset in range(2, 30):
        last = thread.commit(offset)
    assert acceptor.wait_for(last, 10)
    assert [(event.first, event.last) for event in appends] == [(1, 1), (2, 29)]


def test_who_waits_ends_the_gathering_and_so_does_stopping(accepting: tuple[Acceptor, Thread]) -> None:
    acceptor, thread = accepting
    assert acceptor.wait_for(thread.commit(1), 10)
    time.sleep(0.1)
    waiting = threading.Thread(target=acceptor.wait_for, args=(thread.commit(2), 30))
    started = time.monotonic()
    waiting.start()
    waiting.join(20)
    thread.commit(3)
    acceptor.stop()
    assert time.monotonic() - started < 20
    assert acceptor._log.last_tick == Tick(3)


@pytest.fixture
def noting(tmp_path: Path) -> Iterator[tuple[Acceptor, Thread]]:
    """An acceptor that notes idle progress once it is 100 bytes."""
    log = ChangeLog.create(str(tmp_path / "log"))
    log.claim("shop", "slot")
    log.begin("shop", by_log([Position(source="shop", history="1:1", offset=1)]))
    made = Acceptor(log, lambda _: None, lambda capture: capture, None, CaptureSettings(note_after_bytes=100))
    thread = Thread(made._queue)
    made._threads["shop"] = thread  # type: ignore[assignment]
    made.start()
    yield made, thread
    made.stop()


def test_a_source_may_forget_only_what_is_durable(noting: tuple[Acceptor, Thread]) -> None:
    acceptor, thread = noting
    path = acceptor._log._table.path
    held: list[tuple[int, int]] = []
    thread.acknowledge = lambda position: held.append(  # type: ignore[method-assign]
        (position.offset, ChangeLog.open(path).positions()["shop"].offset)
    )
    thread.idle(60)
    assert acceptor.wait_for(thread.idle(90), 10)
    assert {offset for offset, _ in held} <= {1}, "so little is not worth a commit"
    assert acceptor.wait_for(thread.idle(101), 10)
    time.sleep(0.2)
    assert held[-1] == (101, 101)
    thread.idle(103)
    assert acceptor.wait_for(thread.commit(105), 10)
    assert acceptor.wait_for(thread.idle(107), 10)
    acceptor.stop()
    assert held[-1] == (105, 105)
    assert all(told <= durable for told, durable in held)
    assert ChangeLog.open(path).positions()["shop"].offset == 107, "at the end it is noted all the same"


def test_an_idle_source_is_let_forget_after_a_while(
    noting: tuple[Acceptor, Thread], monkeypatch: pytest.MonkeyPatch
) -> None:
    acceptor, thread = noting
    thread.idle(5)
    time.sleep(0.2)
    assert acceptor._log.positions()["shop"].offset == 1
    monkeypatch.setattr(acceptor, "_settings", CaptureSettings(note_interval_seconds=0.0))
    deadline = time.monotonic() + 10
    while acceptor._log.positions()["shop"].offset != 5:
        assert time.monotonic() < deadline
        time.sleep(0.01)
