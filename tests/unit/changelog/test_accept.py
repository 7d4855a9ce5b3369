"""Appends share their cost, and nobody who waits for the log waits for that."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from headwater.changelog import ChangeLog
from headwater.changelog.accept import Acceptor
from headwater.changelog.follow import Followed, HandedOver
from headwater.model.memory_budget import MemoryBudget
from headwater.model.position import Distance, Position, Positions, Tick, by_log
from headwater.model.relation import RelationName
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


def large_capture(offset: int, byte_count: int) -> Followed:
    position = Position(source="shop", history="1:1", offset=offset)
    transaction = Transaction(position=position, identity=offset, committed_at=datetime.now(UTC))
    rows = pa.table(
        {
            "text": ["x" * byte_count],
            "_ordinal": pa.array([0], pa.int32()),
            "_count": pa.array([1], pa.int64()),
        }
    )
    capture = Capture(transactions=(transaction,), rows={RelationName(source="shop", name="notes"): rows})
    return Followed(source="shop", capture=capture, followed_to=by_log([position]))


def test_what_waits_is_bounded_by_its_size_and_nothing_is_too_large() -> None:
    waiting = HandedOver(10_000)
    for offset in range(1, 4):
        waiting.put(large_capture(offset, 3_000), timeout=0.01)
    with pytest.raises(queue.Full):
        waiting.put(large_capture(4, 1), timeout=0.01)
    assert 10_000 < waiting.byte_count < 20_000
    assert [one.followed_to["shop"].offset for one in (waiting.get_nowait(), waiting.get_nowait())] == [1, 2]
    waiting.put(large_capture(5, 1_000_000), timeout=0.01)
    with pytest.raises(queue.Full):
        waiting.put(large_capture(6, 1), timeout=0.01)
    waiting.get_nowait()
    assert waiting.get_nowait().followed_to["shop"].offset == 5
    assert waiting.empty()
    assert waiting.byte_count == 0
    with pytest.raises(queue.Empty):
        waiting.get_nowait()


def test_one_append_takes_no_more_than_its_share(tmp_path: Path, appends: list[TransactionsAccepted]) -> None:
    def listen(event: Event) -> None:
        if isinstance(event, TransactionsAccepted):
            appends.append(event)

    budget = MemoryBudget.of(10_000 * 32)
    log = ChangeLog.create(str(tmp_path / "log"))
    made = Acceptor(log, listen, lambda capture: capture, None, CaptureSettings(append_pause_seconds=0), budget)
    made._queue.maxsize = 10**9  # all of them wait at once
    for offset in range(1, 13):
        made._queue.put(large_capture(offset, 3_000))
    thread = Thread(made._queue)
    made._threads["shop"] = thread  # type: ignore[assignment]
    made.start()
    assert made.wait_for(by_log([Position(source="shop", history="1:1", offset=12)]), 10)
    made.stop()
    assert [event.last - event.first + 1 for event in appends] == [3, 3, 3, 3]
    assert made.waiting_bytes == 0


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
