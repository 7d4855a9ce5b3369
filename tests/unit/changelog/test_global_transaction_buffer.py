"""What is held is not said to be accepted, comes twice without harm, and goes when it is released."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from headwater.changelog import global_transaction_buffer as holding_module
from headwater.changelog.follow import Followed
from headwater.changelog.global_transaction_buffer import GlobalSources, Holding
from headwater.errors import SourceRefused
from headwater.model.memory_budget import MemoryBudget
from headwater.model.position import Position, by_log
from headwater.model.project import IdColumn
from headwater.model.relation import RelationName
from headwater.model.transaction import Capture, Transaction


def at(source: str, offset: int) -> Position:
    return Position(source=source, history="1:1", offset=offset)


def followed(source: str, to: int, **ids: str | None) -> Followed:
    """Keywords are `at_OFFSET = id`."""
    offsets = [int(name.removeprefix("at_")) for name in ids]
    table = pa.table(
        {
            "id": pa.array(list(ids.values()), pa.string()),
            "_ordinal": pa.array(range(len(ids)), pa.int32()),
            "_count": pa.array([1] * len(ids), pa.int64()),
        }
    )
    transactions = tuple(
        Transaction(position=at(source, offset), identity=offset, committed_at=datetime.now(UTC)) for offset in offsets
    )
    rows = {RelationName(source=source, name="legs"): table}
    capture = Capture(transactions=transactions, rows=rows) if ids else None
    return Followed(source=source, capture=capture, followed_to=by_log([at(source, to)]))


def offsets(captures: list[Capture]) -> list[list[tuple[str, int]]]:
    return [[(one.source, one.position.offset) for one in capture.transactions] for capture in captures]


@pytest.fixture
def released() -> list[str]:
    return []


@pytest.fixture
def holding(released: list[str], monkeypatch: pytest.MonkeyPatch) -> Holding:
    monkeypatch.setattr(holding_module, "_LOOK_SECONDS", 0.0)

    def look() -> list[str]:
        found, released[:] = list(released), []
        return found

    some_rows = MemoryBudget.of(64 * 1_300)  # two transactions are less, three are more
    return Holding(GlobalSources(names=("a", "b"), ids=IdColumn(name="id")), look, budget=some_rows)


def test_a_source_is_accepted_up_to_what_is_held_of_it(holding: Holding) -> None:
    assert offsets(holding.take(followed("a", 5))) == []
    assert holding.reached() == {"a": at("a", 5)}
    assert offsets(holding.take(followed("a", 40, at_10=None, at_20="x", at_30=None))) == [[("a", 10)]]
    assert holding.reached() == {"a": at("a", 10)}
    assert holding.held() == {"a"}
    assert holding.has_read(by_log([at("a", 40)]))
    assert not holding.has_read(by_log([at("a", 41)]))
    assert [(one.id, one.missing) for one in holding.waiting] == [("x", ("b",))]
    assert offsets(holding.take(followed("c", 7, at_7="x"))) == [[("c", 7)]], "not one of those that take part"
    assert offsets(holding.take(followed("b", 9, at_8="x"))) == [[("a", 20), ("b", 8)], [("a", 30)]]
    assert holding.reached() == {"a": at("a", 40), "b": at("b", 9), "c": at("c", 7)}
    assert not holding.held()
    assert not holding.waiting


def test_what_a_source_repeats_after_a_lost_connection_is_dropped(holding: Holding) -> None:
    holding.take(followed("a", 20, at_10="x", at_20=None))
    assert holding.take(followed("a", 5)) == [], "a new connection begins where the log ends"
    assert offsets(holding.take(followed("a", 30, at_10="x", at_20=None, at_30=None))) == []
    assert offsets(holding.take(followed("b", 8, at_8="x"))) == [[("a", 10), ("b", 8)], [("a", 20)], [("a", 30)]]


def test_released_ones_go_alone_and_so_do_late_ones(holding: Holding, released: list[str]) -> None:
    holding.take(followed("a", 20, at_10="x", at_20="y"))
    released.append("x")
    assert offsets(holding.look()) == [[("a", 10)]]
    assert holding.reached() == {"a": at("a", 10)}
    assert offsets(holding.take(followed("b", 8, at_8="x"))) == [[("b", 8)]]


def test_a_source_of_which_much_is_held_is_full(holding: Holding) -> None:
    holding.take(followed("a", 30, at_10="x", at_20=None, at_30=None))
    assert holding.is_full("a")
    assert not holding.is_full("b")
    holding.take(followed("b", 8, at_8="x"))
    assert not holding.is_full("a")


def test_without_global_transactions_everything_goes_through_untouched() -> None:
    nothing = Holding(None, tuple)
    one = followed("a", 10, at_10="x")
    assert nothing.take(one) == [one.capture]
    assert nothing.look() == []
    assert nothing.reached() == {"a": at("a", 10)}


def test_a_source_of_several_logs_has_no_parts(holding: Holding) -> None:
    """Nothing says in which order its logs were committed."""
    logs = by_log([replace(at("a", 1), log="x"), replace(at("a", 1), log="y")])
    with pytest.raises(SourceRefused, match="cannot have parts") as refused:
        holding.take(Followed(source="a", capture=None, followed_to=logs))
    assert refused.value.code == "HW-342"
