"""Views over views, and views that compute the same: kept once, computed once, and each exact at every tick."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from audited import AuditedWorld, assert_exact, assert_reads_agree, audited_world
from pyspark.sql import SparkSession
from running import running
from writers import write

from headwater.errors import InvalidView, SeveralErrors
from headwater.observe.events import BatchCommitted, Event, SourceConnected, SourceDisconnected, ViewBorn, ViewComputed
from headwater.project.plan_result import Action
from headwater.sources.embedded import EmbeddedServer
from headwater.warehouse.query import Warehouse

BY_KIND = """
    SELECT p.kind, COUNT(*) AS sold, SUM(s.amount) AS amount, SUM(s.amount * p.price) AS paid
    FROM shop.sales s JOIN shop.products p ON s.product = p.id GROUP BY p.kind
"""
OVER = {
    "by_kind": BY_KIND,
    "rich_kinds": "SELECT b.kind, b.paid FROM by_kind b WHERE b.paid > 100; -- a view over a view",
    "richness": "SELECT COUNT(*) AS kinds, SUM(r.paid) AS paid FROM Rich_Kinds r",
    "twin": BY_KIND.replace("s.amount", "t.amount").replace("sales s", "sales t").replace("s.product ", "t.product "),
}
MORE = {
    "where_rich": """
        SELECT p.id, r.kind FROM rich_kinds r JOIN shop.products p ON p.kind = r.kind
        WHERE r.paid > (SELECT MIN(b.paid) FROM by_kind b)
    """
}


@pytest.fixture
def world(three_servers: dict[str, EmbeddedServer], tmp_path: Path) -> Iterator[AuditedWorld]:
    with audited_world(three_servers, tmp_path / "shop") as made:
        made.note_before()
        yield made


def auxiliary_tables(world: AuditedWorld) -> dict[str, set[str]]:
    """Return the auxiliary tables of every view."""
    views = Warehouse.open(str(world.open().project.warehouse)).catalog().views
    return {name: set(entry.segments) for name, entry in views.items()}


def on_disk(world: AuditedWorld) -> set[str]:
    folder = Path(world.open().project.warehouse, "segments")
    return {str(one.relative_to(folder)) for one in folder.glob("*/*") if any(one.iterdir())}


@pytest.mark.thorough
def test_what_views_have_in_common_is_kept_and_computed_once(world: AuditedWorld, spark: SparkSession) -> None:
    world.write_project(OVER, settings="[maintenance]\nbatch_ticks = 40\n")
    heard: list[Event] = []
    world.open().run(until_idle=True)
    write(dict(world.servers), world.database, transactions=25, seed=1)
    world.open(heard.append).run(until_idle=True)
    tables = auxiliary_tables(world)
    group = tables["by_kind"]
    assert [table.partition("_")[0] for table in group] == ["group"]
    assert tables["twin"] == tables["rich_kinds"] == group
    assert tables["richness"] > group
    assert on_disk(world) == set.union(*tables.values()), "each stands once on disk"
    [shared] = {table.partition("/")[0] for table in group}
    read = Counter(
        (event.lo, event.hi)
        for event in heard
        if isinstance(event, ViewComputed) and any(name.name == shared and n for name, n in event.read_rows.items())
    )
    assert read
    assert set(read.values()) == {1}, "one view of a batch looked at the groups, for all of them"
    assert_exact(world, spark)

    world.write_project({**OVER, **MORE}, settings="[maintenance]\nbatch_ticks = 40\n")
    write(dict(world.servers), world.database, transactions=25, seed=2)
    with running(world, spark) as maintainer:
        maintainer.wait_until(lambda: maintainer.heard(ViewBorn))
    assert {event.view for event in maintainer.heard(ViewBorn)} == {"where_rich"}  # type: ignore[attr-defined]
    assert auxiliary_tables(world)["where_rich"] > group, "a view that comes later finds it there"
    write(dict(world.servers), world.database, transactions=25, seed=3)
    world.open().run(until_idle=True, rebuild=("twin",))
    assert not auxiliary_tables(world)["twin"] & group, "who is rebuilt trusts nothing that is there"
    write(dict(world.servers), world.database, transactions=25, seed=4)
    del (remaining := {**OVER, **MORE})["richness"]
    world.write_project(remaining)
    world.open().run(until_idle=True, yes=True)
    judgement = assert_exact(world, spark)
    assert set(judgement.verdicts) == set(remaining)
    assert_reads_agree(world, judgement, spark)
    checked = world.open().check("where_rich", ticks=3)
    assert [view.verdict.guarantee.value for view in checked.views] == ["complete"]


def test_changing_a_lower_view_changes_those_above_and_it_cannot_be_dropped(
    world: AuditedWorld, spark: SparkSession
) -> None:
    world.write_project(OVER)
    world.open().run(until_idle=True)
    changed = {**OVER, "by_kind": BY_KIND.replace("GROUP BY", "WHERE s.amount > 2 GROUP BY")}
    world.write_project(changed)
    steps = {step.name: step for step in world.open().plan().steps}
    assert {name for name, step in steps.items() if step.action is Action.CHANGE} == {
        "by_kind",
        "rich_kinds",
        "richness",
    }
    assert steps["by_kind"].reason == "its SQL changed"
    assert steps["richness"].reason == "view by_kind, which it reads, changed"
    world.open().run(until_idle=True, yes=True)
    assert not auxiliary_tables(world)["by_kind"] & auxiliary_tables(world)["twin"]
    assert auxiliary_tables(world)["by_kind"] == auxiliary_tables(world)["rich_kinds"]
    write(dict(world.servers), world.database, transactions=25, seed=5)
    world.open().run(until_idle=True, yes=True)
    assert_exact(world, spark)
    told = world.open().explain("rich_kinds")
    assert [one["origin"] for one in told.data["segments"]] == ["by_kind", "by_kind", ""]
    assert "from view by_kind" in told.text

    del changed["rich_kinds"]
    world.write_project(changed)
    with pytest.raises(InvalidView, match="HW-204") as caught:
        world.open().plan()
    assert "rich_kinds" in caught.value.detail.lower()
    world.write_project({**OVER, "by_kind": "SELECT r.kind, 1 AS sold, 2 AS amount, r.paid FROM rich_kinds r"})
    with pytest.raises(SeveralErrors, match="HW-235"):  # each view of the circle says so
        world.open().plan()


@pytest.mark.thorough
def test_a_view_that_waits_holds_nobody_up_and_goes_on_from_its_own_tick(
    world: AuditedWorld, spark: SparkSession
) -> None:
    """Both read one auxiliary table; the source that only one of them asks is away for a while."""
    views = {
        "by_kind": BY_KIND,
        "asking": "SELECT c.id, b.kind, b.sold FROM by_kind b JOIN crm.customers c ON c.city = b.kind",
    }
    world.write_project(views, probed=("crm.customers",), settings="[maintenance]\nbatch_ticks = 10\n")
    world.open().run(until_idle=True)
    assert auxiliary_tables(world)["asking"] >= auxiliary_tables(world)["by_kind"] != set()
    with running(world, spark) as maintainer:
        maintainer.wait_until(lambda: len(maintainer.heard(SourceConnected)) == 2)
        world.servers["crm"].stop()
        maintainer.wait_until(lambda: maintainer.heard(SourceDisconnected))
        stood = maintainer.frontier("asking")
        for number in range(12):
            world.execute("shop", f"INSERT INTO sales VALUES ({900 + number}, 3, {1 + number}, 5)")
        maintainer.wait_until(lambda: maintainer.frontier("by_kind") >= stood + 12)
        assert maintainer.frontier("asking") == stood
        world.servers["crm"].start()
        world.execute("crm", "UPDATE customers SET city = 1 + city % 5 WHERE id < 20")
        maintainer.wait_until(lambda: maintainer.frontier("asking") >= stood + 13)
        world.execute("shop", "DELETE FROM sales WHERE no > 900")
        seen = len(maintainer.heard(BatchCommitted))
        maintainer.wait_until(lambda: len(maintainer.heard(BatchCommitted)) > seen)
    world.open().run(until_idle=True)
    assert assert_exact(world, spark).tick_count >= 14
