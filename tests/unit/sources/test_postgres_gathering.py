from __future__ import annotations

import struct
import tempfile
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from headwater.errors import SourceRefused
from headwater.model.memory_budget import SPILL_BYTES
from headwater.model.position import Position
from headwater.model.relation import COUNT, Column, ColumnUse, Relation, RelationName
from headwater.model.transaction import ORDINAL, Capture
from headwater.sources.postgres import gathering as gathering_module
from headwater.sources.postgres import messages, row_buffer
from headwater.sources.postgres.gathering import Gathering
from headwater.sources.postgres.messages import WireRelation

NAME = RelationName(source="shop", name="sales")
SALES = Relation(
    name=NAME,
    columns=(Column(name="id", type="int", native="integer"), Column(name="text", type="string", native="text")),
)
TYPES: dict[int, tuple[str | None, str]] = {23: ("int", "integer"), 25: ("string", "text"), 20: ("bigint", "bigint")}
START = Position(source="shop", history="1:1", offset=100)


def begin(commit_offset: int, xid: int) -> bytes:
    return b"B" + struct.pack(">qqI", commit_offset, 0, xid)


def commit(offset: int, end_offset: int) -> bytes:
    return b"C" + struct.pack(">Bqqq", 0, offset, end_offset, 1_000_000)


def begin_prepare(prepare_offset: int, xid: int, gid: bytes = b"transfer 7") -> bytes:
    return b"b" + struct.pack(">qqqI", prepare_offset, prepare_offset + 9, 0, xid) + gid + b"\0"


def prepare(prepare_offset: int, xid: int, gid: bytes = b"transfer 7") -> bytes:
    return b"P" + struct.pack(">BqqqI", 0, prepare_offset, prepare_offset + 9, 0, xid) + gid + b"\0"


def commit_prepared(offset: int, end_offset: int, xid: int, gid: bytes = b"transfer 7") -> bytes:
    return b"K" + struct.pack(">BqqqI", 0, offset, end_offset, 1_000_000, xid) + gid + b"\0"


def roll_back_prepared(offset: int, xid: int, gid: bytes = b"transfer 7") -> bytes:
    return b"r" + struct.pack(">BqqqqI", 0, 0, offset, 0, 1_000_000, xid) + gid + b"\0"


def relation(*columns: tuple[str, int], identity: bytes = b"f", name: bytes = b"sales", oid: int = 7) -> bytes:
    sent = b"".join(b"\0" + column.encode() + b"\0" + struct.pack(">Ii", type_oid, -1) for column, type_oid in columns)
    return (
        b"R" + struct.pack(">I", oid) + b"public\0" + name + b"\0" + identity + struct.pack(">H", len(columns)) + sent
    )


def row(*values: str | None) -> bytes:
    parts = [
        b"n"
        if value is None
        else b"u"
        if value == "UNCHANGED"
        else b"t" + struct.pack(">I", len(value)) + value.encode()
        for value in values
    ]
    return struct.pack(">H", len(values)) + b"".join(parts)


def change(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack(">I", 7) + body


def insert(*values: str | None) -> bytes:
    return change(b"I", b"N" + row(*values))


class NoPartitions:
    def leaves(self, _name: RelationName) -> dict[int, str]:
        return {}

    def roots(self, _wire: WireRelation) -> tuple[RelationName, ...]:
        return ()


LAYOUT = relation(("id", 23), ("text", 25))


@pytest.fixture
def gathering() -> Gathering:
    return Gathering(
        relations=[SALES],
        oids={7: NAME},
        after=START,
        recent_xid=(1 << 32) + 5,
        describe=lambda oid, _: TYPES[oid],
        partitions=NoPartitions(),
    )


def rows(capture: Capture) -> list[tuple[int, int, int, str | None]]:
    table = capture.rows[NAME]
    return [(row[ORDINAL], row[COUNT], row["id"], row["text"]) for row in table.to_pylist()]


def feed(gathering: Gathering, *sent: bytes) -> None:
    for message in sent:
        gathering.feed(message)


def test_whole_transactions_only_and_the_rest_later(gathering: Gathering) -> None:
    feed(gathering, begin(110, 4), LAYOUT, insert("1", "a"), commit(110, 120), begin(130, 6), insert("2", None))
    first = gathering.take()
    assert rows(first) == [(0, 1, 1, "a")]
    assert [transaction.identity for transaction in first.transactions] == [(1 << 32) + 4]
    assert first.transactions[0].position.offset == 120
    assert not gathering.has_transactions
    assert gathering.row_count == 1
    feed(gathering, insert("3", ""), commit(130, 140))
    assert rows(gathering.take()) == [(0, 1, 2, None), (0, 1, 3, "")]
    assert gathering.row_count == 0


def test_what_ends_at_or_before_the_start_is_dropped(gathering: Gathering) -> None:
    feed(gathering, begin(90, 3), LAYOUT, insert("1", "a"), commit(90, 100))
    assert not gathering.has_transactions
    feed(gathering, begin(100, 4), insert("2", "b"), commit(100, 110))
    assert rows(gathering.take()) == [(0, 1, 2, "b")]


def test_a_transaction_that_touches_nothing_of_ours_is_none(gathering: Gathering) -> None:
    feed(gathering, begin(110, 4), b"I" + struct.pack(">I", 99) + b"N" + row("1"), commit(110, 120))
    assert not gathering.has_transactions
    assert gathering.committed_to == 120


def test_updates_take_unchanged_values_from_the_old_row(gathering: Gathering) -> None:
    update = change(b"U", b"O" + row("1", "large") + b"N" + row("2", "UNCHANGED"))
    feed(gathering, begin(110, 4), LAYOUT, update, change(b"D", b"O" + row("3", None)), commit(110, 120))
    assert rows(gathering.take()) == [(0, -1, 1, "large"), (0, 1, 2, "large"), (0, -1, 3, None)]


def test_rows_before_a_truncate_are_dropped_in_its_transaction_only(gathering: Gathering) -> None:
    truncate = b"T" + struct.pack(">IB", 1, 0) + struct.pack(">I", 7)
    feed(gathering, begin(110, 4), LAYOUT, insert("1", "a"), commit(110, 120))
    feed(gathering, begin(130, 5), insert("2", "b"), truncate, insert("3", "c"), truncate, insert("4", "d"))
    assert rows(gathering.take()) == [(0, 1, 1, "a")]
    feed(gathering, commit(130, 140))
    capture = gathering.take()
    assert rows(capture) == [(0, 1, 4, "d")]
    assert capture.truncated == {0: (NAME,)}
    assert gathering.row_count == 0


def test_a_prepared_transaction_comes_where_it_commits(gathering: Gathering) -> None:
    feed(gathering, begin(105, 3), LAYOUT, insert("0", "z"), commit(105, 109))
    feed(gathering, begin_prepare(110, 4), insert("1", "a"), insert("2", "b"), prepare(110, 4))
    feed(gathering, begin(130, 6), insert("3", "c"), commit(130, 140))
    assert rows(gathering.take()) == [(0, 1, 0, "z"), (1, 1, 3, "c")]
    assert gathering.row_count == 0
    feed(gathering, begin(150, 7), insert("4", "d"), commit(150, 160), commit_prepared(170, 180, 4))
    feed(gathering, begin(190, 8), insert("5", "e"), commit(190, 200))
    capture = gathering.take()
    assert rows(capture) == [(0, 1, 4, "d"), (1, 1, 1, "a"), (1, 1, 2, "b"), (2, 1, 5, "e")]
    told = [(one.position.offset, one.identity - (1 << 32), one.gid) for one in capture.transactions]
    assert told == [(160, 7, None), (180, 4, "transfer 7"), (200, 8, None)]


def test_a_prepared_transaction_that_is_rolled_back_leaves_nothing(gathering: Gathering) -> None:
    feed(gathering, begin_prepare(110, 4), LAYOUT, insert("1", "a"), prepare(110, 4), roll_back_prepared(120, 4))
    assert not gathering.has_transactions
    assert gathering.may_forget(150) == 150
    feed(gathering, begin_prepare(130, 5), insert("2", "b"), prepare(130, 5), commit_prepared(140, 150, 5))
    assert rows(gathering.take()) == [(0, 1, 2, "b")]


def test_nothing_is_forgotten_from_a_prepare_on_until_its_outcome_is_durable(gathering: Gathering) -> None:
    feed(gathering, begin_prepare(110, 4), LAYOUT, insert("1", "a"), prepare(110, 4))
    feed(gathering, begin_prepare(120, 5, b"other"), insert("2", "b"), prepare(120, 5, b"other"))
    feed(gathering, begin(130, 6), insert("3", "c"), commit(130, 140))
    assert gathering.may_forget(105) == 105
    assert gathering.may_forget(140) == 110
    feed(gathering, commit_prepared(150, 160, 4))
    assert gathering.may_forget(140) == 110, "it is known to commit, and not durable"
    assert gathering.may_forget(160) == 120, "the other one has no outcome"
    feed(gathering, roll_back_prepared(170, 5, b"other"))
    assert gathering.may_forget(170) == 170


def test_a_prepared_transaction_that_committed_before_the_start_is_dropped(gathering: Gathering) -> None:
    feed(gathering, begin_prepare(50, 4), LAYOUT, insert("1", "a"), prepare(50, 4), commit_prepared(90, 100, 4))
    assert not gathering.has_transactions
    assert gathering.row_count == 0
    feed(gathering, begin_prepare(60, 5), insert("2", "b"), prepare(60, 5), commit_prepared(100, 110, 5))
    assert rows(gathering.take()) == [(0, 1, 2, "b")], "it was prepared before, and commits after"


def test_a_prepared_transaction_without_rows_of_ours_is_a_part_all_the_same(gathering: Gathering) -> None:
    feed(gathering, commit_prepared(110, 120, 4))
    capture = gathering.take()
    assert [one.gid for one in capture.transactions] == ["transfer 7"]
    assert not capture.rows


def test_a_truncate_is_prepared_too(gathering: Gathering) -> None:
    truncate = b"T" + struct.pack(">IB", 1, 0) + struct.pack(">I", 7)
    feed(gathering, begin_prepare(110, 4), LAYOUT, insert("1", "a"), truncate, insert("2", "b"), prepare(110, 4))
    feed(gathering, begin(130, 6), insert("3", "c"), commit(130, 140), commit_prepared(150, 160, 4))
    capture = gathering.take()
    assert rows(capture) == [(0, 1, 3, "c"), (1, 1, 2, "b")]
    assert capture.truncated == {1: (NAME,)}


def test_columns_may_come_and_change_places_within_a_transaction(gathering: Gathering) -> None:
    wider = relation(("text", 25), ("more", 20), ("id", 23))
    feed(gathering, begin(110, 4), LAYOUT, insert("1", "a"), commit(110, 120))
    feed(gathering, begin(130, 5), insert("2", "b"), wider, insert("c", "9", "3"))
    assert rows(gathering.take()) == [(0, 1, 1, "a")]
    feed(gathering, commit(130, 140))
    assert rows(gathering.take()) == [(0, 1, 2, "b"), (0, 1, 3, "c")]


def followed(*uses: ColumnUse, described_at: int = 0, spill_bytes: int = SPILL_BYTES) -> Gathering:
    """Return a gathering of which each column has a use."""
    columns = tuple(replace(column, use=use) for column, use in zip(SALES.columns, uses, strict=True))
    return Gathering(
        relations=[replace(SALES, columns=columns)],
        oids={7: NAME},
        after=START,
        recent_xid=5,
        describe=lambda oid, _: TYPES[oid],
        partitions=NoPartitions(),
        described_at=described_at,
        spill_bytes=spill_bytes,
    )


@pytest.mark.parametrize("layout", [relation(("id", 23)), relation(("id", 23), ("text", 20))])
def test_a_column_that_no_view_reads_may_go_and_change_its_type_and_is_null_from_then_on(layout: bytes) -> None:
    gathering = followed(ColumnUse.READ, ColumnUse.UNREAD)
    values = ["7"] * (len(messages.parse_relation(layout).columns) - 1)
    feed(gathering, begin(110, 4), LAYOUT, insert("1", "a"), commit(110, 120))
    feed(gathering, begin(130, 5), layout, change(b"U", b"O" + row("1", *values) + b"N" + row("2", *values)))
    feed(gathering, LAYOUT, insert("3", "c"), commit(130, 140))
    assert rows(gathering.take()) == [(0, 1, 1, "a"), (1, -1, 1, None), (1, 1, 2, None), (1, 1, 3, "c")]


def test_a_column_that_a_new_view_reads_may_be_missing_before_it_was_described_and_not_after() -> None:
    gathering = followed(ColumnUse.READ, ColumnUse.FIRST_READ, described_at=200)
    feed(gathering, begin(110, 4), relation(("id", 23)), insert("1"), commit(110, 120))
    assert rows(gathering.take()) == [(0, 1, 1, None)]
    gathering.feed(begin(200, 5))
    with pytest.raises(SourceRefused, match='column "text"'):
        gathering.feed(relation(("id", 23)))


def test_a_value_that_cannot_be_kept_does_not_matter_where_no_view_reads_it() -> None:
    infinite = replace(SALES, columns=(SALES.columns[0], Column(name="text", type="date", native="date")))
    for use in (ColumnUse.UNREAD, ColumnUse.READ):
        buffer = row_buffer.RowBuffer(
            replace(infinite, columns=(*infinite.columns[:1], replace(infinite.columns[1], use=use)))
        )
        buffer.lay_out(("id", "text"))
        buffer.add([b"1", b"infinity"], 0, 1)
        if use is ColumnUse.UNREAD:
            taken = buffer.take_before(1)
            assert taken is not None
            assert taken["text"].to_pylist() == [None]
        else:
            with pytest.raises(SourceRefused, match="cannot be kept exactly"):
                buffer.take_before(1)


@pytest.mark.parametrize(
    ("message", "hint"),
    [
        (relation(("id", 23)), "change or remove the views that read it, then run again"),
        (relation(("id", 20), ("text", 25)), "`headwater teardown --source shop` and `headwater run`"),
        (relation(("id", 23), ("text", 25), identity=b"d"), 'ALTER TABLE "public"."sales" REPLICA IDENTITY FULL'),
    ],
)
def test_what_is_advised_fits_what_has_changed(gathering: Gathering, message: bytes, hint: str) -> None:
    gathering.feed(begin(110, 4))
    with pytest.raises(SourceRefused) as refused:
        gathering.feed(message)
    assert hint in refused.value.hint
    assert "teardown --source shop" in refused.value.hint, "the log holds the change: undoing it is not enough"


def test_segments_keep_order_and_ordinals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_buffer, "FULL_ROWS", 3)
    gathering = followed(ColumnUse.READ, ColumnUse.READ)
    feed(gathering, begin(110, 4), LAYOUT, *(insert(str(number), "a") for number in range(10)), commit(110, 120))
    feed(gathering, begin(130, 5), insert("10", "b"), commit(130, 140))
    assert [(row[0], row[2]) for row in rows(gathering.take())] == [(number // 10, number) for number in range(11)]


def test_what_has_no_room_is_in_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Of a large transaction, and of one that is prepared and may wait for long: by bytes, however few the rows."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(gathering_module, "_UNDECODED_BYTES", 20_000)
    monkeypatch.setattr(gathering_module, "_SMALL_BYTES", 20_000)
    gathering = followed(ColumnUse.READ, ColumnUse.READ, spill_bytes=50_000)
    before = pa.total_allocated_bytes()
    long = "x" * 1_000
    feed(gathering, begin_prepare(110, 4), LAYOUT, *(insert(str(n), long) for n in range(300)), prepare(110, 4))
    assert pa.total_allocated_bytes() - before < 20_000
    feed(gathering, begin(130, 6), *(insert(str(n), long) for n in range(300, 600)), commit(130, 140))
    feed(gathering, commit_prepared(150, 160, 4))
    assert pa.total_allocated_bytes() - before < 100_000
    assert not list(tmp_path.iterdir()), "the files have no name"
    assert gathering.byte_count > 600_000
    found = rows(gathering.take())
    assert [row[:3] for row in found] == [(0, 1, n) for n in range(300, 600)] + [(1, 1, n) for n in range(300)]
    assert gathering.byte_count == 0


@pytest.mark.parametrize(
    ("message", "detail"),
    [
        (relation(("id", 23)), 'column "text" (text) is gone'),
        (relation(("id", 20), ("text", 25)), 'column "id" was integer and is now bigint'),
        (relation(("id", 23), ("text", 25), identity=b"d"), "no longer FULL"),
        (relation(("id", 23), ("text", 25), name=b"sold"), 'called "shop.sold"'),
        (relation(("id", 23), ("text", 25), oid=8), "dropped and made again"),
    ],
)
def test_a_changed_shape_is_refused_by_name(gathering: Gathering, message: bytes, detail: str) -> None:
    gathering.feed(begin(110, 4))
    with pytest.raises(SourceRefused, match=r'relation "shop\.sales"') as refused:
        gathering.feed(message)
    assert detail in refused.value.detail


def test_a_change_without_its_old_row_is_refused(gathering: Gathering) -> None:
    feed(gathering, begin(110, 4), LAYOUT)
    with pytest.raises(SourceRefused, match="old row"):
        gathering.feed(change(b"U", b"N" + row("1", "a")))
