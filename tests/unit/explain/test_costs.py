"""What `explain` says of a view's last batch, beside computing the view anew."""

from __future__ import annotations

import pytest

from headwater.explain.costs import ExplainedCost, SeenBatch, Work
from headwater.model.position import Tick
from headwater.model.relation import RelationName
from headwater.views.steps.segment_costs import ViewCost

SALES = RelationName(source="shop", name="sales")
IDLE = Work()


def explained(*, rows: int, seconds: float, selected: int = 0, fetched: int = 0, work: Work = IDLE) -> ExplainedCost:
    cost = ViewCost(segments={}, relations={SALES: 3.0}, whole=rows, per_commit=0.0, there=rows)
    batch = SeenBatch(lo=Tick(4), hi=Tick(9), changed={SALES: 12}, seconds=seconds)
    return ExplainedCost(cost=cost, batch=batch, selected=selected, fetched=fetched, work=work)


@pytest.mark.parametrize(
    ("rows", "selected", "seconds", "fetched", "work", "is_faster"),
    [
        (100_000, 100_000, 0.1, 0, IDLE, False),
        (100_000, 100_000, 0.7, 0, IDLE, True),
        (10_000_000, 10_000_000, 0.7, 0, IDLE, False),
        (10_000_000, 100_000, 0.7, 0, IDLE, True),
        (30_000_000, 100_000, 0.7, 0, IDLE, False),
        (100_000, 100_000, 0.7, 1_000_000, IDLE, False),
        (100_000, 100_000, 0.7, 0, Work(join_count=12), False),
        (1_000_000, 1_000_000, 0.7, 0, IDLE, True),
        (1_000_000, 1_000_000, 0.7, 0, Work(aggregate_count=5), False),
    ],
)
def test_it_says_where_recomputing_would_be_faster(
    rows: int, selected: int, seconds: float, fetched: int, work: Work, is_faster: bool
) -> None:
    told = explained(rows=rows, selected=selected, seconds=seconds, fetched=fetched, work=work)
    assert told.is_recomputing_faster is is_faster
    assert told.data["last_batch"]["is_recomputing_faster"] is is_faster
    assert ("that would be faster" in told.against_recomputing) is is_faster
    assert f"12 changed rows, ticks 5 to 9: reads about 36 rows, took {seconds:.1f} s" in told.against_recomputing


def test_without_a_batch_it_says_what_a_change_would_read() -> None:
    told = ExplainedCost(cost=explained(rows=10, seconds=1).cost, batch=None)
    assert told.reads == "about 3 rows for a changed row of shop.sales"
    assert told.against_recomputing.startswith("no batch is known yet; recomputing the view reads 10 rows")
    assert not told.is_recomputing_faster
