"""Answers find their place among the ticks of their source, in whatever order they come in; or are asked for again."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import wait
from contextlib import contextmanager
from dataclasses import replace
from types import MappingProxyType, SimpleNamespace
from typing import Any, Self

import pyarrow as pa
import pytest
from small_views import relation, setting

from headwater.deltas.lookup import SawTicks, SawTransactions
from headwater.deltas.on_arrow import ArrowBag, ArrowKeys
from headwater.engine.published import driver as correspondence_module
from headwater.engine.published.driver import Correspondence
from headwater.errors import SourceUnavailable
from headwater.maintenance.published.messages import (
    Answered,
    Delivered,
    Effect,
    Event,
    Install,
    Query,
    QueryPart,
    Running,
    ViewHistory,
)
from headwater.maintenance.published.terms import TermStep
from headwater.maintenance.rebase import rebase
from headwater.model.position import Positions, Tick
from headwater.model.relation import COUNT, TICK
from headwater.model.settings import DEFAULTS, BatchSettings
from headwater.model.transaction import SeenUpTo
from headwater.observe.events import ProbeAnswered, ProbeCount
from headwater.views.steps.join import JoinView


def saw(upto: int, *also: int) -> SeenUpTo:
    """Return the sight of the transactions up to one, and of some after it; each is known by its tick."""
    return SeenUpTo(last=99, hidden=frozenset(range(upto + 1, 100)) - set(also))


class Log:
    """Ticks 1, 2, 3 ... of one source, each known by its tick."""

    def __init__(self, last: int) -> None:
        self.last_tick = Tick(last)

    def horizon(self) -> Tick:
        return Tick(0)

    def identities(self, source: str, after: Tick, upto: Tick) -> list[tuple[Tick, int, str]]:
        assert source == "shop"
        return [(Tick(tick), tick, "") for tick in range(after + 1, upto + 1)]

    def rows(self, _relation: object, columns: tuple[str, ...], after: Tick, upto: Tick) -> pa.Table:
        """Return one row for each tick: that many rows lie between two ticks."""
        ticks = pa.array(range(after + 1, upto + 1), pa.int64())
        return pa.table({**dict.fromkeys(columns, ticks), TICK: ticks, COUNT: ticks})

    def transactions(self, source: str | None, after: Tick, upto: Tick) -> list[tuple[Tick, Any]]:
        assert source is None
        return [(Tick(tick), SimpleNamespace(source="shop")) for tick in range(after + 1, upto + 1)]


class Snapshot:
    """A snapshot that is read once the test lets it."""

    positions: Positions = MappingProxyType({})

    def __init__(self, seen: SeenUpTo, may_read: threading.Event) -> None:
        self.seen = seen
        self._may_read = may_read

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None: ...

    @contextmanager
    def reader(self) -> Iterator[Self]:
        yield self

    def is_valid(self, _log: object) -> bool:
        return self._may_read.wait(10)

    def probe(self, _relation: object, _wanted: object, _columns: object, keys: pa.Table) -> pa.Table:
        """Return a row for each key."""
        return keys.append_column("total", keys["id"])


class Shop:
    """A source that shows what the test says, one snapshot after another; an error is raised."""

    name = "shop"

    def __init__(self, *seen: SeenUpTo | Exception) -> None:
        self.seen = list(seen)
        self.may_read = [threading.Event() for _ in seen]
        self.taken = 0

    def snapshot(self, _relations: object) -> Snapshot:
        number, self.taken = self.taken, self.taken + 1
        shown = self.seen[number]
        if isinstance(shown, Exception):
            raise shown
        return Snapshot(shown, self.may_read[number])


class Asking:
    """An algorithm that asks at tick 1 for two keys of the sales, and needs the answer as of that tick."""

    needed = Tick(1)

    def __init__(self, join: JoinView) -> None:
        self._join = join

    def __call__(self, _view: object, _lo: Tick, log: ViewHistory[ArrowBag]) -> Running:
        (sales,) = self._join.relations
        like = log.changes(sales, self._join.relations[sales], Tick(0), Tick(0))
        keys = ArrowKeys(pa.table({"id": pa.array([5, 6], like.table["id"].type)}))
        step = TermStep(alias="s", via=None, columns=("id",))
        effects: Sequence[Effect] = []
        while True:
            event: Event = yield effects
            effects = []
            match event:
                case Delivered(tick=self.needed):
                    effects = [Query(number=1, source="shop", parts=(QueryPart(carried={}, steps=(step,), keys=keys),))]
                case Answered():
                    (((request, result),),) = event.results
                    rebase(request, result, log, self.needed)
                    effects = [Install(upto=self.needed)]
                case _:
                    pass


class Script:
    """An algorithm that asks a query at every one of some ticks, and writes down what it hears."""

    def __init__(self, *asks_at: int) -> None:
        self.asks_at = asks_at
        self.heard: list[tuple[str, int]] = []
        self.sights: dict[int, object] = {}

    def __call__(self, *_: object) -> Running:
        effects: Sequence[Effect] = []
        while True:
            event: Event = yield effects
            effects = []
            match event:
                case Delivered():
                    self.heard.append(("tick", event.tick))
                    if event.tick in self.asks_at:
                        effects = [Query(number=event.tick, source="shop", parts=())]
                case Answered():
                    self.heard.append(("answer", event.number))
                    self.sights[event.number] = event.sight


Begin = Callable[..., Correspondence]


@pytest.fixture
def begin() -> Iterator[Begin]:
    settings = replace(DEFAULTS, batch=BatchSettings(ask_again_pause_seconds=0.0))
    begun: list[Correspondence] = []

    def make(
        shop: Shop,
        script: Script,
        log: Log,
        *,
        needs_order: bool = True,
        join: object = SimpleNamespace(relations={}),
        listener: Callable[[object], None] = lambda _: None,
    ) -> Correspondence:
        resolved = SimpleNamespace(join=join, algorithm=SimpleNamespace(needs_order=needs_order))
        made: Any = Correspondence(
            spark=None,  # type: ignore[arg-type]
            view=SimpleNamespace(name="v", frontier=Tick(0), resolved=resolved),  # type: ignore[arg-type]
            algorithm=script,
            resolved=SimpleNamespace(  # type: ignore[arg-type]
                sources={"shop": shop},
                relations={one.relation.name: one.relation for one in getattr(join, "occurrences", ())},
                project=SimpleNamespace(settings=settings),
            ),
            log=log,  # type: ignore[arg-type]
            acceptor=SimpleNamespace(wait_for=lambda *_: True),  # type: ignore[arg-type]
            listener=listener,
        )
        begun.append(made)
        return made

    yield make
    for one in begun:
        one.close()


def deliver(correspondence: Correspondence, until: Callable[[], bool]) -> None:
    """Deliver what can be, until something is so."""
    deadline = time.monotonic() + 10
    correspondence.deliver()
    while not until():
        assert time.monotonic() < deadline
        wait(correspondence.open_readings(), 0.01)
        correspondence.deliver()


def test_an_answer_comes_after_the_ticks_it_saw_and_before_the_others(begin: Begin) -> None:
    shop, script = Shop(saw(3)), Script(1)
    playing = begin(shop, script, Log(5))
    playing.deliver()
    assert script.heard == [("tick", 1)], "no tick of its source while it is not known what the answer saw"
    shop.may_read[0].set()
    deliver(playing, lambda: len(script.heard) == 6)
    assert script.heard == [("tick", 1), ("tick", 2), ("tick", 3), ("answer", 1), ("tick", 4), ("tick", 5)]
    assert script.sights[1] == SawTicks(upto=Tick(3))


@pytest.mark.parametrize("unfit", [saw(0), saw(1, 3), SourceUnavailable("away", code="HW-303")])
def test_an_answer_that_fits_nowhere_is_asked_for_again(begin: Begin, unfit: SeenUpTo | Exception) -> None:
    """It forgot tick 1; it has a hole at tick 2; it does not come at all."""
    shop, script = Shop(unfit, unfit, saw(2)), Script(1)
    for event in shop.may_read:
        event.set()
    playing = begin(shop, script, Log(3))
    deliver(playing, lambda: ("tick", 3) in script.heard)
    assert script.heard == [("tick", 1), ("tick", 2), ("answer", 1), ("tick", 3)]
    assert shop.taken == 3


def test_an_older_answer_that_comes_in_later_is_not_taken_for_a_newer_one(begin: Begin) -> None:
    """Both are asked at tick 1; the first saw ticks 1 to 2, the second 1 to 4, and the second is there first."""
    shop, script = Shop(saw(2), saw(4)), Script(1)
    playing = begin(shop, script, Log(1))
    two = Query(number=2, source="shop", parts=())
    playing.deliver()
    while shop.taken < 1:
        time.sleep(0.001)
    playing._act([two])
    playing._log.last_tick = Tick(5)  # type: ignore[misc]
    while shop.taken < 2:
        time.sleep(0.001)
    shop.may_read[1].set()
    deliver(playing, lambda: len(playing.open_readings()) == 1)
    shop.may_read[0].set()
    deliver(playing, lambda: ("tick", 5) in script.heard)
    assert script.heard == [
        ("tick", 1),
        ("tick", 2),
        ("answer", 1),
        ("tick", 3),
        ("tick", 4),
        ("answer", 2),
        ("tick", 5),
    ]


def test_who_goes_by_versions_waits_for_nobody(begin: Begin) -> None:
    shop, script = Shop(saw(1, 3)), Script(2)
    playing = begin(shop, script, Log(4), needs_order=False)
    playing.deliver()
    assert [what for what, _ in script.heard] == ["tick"] * 4, "whatever the answer will have seen"
    shop.may_read[0].set()
    deliver(playing, lambda: 2 in script.sights)
    assert script.sights[2] == SawTransactions(seen=shop.seen[0], upto=Tick(1))  # type: ignore[arg-type]
    assert shop.taken == 1, "a hole is no reason to ask again"


def test_an_answer_that_saw_a_truncate_stops_the_view(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    halt = SourceUnavailable("truncated", code="HW-521")
    monkeypatch.setattr(correspondence_module, "before_truncate", lambda *_: (Tick(2), halt))
    for needs_order in (True, False):
        shop, script = Shop(saw(3)), Script(1)
        shop.may_read[0].set()
        playing = begin(shop, script, Log(4), needs_order=needs_order)
        deliver(playing, lambda: not playing.open_readings())  # noqa: B023 - called before the next one
        playing.deliver()
        assert playing.outcome().halt is halt
        assert ("answer", 1) not in script.heard


@pytest.mark.parametrize("needs_order", [True, False])
def test_what_was_asked_counts_with_what_was_corrected_and_what_was_in_vain(
    begin: Begin, monkeypatch: pytest.MonkeyPatch, *, needs_order: bool
) -> None:
    """The first answer is lost; the second one saw ticks 2 and 3, which tick 1 does not need."""
    monkeypatch.setattr(correspondence_module, "install_on_spark", lambda *_: pa.table({}))
    monkeypatch.setattr(correspondence_module, "before_truncate", lambda *_: (Tick(3), None))
    join = setting("SELECT s.id, s.total FROM shop.sales s", {relation("shop.sales(id, total)"): []}).view
    shop, heard = Shop(saw(0), saw(3)), []
    for event in shop.may_read:
        event.set()
    monkeypatch.setattr(Snapshot, "is_valid", lambda self, _: self.seen is shop.seen[1])
    playing = begin(shop, Asking(join), Log(3), needs_order=needs_order, join=join, listener=heard.append)
    deliver(playing, lambda: bool(playing._installs))
    assert [type(event) for event in heard] == [ProbeAnswered, ProbeAnswered]
    assert [event.corrected_row_count for event in heard] == [0, 2]
    assert [(event.probe_count, event.key_count, event.row_count) for event in heard] == [(1, 2, 2)] * 2
    byte_count = sum(event.byte_count for event in heard)
    told = playing.outcome().asked.by_source()
    asked = ProbeCount(probe_count=2, key_count=4, row_count=4, byte_count=byte_count, corrected_row_count=2)
    assert told == {"shop": asked}
    assert playing.outcome().asked.by_source() == {}, "it is told once"
