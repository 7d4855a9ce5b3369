"""Positions are stored with their notation, and what was stored before notations were is read as it was meant."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from headwater.changelog import ChangeLog
from headwater.changelog.mark import LogMark
from headwater.model.position import LSN, Notation, Position, Tick, by_log, written_positions
from headwater.model.relation import Column, Relation, RelationName
from headwater.model.transaction import Capture, Transaction
from headwater.warehouse.commit_record import Commit, CommitKind, CommitRecord, commit_text, parse_commit
from headwater.warehouse.followed import noted_positions
from headwater.warehouse.mailbox import awaited_positions, note_awaited

VERSIONS = Notation(history="table id")
LAKE = Position(source="lake", history="7f", offset=12, notation=VERSIONS)
ORDERS = Position(source="lake", log="orders", history="7f", offset=5, notation=VERSIONS, proof=bytes([1, 2]))
ITEMS = Position(source="lake", log="items", history="80", offset=5, notation=VERSIONS)
SHOP = Position(source="shop", history="71:1", offset=0x16B3748)
OLD_MARK = '{"epoch": 2, "positions": {"shop": ["71:1", 23803720]}, "slots": {"shop": ["slot_1", true]}, "tick": 7}'


def test_a_mark_from_before_notations_is_read_and_written_as_it_was() -> None:
    mark = LogMark.parse(OLD_MARK)
    assert mark.positions == {"shop": SHOP}
    assert str(mark.positions["shop"]) == "shop:0/16B3748"
    assert mark.text() == OLD_MARK


def test_a_commit_from_before_notations_is_read_and_written_as_it_was() -> None:
    record = CommitRecord(frontiers={}, positions={"shop": SHOP, "lake": LAKE})
    commit = Commit(
        sequence=1,
        epoch=1,
        kind=CommitKind.BATCH,
        tick=Tick(3),
        committed_at=datetime(2026, 11, 18, tzinfo=UTC),
        record=record,
        catalog_sequence=0,
    )
    text = commit_text(commit)
    assert json.loads(text)["record"]["positions"]["shop"] == {"source": "shop", "history": "71:1", "offset": 0x16B3748}
    assert parse_commit(text) == commit


def test_the_log_tells_positions_in_the_notation_of_their_source(tmp_path: Path) -> None:
    name = RelationName(source="lake", name="fish")
    relation = Relation(name=name, columns=(Column(name="id", type="bigint", native="long"),))
    log = ChangeLog.create(str(tmp_path / "log"))
    log.declare((relation,))
    rows = pa.table({"id": pa.array([1]), "_ordinal": pa.array([0], pa.int32()), "_count": pa.array([1], pa.int64())})
    committed_at = datetime(2026, 11, 18, tzinfo=UTC)
    one = Transaction(position=LAKE, identity=12, committed_at=committed_at)
    log.append([Capture(transactions=(one,), rows={name: rows})])
    for opened in (log, ChangeLog.open(str(tmp_path / "log"))):
        assert opened.positions() == {"lake": LAKE}
        [(tick, told)] = opened.transactions("lake", Tick(0), Tick(1))
        assert (tick, str(told.position)) == (1, "lake:12")
        assert opened.tick_at(LAKE) == 1


def test_what_the_maintainer_says_and_is_asked_for_keeps_its_notation(tmp_path: Path) -> None:
    nine = by_log([Position(source="shop", history="71:1", offset=9)])
    assert noted_positions("shop", {"position": ["71:1", 9]}) == nine, "as version 0.1 said it"
    assert noted_positions("shop", {"positions": {"shop": ["71:1", 9]}}) == nine
    lake = by_log([LAKE, ORDERS])
    assert noted_positions("lake", {"positions": json.loads(json.dumps(written_positions(lake)))}) == lake
    assert noted_positions("lake", {"position": None}) == {}
    note_awaited(str(tmp_path), by_log([LAKE, ORDERS, SHOP]))
    assert awaited_positions(str(tmp_path), "lake") == lake
    assert awaited_positions(str(tmp_path), "shop") == by_log([SHOP])
    assert SHOP.notation == LSN


def test_every_log_of_a_source_has_a_position_of_its_own(tmp_path: Path) -> None:
    mark = LogMark(tick=Tick(7), epoch=2, positions=by_log([ORDERS, ITEMS, SHOP]))
    again = LogMark.parse(mark.text())
    assert again == mark
    assert again.positions["lake.orders"].proof == ORDERS.proof, "it is needed to follow from there"
    further = replace(ORDERS, offset=6)
    moved = mark.following(by_log([further, replace(ITEMS, offset=1)])).positions
    assert (moved["lake.orders"], moved["lake.items"]) == (further, ITEMS), "each for itself, never back"
    committed_at = datetime(2026, 11, 18, tzinfo=UTC)
    log = ChangeLog.create(str(tmp_path / "log"))
    for one in (ORDERS, ITEMS, ORDERS, SHOP):  # the third is repeated, and dropped
        transaction = Transaction(position=one, identity=one.offset, committed_at=committed_at)
        log.append([Capture(transactions=(transaction,), rows={})])
    for opened in (log, ChangeLog.open(str(tmp_path / "log"))):
        assert opened.positions() == by_log([ORDERS, ITEMS, SHOP])
        assert opened.identities("lake", Tick(0), Tick(3)) == [(1, 5, "orders"), (2, 5, "items")]
        assert opened.identities("shop", Tick(0), Tick(3)) == [(3, SHOP.offset, "")]
        assert [opened.tick_at(one) for one in (ORDERS, ITEMS, SHOP)] == [1, 2, 3]
        assert [str(one.position) for _, one in opened.transactions("lake", Tick(0), Tick(3))] == [
            "lake.orders:5",
            "lake.items:5",
        ]
    record = CommitRecord(positions=by_log([ORDERS, SHOP]))
    commit = Commit(
        sequence=1,
        epoch=1,
        kind=CommitKind.BATCH,
        tick=Tick(3),
        committed_at=committed_at,
        record=record,
        catalog_sequence=0,
    )
    assert parse_commit(commit_text(commit)) == commit
