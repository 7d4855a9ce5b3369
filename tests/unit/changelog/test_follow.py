"""A source's thread goes on trying while that makes sense, and says why when it does not."""

from __future__ import annotations

import errno
import queue
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from headwater.changelog import ChangeLog
from headwater.changelog.accept import Acceptor
from headwater.changelog.follow import Followed, SourceThread, raise_if_lost
from headwater.engine.service.live_status import _status, _told, write_status
from headwater.errors import HeadwaterError, LoginRefused, SourceRefused
from headwater.model.position import Distance, Position, Positions, by_log
from headwater.model.relation import RelationName
from headwater.model.settings import CaptureSettings
from headwater.model.transaction import Capture, Transaction
from headwater.observe.events import Event, SourceConnected, SourceDisconnected, SourceGone, SourceWarning
from headwater.observe.messages import Messages
from headwater.observe.status import MemoryStatus, SourceState
from headwater.sources.source import Abilities
from headwater.warehouse.followed import noted_status

REFUSED = LoginRefused('source "shop" refuses the connection', code="HW-320")
CHANGED = SourceRefused('relation "shop.t" changed its shape', code="HW-331", detail="a is gone", hint="change v")


class ScriptedSource:
    """A source that answers every attempt to follow it with what a test says, the last of it again and again."""

    abilities = Abilities(
        shares_snapshots=True, exports_snapshots=False, reads_as_of=False, holds_log=True, tells_every_transaction=True
    )

    def __init__(self, *answers: BaseException | None, name: str = "shop") -> None:
        self.name = name
        self._answers = list(answers)
        self.tried_at: list[float] = []
        self.begin: Positions = {}
        self.captures: list[Capture] = []

    def follow(self, *_: object) -> ScriptedSource:
        self.tried_at.append(time.monotonic())
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if answer is not None:
            raise answer
        return self

    def next_capture(self, timeout_seconds: float) -> Capture | None:
        time.sleep(timeout_seconds / 10)
        return self.captures.pop(0) if self.captures else None

    def distance(self, earlier: Position, later: Position) -> Distance:
        return Distance(amount=later.offset - earlier.offset, unit="bytes")

    def followed_to(self) -> Positions:
        return by_log([Position(source=self.name, history="1:1", offset=7)])

    def log_end(self) -> Positions:
        return self.followed_to()

    def log_begin(self) -> Positions:
        return self.begin

    def acknowledge(self, position: Position) -> None: ...

    def hasten(self, position: Position) -> None: ...

    def keep_alive(self) -> None: ...

    def close(self) -> None: ...


def at(offset: int) -> Position:
    return Position(source="shop", history="1:1", offset=offset)


@pytest.fixture
def events() -> list[Event]:
    return []


@pytest.fixture
def follow(events: list[Event]) -> Iterator[Callable[..., SourceThread]]:
    started: list[SourceThread] = []

    def start(*answers: BaseException | None, name: str = "shop") -> SourceThread:
        source = ScriptedSource(*answers, name=name)
        out: queue.Queue[Followed] = queue.Queue()
        settings = CaptureSettings(reconnect_first_seconds=0.01)
        thread = SourceThread(source, (), "slot", dict, out, events.append, settings=settings)  # type: ignore[arg-type]
        started.append(thread)
        thread.start()
        return thread

    yield start
    for thread in started:
        thread.stop()


def wait_until(what: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not what():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


def test_a_refused_login_is_tried_again_until_it_works(
    follow: Callable[..., SourceThread], events: list[Event]
) -> None:
    thread = follow(REFUSED, REFUSED, REFUSED, None)
    wait_until(lambda: thread.is_connected)
    assert (thread.error, thread.lost, thread.retry_at) == (None, None, None)
    tried = [event.retry_in_seconds for event in events if isinstance(event, SourceDisconnected)]
    assert tried == [0.01, 0.02, 0.04], "less and less often"
    assert isinstance(events[-1], SourceConnected)


def test_a_log_that_may_soon_be_deleted_is_warned_of_once(events: list[Event], monkeypatch: pytest.MonkeyPatch) -> None:
    """The source has logged up to 7, and we hold it up to 4: 3 are to be read, and 5 more are kept, then 2."""
    monkeypatch.setattr("headwater.changelog.follow._LOOK_SECONDS", 0.0)
    source = ScriptedSource(None)
    source.begin, held = by_log([at(-2)]), by_log([at(4)])
    thread = SourceThread(source, (), "slot", lambda: held, queue.Queue(), events.append)  # type: ignore[arg-type]
    thread._look(source)  # type: ignore[arg-type]
    assert not events, "twice as much is kept as is to be read"
    source.begin = by_log([at(-1)])
    for _ in range(3):
        thread._look(source)  # type: ignore[arg-type]
    [warning] = events
    assert isinstance(warning, SourceWarning)
    assert "3 bytes behind" in warning.sentence
    assert "only 5 bytes more" in warning.sentence


def test_what_was_committed_before_an_alteration_is_handed_over(events: list[Event]) -> None:
    name = RelationName(source="shop", name="t")
    committed_at = datetime(2026, 11, 18, tzinfo=UTC)
    told = tuple(Transaction(position=at(n), identity=n, committed_at=committed_at) for n in (5, 6, 7))
    source, out = ScriptedSource(None), queue.Queue[Followed]()
    source.captures.append(Capture(transactions=told, rows={}, altered={1: {name: "it was moved"}}))
    thread = SourceThread(source, (), "slot", dict, out, events.append)  # type: ignore[arg-type]
    thread.start()
    wait_until(lambda: thread.has_ended)
    assert isinstance(thread.lost, SourceRefused)
    assert (thread.lost.code, "it was moved" in thread.lost.detail) == ("HW-341", True)
    handed = out.get_nowait()
    assert handed.capture is not None
    assert handed.capture.transactions == told[:1]
    assert handed.followed_to == by_log([at(5)])
    assert out.empty()


def test_what_cannot_get_better_is_lost_and_not_said_to_be_tried_again(
    follow: Callable[..., SourceThread], events: list[Event]
) -> None:
    thread = follow(REFUSED, CHANGED)
    wait_until(lambda: thread.has_ended)
    assert thread.lost is CHANGED
    assert thread.retry_at is None
    assert isinstance(events[-1], SourceGone)


def test_trouble_of_our_own_is_raised_and_not_taken_for_the_source_s(
    follow: Callable[..., SourceThread], tmp_path: Path
) -> None:
    thread = follow(OSError(errno.ENOSPC, "No space left on device"))
    wait_until(lambda: thread.has_ended)
    assert thread.lost is None
    acceptor = Acceptor(ChangeLog.create(str(tmp_path / "log")), lambda _: None, lambda capture: capture)
    acceptor._threads["shop"] = thread
    with pytest.raises(OSError, match="No space left"):
        acceptor.raise_error()


def test_a_run_ends_when_all_sources_are_lost_or_one_if_asked(follow: Callable[..., SourceThread]) -> None:
    threads = {"shop": follow(CHANGED), "crm": follow(None, name="crm"), "geo": follow(CHANGED, name="geo")}
    wait_until(lambda: threads["shop"].lost and threads["geo"].lost and threads["crm"].is_connected)
    raise_if_lost({"crm": threads["crm"]}, any_one=True)
    raise_if_lost({"shop": threads["shop"], "crm": threads["crm"]}, any_one=False)
    with pytest.raises(SourceRefused) as one:
        raise_if_lost({"shop": threads["shop"], "crm": threads["crm"]}, any_one=True)
    assert one.value is CHANGED
    with pytest.raises(SourceRefused):
        raise_if_lost({"shop": threads["shop"]}, any_one=False)
    with pytest.raises(HeadwaterError) as several:
        raise_if_lost({"shop": threads["shop"], "geo": threads["geo"]}, any_one=False)
    assert several.value.code == "HW-602"
    assert several.value.hint == "change v"


def test_stopping_does_not_make_healthy_sources_lost(follow: Callable[..., SourceThread], tmp_path: Path) -> None:
    """While a maintainer closes, and after that, only the source is lost that really is; how to mend it is said."""
    acceptor = Acceptor(ChangeLog.create(str(tmp_path / "log")), lambda _: None, lambda capture: capture)
    acceptor._threads |= {"shop": follow(CHANGED), "crm": follow(None, name="crm")}
    wait_until(lambda: acceptor._threads["shop"].lost and acceptor._threads["crm"].is_connected)
    for thread in acceptor.threads().values():
        thread.stop()
    memory = MemoryStatus(
        limit_bytes=8,
        used_bytes=0,
        arrow_bytes=0,
        captures_bytes=0,
        tail_bytes=0,
        journal_bytes=0,
        rows_bytes=0,
        batch_bytes=0,
        mapped_bytes=0,
    )
    write_status(str(tmp_path), acceptor, Messages(), memory, bootstrapping=False)
    said = noted_status(str(tmp_path))["sources"]
    closing = {name: _status(name, one, {}, alive=True) for name, one in said.items()}
    assert {name: one.state for name, one in closing.items()} == {
        "shop": SourceState.LOST,
        "crm": SourceState.FOLLOWING,
    }
    after = {name: _status(name, one, {}, alive=False) for name, one in said.items()}
    assert {name: one.state for name, one in after.items()} == {
        "shop": SourceState.LOST,
        "crm": SourceState.NOT_STARTED,
    }
    assert (after["shop"].last_error, after["shop"].hint) == (_told(CHANGED), "change v")
    assert after["shop"].retry_in_seconds is None
