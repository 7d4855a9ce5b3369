"""However a view is kept, and whenever: every state it shows is the right one, and sources are asked as was chosen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from audited import VIEWS, AuditedWorld, assert_exact, assert_reads_agree, audited_world
from pyspark.sql import SparkSession
from running import running
from writers import write

from headwater.advisor.analyze import BATCHES
from headwater.errors import HeadwaterError
from headwater.model.guarantee import Guarantee
from headwater.model.position import Tick
from headwater.observe.events import Event, ProbeAnswered, SelfMaintenanceTested, ViewBorn
from headwater.sources.embedded import EmbeddedServer
from headwater.warehouse.query import Warehouse

BY_KIND = """
    SELECT p.kind, COUNT(*) AS sold, MAX(s.amount) AS most FROM shop.sales s JOIN shop.products p ON s.product = p.id
    GROUP BY p.kind
"""
KINDS = {
    "own": (VIEWS["probing"], "self"),
    "asking": (BY_KIND, "probe"),
    "anew": (BY_KIND, "recompute-self"),
    "anew_asking": (VIEWS["probing"], "recompute-probe"),
    "deciding": (VIEWS["mixed"], "runtime"),
}
BOUGHT = """
    SELECT s.no, s.product, s.amount, p.id, p.kind FROM shop.sales s JOIN shop.products p ON s.product = p.id
"""


@pytest.fixture
def world(three_servers: dict[str, EmbeddedServer], tmp_path: Path) -> Iterator[AuditedWorld]:
    with audited_world(three_servers, tmp_path / "shop") as made:
        made.note_before()
        yield made


def kept(**kinds: str) -> str:
    return "\n".join(f'[views.{name}]\nmaintenance = "{kind}"' for name, kind in kinds.items())


def test_every_kind_is_exact_and_asks_as_it_should(world: AuditedWorld, spark: SparkSession) -> None:
    views = {name: sql for name, (sql, _) in KINDS.items()}
    world.write_project(views, probed=(), settings=kept(**{name: kind for name, (_, kind) in KINDS.items()}))
    world.open().run(until_idle=True)
    events: list[Event] = []
    for seed in (3, 4):
        write(dict(world.servers), world.database, transactions=20, seed=seed)
        world.open(events.append).run(until_idle=True)
    judgement = assert_exact(world, spark)
    assert_reads_agree(world, judgement, spark)
    assert judgement.tick_count >= 20
    asked = {event.view for event in events if isinstance(event, ProbeAnswered)}
    assert asked >= {"asking", "anew_asking", "deciding"}
    assert not asked & {"own", "anew"}
    catalog = Warehouse.open(str(world.open().project.warehouse)).catalog()
    assert {name: Guarantee(view.guarantee) for name, view in catalog.views.items() if view.guarantee == "strong"} == {
        "anew": Guarantee.STRONG,
        "anew_asking": Guarantee.STRONG,
    }
    assert not catalog.views["anew"].segments, "nothing is kept beside a view that is recomputed, but replicas"
    assert {str(name) for name in catalog.replicas} == {"crm.customers", "shop.products", "shop.sales"}
    (analysis,) = world.open().analyze("asking").views
    assert all(cost.measured is not None and cost.measured.agrees for cost in analysis.kinds), "auxiliary tables at lo"


@pytest.mark.thorough
def test_no_source_is_asked_for_what_keys_and_references_tell(world: AuditedWorld, spark: SparkSession) -> None:
    world.execute(
        "shop", "UPDATE sales SET product = 1 WHERE product IS NULL; ALTER TABLE sales ALTER product SET NOT NULL"
    )
    world.execute("shop", "ALTER TABLE sales ADD FOREIGN KEY (product) REFERENCES products")
    world.note_before()
    world.write_project({"bought": BOUGHT}, probed=(), settings=kept(bought="runtime"))
    world.open().run(until_idle=True)
    steps = [
        ("INSERT INTO sales VALUES (900, 1, 3, 5)", True, "the view shows product 3"),
        ("INSERT INTO products VALUES (80, 2, 1, 1)", True, "a new product has no sales"),
        ("INSERT INTO sales VALUES (901, 1, 80, 5)", False, "the view does not show product 80"),
        ("UPDATE products SET kind = 5 WHERE id = 3", False, "which sales product 3 has is not known"),
        ("DELETE FROM sales WHERE product = 80; DELETE FROM products WHERE id = 80", True, "all sales of 80 went"),
        ("INSERT INTO products VALUES (81, 2, 1, 1); INSERT INTO sales VALUES (902, 2, 81, 1)", True, "both came"),
    ]
    for sql, suffices, why in steps:
        events: list[Event] = []
        world.execute("shop", f"BEGIN; {sql}; COMMIT")
        world.open(events.append).run(until_idle=True)
        tested = [event for event in events if isinstance(event, SelfMaintenanceTested)]
        assert [event.suffices for event in tested] == [suffices], why
        assert suffices is not any(isinstance(event, ProbeAnswered) for event in events), why
    opened = world.open()
    (counted,) = opened.status().self_maintenance
    assert (counted.view, counted.batch_count, counted.unasked_count) == ("bought", 1, 1), "since the last one began"
    assert [bool(entry.probe_count) for entry in opened.history("bought").commits] == [False, True, True, False, False]
    assert (
        "shop.sales by product: the rows of a key that comes or goes in shop.products" in opened.explain("bought").text
    )
    judgement = assert_exact(world, spark)
    assert judgement.tick_count == len(steps)
    (analysis,) = opened.analyze("bought").views
    assert analysis.batch_count == BATCHES
    measured = {cost.maintenance: cost.measured for cost in analysis.kinds if cost.measured is not None}
    assert set(measured) == {"self", "probe", "recompute-self", "recompute-probe", "runtime"}
    assert all(cost.agrees for cost in measured.values()), "every kind finds the changes that the view has"
    assert (measured["self"].probe_count, measured["recompute-self"].rows_in_source) == (0, 0)
    assert measured["runtime"].unasked_count > measured["probe"].unasked_count == 0
    assert measured["probe"].rows_in_source < measured["recompute-probe"].rows_in_source
    assert [cost.kind for cost in analysis.kinds if cost.in_use] == ["runtime"]


@pytest.mark.thorough
def test_a_view_is_refreshed_when_it_is_due_or_asked_for(world: AuditedWorld, spark: SparkSession) -> None:
    views = {name: sql for name, sql in VIEWS.items() if name in ("probing", "mixed")}
    views |= {"by_kind": BY_KIND, "steady": BY_KIND}
    refreshes = {"by_kind": "on demand", "mixed": "every 1 h", "probing": "every 1 s"}
    settings = "\n".join(f'[views.{name}]\nrefresh = "{when}"' for name, when in refreshes.items())
    ahead = "\n[settings.batch]\nreplica_behind_rows = 5\n"  # replicas go ahead of views that wait
    world.write_project(views, settings=settings + ahead)
    with running(world, spark) as maintainer:
        maintainer.wait_until(lambda: len(maintainer.heard(ViewBorn)) == len(views))
        births = {name: maintainer.frontier(name) for name in views}
        write(dict(world.servers), world.database, transactions=20, seed=5)
        last = lambda: maintainer.maintainer.log.last_tick  # noqa: E731 - as it is when asked
        maintainer.wait_until(lambda: last() > births["steady"] and maintainer.frontier("probing") == last())
        maintainer.wait_until(lambda: maintainer.frontier("steady") == last())
        assert maintainer.frontier("by_kind") == births["by_kind"], "nobody asked for it"
        assert maintainer.frontier("mixed") == births["mixed"], "it is not due"
        assert maintainer.maintainer._needed <= births["mixed"], "the log is kept for the slowest"
        (refreshed,) = world.open().refresh("by_kind").views
        assert (refreshed.lo, refreshed.hi) == (births["by_kind"], last())
        status = {view.name: view for view in world.open().status().views}
        assert (status["mixed"].due_at is not None, status["by_kind"].refresh) == (True, "on demand")
    write(dict(world.servers), world.database, transactions=20, seed=6)
    world.open().run(until_idle=True)
    opened = world.open()
    behind = {name: opened.status().log_last != maintainer.frontier(name) for name in views}
    assert (behind["steady"], behind["by_kind"], behind["mixed"]) == (False, True, True)
    result = opened.refresh("by_kind", "mixed")
    assert not result.maintained
    assert {view.hi for view in result.views} == {opened.status().log_last}
    judgement = assert_exact(world, spark)
    assert all(verdict.states_checked > Tick(20) for verdict in judgement.verdicts.values()), "every tick is one state"


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ('[relations."shop.sales"]\nreading = "probe"\n[views.bought]\nmaintenance = "self"', "HW-140"),
        ('[relations."shop.sales"]\nreading = "replica"\n[views.bought]\nmaintenance = "recompute-probe"', "HW-140"),
        ('[views.bought]\nmaintenance = "runtime"\nalgorithm = "sweep"', "HW-141"),
        ('[views.bought]\nmaintenance = "probe"\nrefresh = "on demand"\nalgorithm = "sweep"', "HW-141"),
        ('[views.bought]\nmaintenance = "recompute-self"\nstrict = true', "HW-219"),
    ],
)
def test_what_contradicts_itself_is_refused(world: AuditedWorld, settings: str, code: str) -> None:
    world.write_project({"bought": BOUGHT}, probed=(), settings=settings)
    with pytest.raises(HeadwaterError) as refused:
        world.open().plan()
    assert refused.value.code == code
