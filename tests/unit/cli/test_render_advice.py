"""Advice as a person reads it."""

from __future__ import annotations

from headwater.advisor.advice import Advice, AdviceResult, AdvisedTable, Alternative, MeasuredRelation, Unadvised
from headwater.advisor.candidates import AuxiliaryKind
from headwater.cli.render.advice import draw_advice
from headwater.cli.render.page import plain_text


def alternative(*tables: AdvisedTable, maintaining: float = 10.0, tracing: float = 2_000.0) -> Alternative:
    stored = sum(table.stored_bytes for table in tables)
    return Alternative(tables=tables, maintaining=maintaining, tracing=tracing, stored_bytes=stored)


def test_what_to_keep_what_to_drop_and_why() -> None:
    lineage = AdvisedTable(kind=AuxiliaryKind.LINEAGE_VIEW, of="group_1", stored_bytes=2_500_000, saved=1_234.5)
    replica = AdvisedTable(kind=AuxiliaryKind.REPLICA, of="shop.sales", stored_bytes=900, saved=3.0)
    dear = AdvisedTable(kind=AuxiliaryKind.REPLICA, of="shop.stores", stored_bytes=900, saved=-7.0)
    advice = Advice(
        view="by_city",
        algorithm="exact",
        set_count=12,
        priced_count=7,
        recommended=alternative(lineage, replica, tracing=500.0),
        today=alternative(replica, dear),
        nothing=alternative(),
        everything=alternative(lineage, replica, dear, maintaining=99.0),
        relations=(
            MeasuredRelation(
                relation="shop.sales",
                reading="replica",
                rows=1_000,
                row_bytes=12.0,
                updates_per_hour=30.0,
                rows_per_update=1.5,
                trip_milliseconds=0.25,
            ),
        ),
        traces_per_hour=1.0,
        is_traced=False,
    )
    result = AdviceResult(
        views=(advice,), unadvised=(Unadvised(view="spread", reason="it is computed anew"),), written=("[a] b = 1",)
    )
    assert plain_text(draw_advice(result)).splitlines() == [
        "view by_city",
        "  add  the lineage view of group_1: without it 1,234.5 ms/h more, for 2.5 MB",
        "  keep a replica of shop.sales: without it 3.0 ms/h more, for 900 B",
        "  drop a replica of shop.stores: it costs 7.0 ms/h, and 900 B",
        "keep         maintaining  tracing  together  stored",
        "recommended         10.0    500.0     510.0  2.5 MB",
        "today               10.0  2,000.0   2,010.0  1.8 kB",
        "nothing             10.0  2,000.0   2,010.0     0 B",
        "everything          99.0  2,000.0   2,099.0  2.5 MB",
        "relation    read by   rows  bytes each  updates/h  rows each  round trip",
        "shop.sales  replica  1,000          12       30.0        1.5     0.25 ms",
        "traced 1.0 times per hour, a guess: it was not traced yet (--traces-per-hour sets it)",
        "12 sets are possible; exact priced 7, whole or in part; costs are predicted, in milliseconds of work per hour",
        "view spread: no choice, it is computed anew",
        "written into headwater.toml:",
        "  [a] b = 1",
        "a running `headwater run` applies it by itself; `headwater plan` shows what it does",
    ]
