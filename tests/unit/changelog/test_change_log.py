from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from headwater.changelog import ChangeLog
from headwater.changelog.mark import LogMark, LogSlot
from headwater.errors import LeaseLost, SourceLost
from headwater.model.position import Position, Tick, by_log
from headwater.model.relation import Column, Relation, RelationName
from headwater.model.transaction import Capture, Transaction

SALES = RelationName(source="shop", name="sales")
ITEMS = RelationName(source="shop", name="items")
START = datetime(2026, 1, 1, tzinfo=UTC)


def transaction(source: str, offset: int, history: str = "1:1") -> Transaction:
    position = Position(source=source, history=history, offset=offset)
    return Transaction(position=position, identity=offset * 10, committed_at=START + timedelta(seconds=offset))


def capture(source: str, offsets: list[int], rows: dict[RelationName, list[tuple[object, ...]]]) -> Capture:
    """Rows are (ordinal, count, id, name)."""
    tables = {
        name: pa.table(
            {
                "id": pa.array([row[2] for row in values], pa.int64()),
                "name": pa.array([row[3] for row in values], pa.string()),
                "_ordinal": pa.array([row[0] for row in values], pa.int32()),
                "_count": pa.array([row[1] for row in values], pa.int64()),
            }
        )
        for name, values in rows.items()
    }
    return Capture(transactions=tuple(transaction(source, offset) for offset in offsets), rows=tables)


def flat(table: pa.Table) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in table.to_pylist()]


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "changelog")


def test_ticks_are_consecutive_over_captures_and_rows_carry_them(path: str) -> None:
    log = ChangeLog.create(path)
    span = log.append(
        [
            capture("shop", [5, 6], {SALES: [(0, 1, 1, "pen"), (1, -1, 1, "pen"), (1, 1, 1, "ink")]}),
            capture("bank", [3], {}),
        ]
    )
    assert (span.after, span.upto) == (0, 3)
    assert [tick for tick, _ in span.transactions] == [1, 2, 3]
    assert log.last_tick == 3
    expected = [(1, "pen", 1, 1), (1, "pen", 2, -1), (1, "ink", 2, 1)]
    assert flat(log.rows(SALES, ("id", "name"), Tick(0), Tick(3))) == expected
    again = ChangeLog.open(path)
    assert flat(again.rows(SALES, ("id", "name"), Tick(0), Tick(3))) == expected
    assert flat(again.rows(SALES, ("name",), Tick(1), Tick(2))) == [("pen", 2, -1), ("ink", 2, 1)]
    assert again.transactions(None, Tick(0), Tick(3)) == log.transactions(None, Tick(0), Tick(3))
    assert [tick for tick, _ in again.transactions("bank", Tick(0), Tick(3))] == [3]
    assert (
        log.identities("shop", Tick(0), Tick(3))
        == again.identities("shop", Tick(0), Tick(3))
        == [(1, 50, ""), (2, 60, "")]
    )
    assert log.identities("shop", Tick(1), Tick(3)) == [(2, 60, "")]
    assert again.positions() == log.positions()


def test_a_repeated_transaction_is_dropped_with_its_rows(path: str) -> None:
    log = ChangeLog.create(path)
    log.append([capture("shop", [5], {SALES: [(0, 1, 1, "pen")]})])
    again = ChangeLog.open(path)
    span = again.append([capture("shop", [5, 7], {SALES: [(0, 1, 1, "pen"), (1, 1, 2, "ink")]})])
    assert (span.after, span.upto) == (1, 2)
    assert flat(again.rows(SALES, ("id", "name"), Tick(0), Tick(2))) == [(1, "pen", 1, 1), (2, "ink", 2, 1)]
    version = again._table.version
    assert again.append([capture("shop", [5, 7], {})]).transactions == ()
    assert again._table.version == version


def test_another_history_of_a_source_is_refused(path: str) -> None:
    log = ChangeLog.create(path)
    log.append([capture("shop", [5], {})])
    with pytest.raises(SourceLost):
        log.append([Capture(transactions=(transaction("shop", 9, "1:2"),), rows={})])


def test_an_older_writer_is_fenced(path: str) -> None:
    old = ChangeLog.create(path)
    old.take_over(1)
    old.append([capture("shop", [1], {})])
    new = ChangeLog.open(path)
    new.take_over(2)
    with pytest.raises(LeaseLost):
        old.append([capture("shop", [2], {SALES: [(0, 1, 1, "lost")]})])
    assert new.append([capture("shop", [2], {})]).upto == 2
    with pytest.raises(LeaseLost):
        old.append([capture("shop", [3], {})])
    with pytest.raises(LeaseLost):
        old.take_over(1)


def test_a_compaction_between_two_appends_does_not_disturb(path: str) -> None:
    log = ChangeLog.create(path)
    for offset in range(1, 6):
        log.append([capture("shop", [offset], {SALES: [(0, 1, offset, "x")]})])
    other = ChangeLog.open(path)._table
    assert other.compact(1 << 20)
    log.append([capture("shop", [6], {SALES: [(0, 1, 6, "x")]})])
    assert log.last_tick == 6
    again = ChangeLog.open(path)
    assert [row[0] for row in flat(again.rows(SALES, ("id",), Tick(0), Tick(6)))] == [1, 2, 3, 4, 5, 6]


def test_a_relation_gains_a_column_and_another_changes_its_type(path: str) -> None:
    log = ChangeLog.create(path)
    log.append([capture("shop", [1], {SALES: [(0, 1, 1, "pen")]})])
    wider = pa.table({"id": [2], "name": ["ink"], "price": [1.5], "_ordinal": pa.array([0], pa.int32()), "_count": [1]})
    log.append([Capture(transactions=(transaction("shop", 2),), rows={SALES: wider})])
    typed = pa.table(
        {"id": ["3"], "name": ["nib"], "price": [2.5], "_ordinal": pa.array([0], pa.int32()), "_count": [1]}
    )
    log.append([Capture(transactions=(transaction("shop", 3),), rows={SALES: typed})])
    expected = [("1", None, 1, 1), ("2", 1.5, 2, 1), ("3", 2.5, 3, 1)]
    for reader in (log, ChangeLog.open(path)):
        assert flat(reader.rows(SALES, ("id", "price"), Tick(0), Tick(3))) == expected
    assert ChangeLog.open(path)._table.compact(1 << 20)
    again = ChangeLog.open(path)
    assert flat(again.rows(SALES, ("id", "price"), Tick(0), Tick(3))) == expected
    assert flat(again.rows(SALES, ("price",), Tick(0), Tick(1))) == [(None, 1, 1)]


def test_a_declared_relation_can_be_read_before_its_first_row(path: str) -> None:
    log = ChangeLog.create(path)
    column = Column(name="id", type="bigint", native="bigint")
    log.declare([Relation(name=ITEMS, columns=(column,))])
    log.declare([Relation(name=ITEMS, columns=(column,))])
    log.append([capture("shop", [1], {SALES: [(0, 1, 1, "pen")]})])
    for reader in (log, ChangeLog.open(path)):
        table = reader.rows(ITEMS, ("id",), Tick(0), Tick(1))
        assert table.num_rows == 0
        assert table.column_names == ["id", "_tick", "_count"]


def test_positions_have_ticks(path: str) -> None:
    log = ChangeLog.create(path)
    log.append([capture("shop", [10, 20], {}), capture("bank", [5], {})])
    log.append([capture("shop", [30], {})])

    def at(offset: int) -> Position:
        return Position(source="shop", history="1:1", offset=offset)

    for reader in (log, ChangeLog.open(path)):
        assert [reader.tick_at(at(offset)) for offset in (9, 10, 25, 30, 99)] == [None, 1, 2, 4, 4]


def test_many_appends_then_reading_through_trim(path: str) -> None:
    log = ChangeLog.create(path)
    for offset in range(1, 41):
        log.append([capture("shop", [offset], {SALES: [(0, 1, offset, "x"), (0, -1, offset, "y")]})])
    everything = flat(log.rows(SALES, ("id", "name"), Tick(0), Tick(40)))
    log.tail.trim(Tick(30))
    assert flat(log.rows(SALES, ("id", "name"), Tick(0), Tick(40))) == everything
    assert flat(log.rows(SALES, ("id", "name"), Tick(33), Tick(35))) == everything[66:70]
    assert ChangeLog.open(path).last_tick == 40


def at(source: str, offset: int, history: str = "1:1") -> Position:
    return Position(source=source, history=history, offset=offset)


def test_how_far_sources_were_followed_is_noted_without_a_tick_and_survives(path: str) -> None:
    log = ChangeLog.create(path)
    log.append([capture("shop", [5], {})], {"shop": at("shop", 9), "bank": at("bank", 4)})
    assert ChangeLog.open(path).positions() == {"shop": at("shop", 9), "bank": at("bank", 4)}
    log.note({"shop": at("shop", 7), "bank": at("bank", 6)})
    opened = ChangeLog.open(path)
    assert opened.positions() == {"shop": at("shop", 9), "bank": at("bank", 6)}, "never back"
    assert opened.last_tick == 1
    assert opened.append([capture("shop", [8, 9], {})]).transactions == (), "nothing was there up to 9"
    version = opened._table.version
    opened.note({"shop": at("shop", 9)})
    assert opened._table.version == version, "what is known is not written again"


def test_a_slot_is_claimed_and_begun_and_given_up(path: str) -> None:
    log = ChangeLog.create(path)
    log.append([capture("shop", [5], {})])
    log.claim("shop", "slot_1")
    assert ChangeLog.open(path).slots() == {"shop": LogSlot(name="slot_1", has_begun=False)}
    assert ChangeLog.open(path).positions() == {"shop": at("shop", 5)}
    log.begin("shop", by_log([at("shop", 90)]))
    log.take_over(3)
    log.append([capture("bank", [1], {})])
    opened = ChangeLog.open(path)
    assert opened.slots() == {"shop": LogSlot(name="slot_1", has_begun=True, since=Tick(1))}
    assert opened.positions()["shop"] == at("shop", 90)
    opened.claim("shop", "slot_2")
    assert ChangeLog.open(path).slots() == {"shop": LogSlot(name="slot_2", has_begun=False)}
    opened.begin("shop", by_log([at("shop", 40)]))
    assert ChangeLog.open(path).positions()["shop"] == at("shop", 40), "a log that was begun again is held from there"
    opened.append([capture("shop", [41], {})])
    assert opened.identities("shop", Tick(0), Tick(3)) == [(3, 410, "")], "what was before it has no identity any more"
    assert [tick for tick, _ in opened.transactions("shop", Tick(0), Tick(3))] == [1, 3]


def test_a_slot_that_was_there_is_adopted_and_what_is_held_stays_held(path: str) -> None:
    log = ChangeLog.create(path)
    log.append([capture("shop", [5], {})])
    for forgotten_to, held_to in ((3, 5), (9, 9)):
        log.adopt("shop", "slot_1", by_log([at("shop", forgotten_to)]))
        opened = ChangeLog.open(path)
        assert opened.slots() == {"shop": LogSlot(name="slot_1", has_begun=True)}
        assert opened.positions() == by_log([at("shop", held_to)])


def test_a_slot_on_another_server_does_not_begin(path: str) -> None:
    log = ChangeLog.create(path)
    log.append([capture("shop", [5], {})])
    log.claim("shop", "slot_1")
    with pytest.raises(SourceLost, match="not the server it was"):
        log.begin("shop", by_log([at("shop", 90, history="2:1")]))


def test_a_writer_that_was_replaced_notes_nothing(path: str) -> None:
    old = ChangeLog.create(path)
    ChangeLog.open(path).take_over(2)
    with pytest.raises(LeaseLost):
        old.note({"shop": at("shop", 9)})
    assert ChangeLog.open(path).positions() == {}


def test_a_mark_from_before_slots_were_recorded_has_none() -> None:
    mark = LogMark.parse('{"tick": 3, "epoch": 1, "positions": {"shop": ["1:1", 5]}}')
    assert (mark.slots, mark.positions) == ({}, {"shop": at("shop", 5)})


def test_a_reader_looks_ahead_and_changes_nothing(path: str) -> None:
    log = ChangeLog.create(path)
    log.append([capture("shop", [5, 6], {SALES: [(0, 1, 1, "pen"), (1, 1, 2, "ink")]})])
    reader = ChangeLog.open(path)
    reader.look_ahead([capture("shop", [6, 7], {SALES: [(0, 1, 2, "ink"), (1, -1, 1, "pen")]})])  # 6 is there already
    reader.look_ahead([capture("bank", [3], {})])
    assert (reader.durable_tick, reader.last_tick, reader.positions()["shop"].offset) == (2, 4, 7)
    wanted = ("id",)
    assert flat(reader.rows(SALES, wanted, Tick(0), Tick(4))) == [(1, 1, 1), (2, 2, 1), (1, 3, -1)]
    assert flat(reader.rows(SALES, wanted, Tick(1), Tick(2))) == [(2, 2, 1)]
    assert flat(reader.rows(SALES, wanted, Tick(2), Tick(4))) == [(1, 3, -1)]
    assert [tick for tick, _ in reader.transactions(None, Tick(0), Tick(4))] == [1, 2, 3, 4]
    assert [tick for tick, _ in reader.transactions("shop", Tick(1), Tick(3))] == [2, 3]
    assert not reader.has_moved()

    log.append([capture("bank", [9], {})])
    assert reader.has_moved()
    reader.refresh()
    assert [one.position.offset for _, one in reader.transactions("bank", Tick(0), Tick(4))] == [3], (
        "it stays as it was"
    )
    assert flat(reader.rows(SALES, wanted, Tick(0), Tick(4))) == [(1, 1, 1), (2, 2, 1), (1, 3, -1)]
    assert [tick for tick, _ in ChangeLog.open(path).transactions(None, Tick(0), Tick(9))] == [1, 2, 3]
