from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from headwater.changelog import ChangeLog
from headwater.changelog.capture_parts import global_ids, join_captures, slice_capture, split_capture
from headwater.deltas.lookup import SawTransactions
from headwater.engine.state.accepted_log import AcceptedLog, held_changes
from headwater.errors import SourceUnavailable
from headwater.model.position import Position, Tick
from headwater.model.project import IdColumn, PreparedId
from headwater.model.relation import RelationName
from headwater.model.transaction import Capture, SeenUpTo, Transaction


def capture(
    source: str, offsets: list[int], rows: list[tuple[int, int, str | None]], truncated: tuple[int, ...] = ()
) -> Capture:
    """Rows are (ordinal, count, id)."""
    name = RelationName(source=source, name="legs")
    table = pa.table(
        {
            "transfer": pa.array([row[2] for row in rows], pa.string()),
            "_ordinal": pa.array([row[0] for row in rows], pa.int32()),
            "_count": pa.array([row[1] for row in rows], pa.int64()),
        }
    )
    transactions = tuple(
        Transaction(
            position=Position(source=source, history="1:1", offset=offset),
            identity=offset,
            committed_at=datetime(2026, 1, 1, tzinfo=UTC),
        )
        for offset in offsets
    )
    return Capture(transactions=transactions, rows={name: table}, truncated=dict.fromkeys(truncated, (name,)))


def test_an_id_counts_where_it_is_brought() -> None:
    rows = [
        (0, 1, "new"),
        (1, -1, "kept"),
        (1, 1, "kept"),
        (2, -1, "gone"),
        (3, -1, "old"),
        (3, 1, "other"),
        (4, 1, None),
        (5, 1, "x"),
        (5, 1, "y"),
    ]
    found = global_ids(capture("a", list(range(6)), rows), IdColumn(name="transfer"))
    assert found == {0: {"new"}, 3: {"other"}, 5: {"x", "y"}}
    assert global_ids(capture("a", [0], [(0, 1, "new")]), IdColumn(name="gid")) == {}


def test_numbers_and_texts_are_one_id() -> None:
    number = pa.table({"id": pa.array([7]), "_ordinal": pa.array([0], pa.int32()), "_count": pa.array([1], pa.int64())})
    whole = Capture(transactions=(), rows={RelationName(source="a", name="legs"): number})
    assert global_ids(whole, IdColumn(name="id")) == {0: {"7"}}


def test_prepared_transactions_are_parts_by_the_id_they_were_prepared_under() -> None:
    whole = capture("a", [1, 2, 3], [(0, 1, "x"), (1, 1, "y"), (2, 1, "z")])
    prepared = replace(whole.transactions[1], gid="transfer 7")
    whole = replace(whole, transactions=(whole.transactions[0], prepared, whole.transactions[2]))
    assert global_ids(whole, PreparedId()) == {1: {"transfer 7"}}


def test_taken_apart_and_put_together() -> None:
    whole = capture("a", [1, 2, 3, 4], [(0, 1, None), (1, 1, "x"), (2, 1, "y"), (3, 1, None)], truncated=(3,))
    pieces = list(split_capture(whole, IdColumn(name="transfer")))
    assert [(set(ids), [one.identity for one in piece.transactions]) for ids, piece in pieces] == [
        (set(), [1]),
        ({"x"}, [2]),
        ({"y"}, [3]),
        (set(), [4]),
    ]
    assert pieces[3][1].truncated == {0: (RelationName(source="a", name="legs"),)}
    joined = join_captures([piece for _, piece in pieces])
    assert joined.joint
    assert joined.transactions == whole.transactions
    assert joined.rows == whole.rows
    assert joined.truncated == whole.truncated
    assert slice_capture(whole, 0, 4) is whole


def test_a_joint_capture_is_one_tick_and_a_half_seen_tick_is_asked_for_again(tmp_path: Path) -> None:
    log = ChangeLog.create(str(tmp_path / "log"))
    first = capture("a", [1], [(0, 1, None)])
    both = join_captures([capture("a", [2, 3], [(0, 1, "x"), (1, 1, "y")]), capture("b", [5], [(0, 1, "x")])])
    span = log.append([first, both, capture("b", [6], [(0, 1, None)])])
    assert [tick for tick, _ in span.transactions] == [1, 2, 2, 2, 3]
    assert span.upto == log.last_tick == 3
    assert log.identities("a", Tick(0), Tick(3)) == [(1, 1, ""), (2, 2, ""), (2, 3, "")]
    again = log.append([both])
    assert (again.upto, again.transactions) == (3, ())

    legs = RelationName(source="a", name="legs")
    settled: dict[str, Tick] = {}
    accepted = AcceptedLog(log, settled, held_changes(log))

    def saw(*identities: int) -> SawTransactions:
        running = frozenset(range(10)) - set(identities)
        return SawTransactions(seen=SeenUpTo(last=9, hidden=running))

    assert len(accepted.unseen_upto(legs, ("transfer",), saw(1), Tick(3))) == 2
    assert len(accepted.seen_after(legs, ("transfer",), saw(1, 2, 3), Tick(1))) == 2
    with pytest.raises(SourceUnavailable, match="saw a part of a tick"):
        accepted.seen_after(legs, ("transfer",), saw(1, 2), Tick(1))
    with pytest.raises(SourceUnavailable, match="saw a part of a tick"):
        accepted.unseen_upto(legs, ("transfer",), saw(1, 3), Tick(3))
    accepted.settle("a", saw(1, 2))
    assert settled == {"a": 1}
    accepted.settle("a", saw(1, 2, 3))
    assert settled == {"a": 2}
