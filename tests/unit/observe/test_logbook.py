from __future__ import annotations

import logging
from typing import get_args

import pytest

from headwater.errors import SourceUnavailable
from headwater.model.position import Position, Tick
from headwater.model.relation import RelationName
from headwater.observe import events
from headwater.observe.events import Event, fan_out, ignore_event
from headwater.observe.logbook import level_of, log_event, sentence_of

ERROR = SourceUnavailable("no answer", code="HW-303")
AT = Position(source="shop", history="71:1", offset=31)
SALES = RelationName(source="shop", name="sales")

ONE_OF_EACH: tuple[Event, ...] = (
    events.SourceConnected(source="shop", positions=(AT,)),
    events.SourceDisconnected(source="shop", error=ERROR, retry_in_seconds=4),
    events.SourceGone(source="shop", error=ERROR),
    events.TransactionsAccepted(source="shop", first=Tick(4), last=Tick(4), row_count=1, position=AT),
    events.BatchStarted(lo=Tick(3), hi=Tick(7)),
    events.ProbeAnswered(
        view="v", relation=SALES, key_count=2, row_count=3, byte_count=99, corrected_row_count=1, seconds=0.01
    ),
    events.ViewComputed(view="v", lo=Tick(3), hi=Tick(7), changed_rows=2, read_rows={SALES: 5}, row_count=1),
    events.SelfMaintenanceTested(view="v", lo=Tick(3), hi=Tick(7), suffices=True, known_key_count=2),
    events.BatchCommitted(lo=Tick(3), hi=Tick(7), row_count=12, seconds={"spark": 0.2}),
    events.ViewBorn(view="v", tick=Tick(3)),
    events.ViewStopped(view="v", tick=Tick(7), error=ERROR),
    events.ViewDropped(view="v"),
    events.ProjectChanged(steps=("create view w",)),
    events.ProjectRefused(error=ERROR),
    events.ProjectWarned(warning="no view reads it"),
    events.WarehouseUpgraded(warehouse="w", before=2, after=3),
    events.BootstrapProgress(relation=SALES, rows_read=5, rows_estimated=10, rows_per_second=2.0, finished=False),
    events.CheckEstimated(views=("v",), states_expected=9, recomputed_expected=5, seconds=2.5),
    events.CheckProgress(view="v", states_checked=5, states_expected=10),
    events.CheckpointRolled(table="v", tick=Tick(7), seconds=0.1),
    events.Housekept(table="v", files_removed=3, seconds=0.1),
    events.ViewPublished(view="sales", tick=Tick(7), rows_added=3, rows_removed=1, seconds=0.2),
    events.PublishFailed(view="sales", error=ERROR),
    events.Idle(tick=Tick(7)),
    events.SourceWarning(source="shop", sentence="a slot is left behind"),
    events.ProjectWarned(warning="no view reads it"),
    events.WarehouseAdopted(project="shop", warehouse="w"),
    events.SparkStarting(),
    events.SparkStarted(seconds=4.2),
    events.PlanningStarted(views=2, sources=1),
)


def test_the_list_is_whole() -> None:
    assert {type(event) for event in ONE_OF_EACH} == set(get_args(Event))


@pytest.mark.parametrize("event", ONE_OF_EACH, ids=lambda event: type(event).__name__)
def test_every_event_is_one_sentence(event: Event) -> None:
    sentence = sentence_of(event)
    assert sentence
    assert "\n" not in sentence
    assert level_of(event) in (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR)


def test_the_log_has_the_sentence_at_its_level(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="headwater"):
        log_event(ONE_OF_EACH[3])
        log_event(ONE_OF_EACH[10])
    assert caplog.messages == [
        'accepted tick 4 from source "shop" up to shop:0/1F: 1 row',
        'view "v" stopped at tick 7: no answer',
    ]
    assert [record.levelname for record in caplog.records] == ["DEBUG", "ERROR"]


def test_everybody_hears_in_order() -> None:
    heard: list[tuple[str, Event]] = []
    listener = fan_out(lambda event: heard.append(("a", event)), ignore_event, lambda event: heard.append(("b", event)))
    listener(ONE_OF_EACH[0])
    assert heard == [("a", ONE_OF_EACH[0]), ("b", ONE_OF_EACH[0])]
