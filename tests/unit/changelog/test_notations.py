"""Positions are stored with their notation, and what was stored before notations were is read as it was meant."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from headwater.changelog import ChangeLog
from headwater.changelog.mark import LogMark
from headwater.model.position import LSN, Notation, Position, Tick
from headwater.model.relation import Column, Relation, RelationName
from headwater.model.transaction import Capture, Transaction
from headwater.warehouse.commit_record import Commit, CommitKind, CommitRecord, commit_text, parse_commit
from headwater.warehouse.followed import noted_position
from headwater.warehouse.mailbox import awaited_position, note_awaited

VERSIONS = Notation(history="table id")
LAKE = Position(source="lake", history="7f", offset=12, notation=VERSIONS)
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
        assert opened.tick_at("lake", LAKE) == 1


def test_what_the_maintainer_says_and_is_asked_for_keeps_its_notation(tmp_path: Path) -> None:
    assert noted_position("shop", {"position": ["71:1", 9]}) == Position(source="shop", history="71:1", offset=9)
    assert noted_position("lake", {"position": json.loads(json.dumps(LAKE.written()))}) == LAKE
    assert noted_position("lake", {"position": None}) is None
    for position in (LAKE, SHOP):
        note_awaited(str(tmp_path), position)
        assert awaited_position(str(tmp_path), position.source) == position
    assert SHOP.notation == LSN
