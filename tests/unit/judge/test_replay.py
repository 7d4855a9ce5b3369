from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from headwater.errors import UnfaithfulLog
from headwater.judge.audit import AuditedChange
from headwater.judge.grade_changes import History, grade_changes
from headwater.judge.replay import ReplayedView, replay
from headwater.model.guarantee import Guarantee
from headwater.model.position import Tick
from headwater.model.relation import Column, Relation, RelationName

STORES = Relation(
    name=RelationName(source="geo", name="stores"),
    columns=(Column(name="id", type="int", native="int4"), Column(name="city", type="string", native="text")),
)
SALES = Relation(
    name=RelationName(source="shop", name="sales"),
    columns=(
        Column(name="store", type="int", native="int4"),
        Column(name="amount", type="decimal(10,2)", native="numeric(10,2)"),
    ),
)
VIEW = ReplayedView(
    name="v",
    sql="SELECT st.city, s.amount * 2 AS twice FROM shop.sales s JOIN geo.stores st ON st.id = s.store",
    birth=Tick(1),
)


def store(identity: int, old: tuple[str, str] | None, new: tuple[str, str] | None) -> AuditedChange:
    return change("geo", identity, STORES, old, new)


def sale(identity: int, old: tuple[str, str | None] | None, new: tuple[str, str | None] | None) -> AuditedChange:
    return change("shop", identity, SALES, old, new)


def change(
    source: str,
    identity: int,
    relation: Relation,
    old: tuple[str | None, ...] | None,
    new: tuple[str | None, ...] | None,
) -> AuditedChange:
    old_row, new_row = (
        None if row is None else dict(zip(relation.column_names, row, strict=True)) for row in (old, new)
    )
    return AuditedChange(source=source, identity=identity, relation=relation.name, old=old_row, new=new_row)


HISTORY = (
    store(10, None, ("1", "Oslo")),
    sale(50, None, ("1", "2.50")),
    sale(51, None, ("1", "2.50")),
    sale(51, None, ("1", None)),
    store(11, ("1", "Oslo"), ("1", "Rome")),
    sale(52, ("1", "2.50"), None),
)
TICKS = ((Tick(1), "shop", 50), (Tick(2), "shop", 51), (Tick(3), "geo", 11), (Tick(4), "shop", 52))


def replayed(history: tuple[AuditedChange, ...] = HISTORY) -> History:
    made = replay(relations=(STORES, SALES), views=(VIEW,), history=history, before={("geo", 10)}, ticks=TICKS)
    return made["v"]


def test_every_state_is_told_as_changes() -> None:
    five = Decimal("5.00")
    assert replayed() == History(
        birth=Tick(1),
        start={("Oslo", five): 1},
        changes={
            Tick(2): {("Oslo", five): 1, ("Oslo", None): 1},
            Tick(3): {("Oslo", five): -2, ("Oslo", None): -1, ("Rome", five): 2, ("Rome", None): 1},
            Tick(4): {("Rome", five): -1},
        },
    )


def test_a_view_over_views_is_recomputed_when_what_they_read_changes() -> None:
    """Two views may know lower ones by the same names and other texts: one may just be built anew."""
    rich = ("rich", "SELECT s.store, s.amount FROM shop.sales s WHERE s.amount > 1;")
    where = ("where_rich", "SELECT st.city, r.amount FROM rich r JOIN geo.stores st ON st.id = r.store")
    above = ReplayedView(name="w", sql="SELECT city FROM where_rich", birth=Tick(1), lower=(rich, where))
    other = replace(above, name="x", lower=((rich[0], rich[1].replace(">", "<")), where))
    ticks = ((Tick(1), "shop", 50), (Tick(2), "shop", 51), (Tick(3), "geo", 11), (Tick(4), "shop", 52))
    made = replay(
        relations=(STORES, SALES), views=(above, VIEW, other), history=HISTORY, before={("geo", 10)}, ticks=ticks
    )
    assert made["v"] == replayed()
    assert made["w"].start == {("Oslo",): 1}
    assert made["w"].changes == {
        Tick(2): {("Oslo",): 1},
        Tick(3): {("Oslo",): -2, ("Rome",): 2},
        Tick(4): {("Rome",): -1},
    }
    assert not made["x"].start
    assert not made["x"].changes


def test_transactions_that_share_a_tick_are_one_state() -> None:
    joint = ((Tick(1), "shop", 50), (Tick(2), "shop", 51), (Tick(2), "geo", 11), (Tick(3), "shop", 52))
    made = replay(relations=(STORES, SALES), views=(VIEW,), history=HISTORY, before={("geo", 10)}, ticks=joint)
    five = Decimal("5.00")
    assert made["v"].changes == {
        Tick(2): {("Oslo", five): -1, ("Rome", five): 2, ("Rome", None): 1},
        Tick(3): {("Rome", five): -1},
    }


def test_a_history_that_says_otherwise_is_noticed() -> None:
    right = replayed()
    corrupted = (*HISTORY[:2], replace(HISTORY[2], new={"store": "1", "amount": "2.51"}), *HISTORY[3:])
    verdict = grade_changes(replayed(corrupted), right, through=Tick(4))
    assert verdict.guarantee is Guarantee.NONE
    assert verdict.first_bad_tick == 2
    assert grade_changes(replayed(), right, through=Tick(4)).guarantee is Guarantee.COMPLETE


@pytest.mark.parametrize(
    ("ticks", "said"),
    [
        (TICKS[:-1], "missing: shop:52"),
        ((*TICKS, (Tick(5), "shop", 52)), "more than once: shop:52"),
        ((*TICKS, (Tick(5), "shop", 53)), "never audited: shop:53"),
        (((Tick(1), "geo", 10), *TICKS), "older than the log: geo:10"),
    ],
)
def test_the_log_must_hold_every_transaction_once(ticks: tuple[tuple[Tick, str, int], ...], said: str) -> None:
    with pytest.raises(UnfaithfulLog) as raised:
        replay(relations=(STORES, SALES), views=(VIEW,), history=HISTORY, before={("geo", 10)}, ticks=ticks)
    assert raised.value.detail == said


def test_rows_unlike_those_of_the_beginning_are_seen() -> None:
    # DuckDB plans a prepared query with the statistics of the moment: it once joined without what came later
    first = [store(1, None, (str(number), "Oslo")) for number in range(1, 13)]
    sold = [sale(1, None, (str(1 + number % 13), "1.00")) for number in range(300)]
    made = replay(
        relations=(STORES, SALES),
        views=(replace(VIEW, birth=Tick(0)),),
        history=[*first, *sold, store(2, None, ("13", "Rome"))],
        before={("geo", 1), ("shop", 1)},
        ticks=[(Tick(1), "geo", 2)],
    )
    assert made["v"].changes == {Tick(1): {("Rome", Decimal("2.00")): 23}}
