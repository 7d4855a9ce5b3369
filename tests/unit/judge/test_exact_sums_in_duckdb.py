"""The judge's sums of doubles: exact, whatever the order of rows, wherever in a text they stand."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest

from headwater.judge.audit import AuditedChange
from headwater.judge.replay import ReplayedView, replay
from headwater.model.position import Tick
from headwater.model.relation import Column, Relation, RelationName

NUMBERS = Relation(
    name=RelationName(source="lab", name="numbers"),
    columns=(
        Column(name="k", type="int", native="int4"),
        Column(name="x", type="double", native="float8"),
        Column(name="m", type="decimal(10,2)", native="numeric(10,2)"),
    ),
)
ROWS = (("1", "1e16", "0.10"), ("1", "1", "0.20"), ("1", "-1e16", None), ("2", "0.1", "1.00"), ("2", "0.2", "2.00"))
SUMS = {1: 1.0, 2: math.fsum([0.1, 0.2])}


def state(sql: str, order: tuple[int, ...]) -> set[tuple[object, ...]]:
    """Return a view's state over the rows, inserted in an order."""
    history = [
        AuditedChange(
            source="lab",
            identity=n,
            relation=NUMBERS.name,
            old=None,
            new=dict(zip(NUMBERS.column_names, ROWS[n], strict=True)),
        )
        for n in order
    ]
    view = ReplayedView(
        name="v", sql=sql, birth=Tick(9), lower=(("low", "SELECT k, SUM(x) AS s FROM lab.numbers GROUP BY k"),)
    )
    made = replay(relations=(NUMBERS,), views=(view,), history=history, before=[("lab", n) for n in order], ticks=())
    return set(made["v"].start)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT k, SUM(x) AS s FROM lab.numbers GROUP BY k", set(SUMS.items())),
        ("SELECT k, AVG(x) AS s FROM lab.numbers GROUP BY k", {(1, 1.0 / 3), (2, SUMS[2] / 2)}),
        ("SELECT SUM(x) FILTER (WHERE k = 1) AS s FROM lab.numbers", {(1.0,)}),
        ("SELECT k, SUM(DISTINCT x) OVER (PARTITION BY k) AS s FROM lab.numbers", set(SUMS.items())),
        ("WITH q AS (SELECT k, x AS y FROM lab.numbers) SELECT k, SUM(y) AS s FROM q GROUP BY k", set(SUMS.items())),
        ("SELECT k FROM lab.numbers GROUP BY k HAVING SUM(x) = 1", {(1,)}),
        ("SELECT SUM(s) AS t FROM low", {(1.0 + SUMS[2],)}),
        ("SELECT k, SUM(m) AS s FROM lab.numbers GROUP BY k", {(1, Decimal("0.30")), (2, Decimal("3.00"))}),
        ("SELECT SUM(x) AS s FROM lab.numbers WHERE k > 9", {(None,)}),
        ("SELECT k, STDDEV_POP(m) AS s FROM lab.numbers GROUP BY k", {(1, 0.05), (2, 0.5)}),
        ("SELECT CORR(x, m) FILTER (WHERE k = 2) AS s FROM lab.numbers", {(1.0,)}),
    ],
)
def test_a_sum_is_exact_in_any_order(sql: str, expected: set[tuple[object, ...]]) -> None:
    for order in ((0, 1, 2, 3, 4), (0, 2, 1, 4, 3), (4, 3, 2, 1, 0)):
        assert state(sql, order) == expected
