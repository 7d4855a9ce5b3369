"""Rows of views are traced to what triggers in the sources noted, at past ticks, while writers write."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from audited import AuditedWorld, audited_world
from audited_rows import AuditedRows, Row
from lineage_cases import lineage_by_row
from lineage_oracle import Derived, Interpreter
from pyspark.sql import SparkSession
from running import running
from volume import volume
from writers import busy_writers

from headwater.deltas.lookup import Origin
from headwater.errors import InvalidView, NotReadable
from headwater.lineage.result import ChangedRows, TraceResult
from headwater.lineage.trace_view import trace_view
from headwater.lineage.traced import leaves
from headwater.model.moment import AtPosition, AtTick
from headwater.model.position import LSN, Tick
from headwater.model.relation import COUNT, RelationName
from headwater.observe.events import Event, SourceConnected, ViewBorn
from headwater.project.resolve import resolve_project
from headwater.sources.embedded import EmbeddedServer
from headwater.warehouse.query import Warehouse

TICKS = volume(40, 300)
TRACES = volume(1, 12)

VIEWS = {
    "bought": """
        SELECT s.no AS no, c.city AS city, c.score + s.amount AS total
        FROM shop.sales AS s JOIN crm.customers AS c ON s.customer = c.id WHERE s.amount > 1
    """,
    "by_kind": """
        SELECT p.kind AS kind, COUNT(*) AS sold, SUM(s.amount) AS amount
        FROM shop.sales AS s JOIN shop.products AS p ON s.product = p.id GROUP BY p.kind
    """,
    "how_often": """
        SELECT q.times AS times, COUNT(*) AS customers
        FROM (SELECT s.customer AS customer, COUNT(*) AS times FROM shop.sales AS s GROUP BY s.customer) AS q
        GROUP BY q.times
    """,
    "strangers": """
        SELECT c.city AS city FROM crm.customers AS c
        WHERE NOT EXISTS (SELECT 1 AS one FROM crm.visits AS v WHERE v.customer = c.id)
    """,
    "all_products": """
        SELECT p.kind AS kind, s.amount AS amount FROM shop.products AS p LEFT JOIN shop.sales AS s ON s.product = p.id
    """,
}


@pytest.fixture
def world(three_servers: dict[str, EmbeddedServer], tmp_path: Path) -> Iterator[AuditedWorld]:
    with audited_world(three_servers, tmp_path / "shop") as made:
        yield made


@pytest.mark.thorough
def test_oracle_traces_at_past_ticks_while_sources_change(world: AuditedWorld, spark: SparkSession) -> None:
    """Traced through replicas and auxiliary tables, and by asking the sources now: both are what the triggers noted."""
    world.write_project(VIEWS, probed=("crm.visits",), settings="[maintenance]\nbatch_ticks = 20\n")

    def listen(event: Event) -> None:
        if isinstance(event, SourceConnected):
            world.note_before(event.source)

    writers = busy_writers(dict(world.servers), world.database, transactions=40_000, pause_seconds=0.5, seed=5)
    traces: list[tuple[TraceResult, bool]] = []
    with running(world, spark, listen) as maintainer:
        maintainer.wait_until(lambda: maintainer.heard(ViewBorn))
        writers.start()
        maintainer.wait_until(lambda: min(maintainer.frontier(name) for name in VIEWS) >= TICKS)
        chance = random.Random(9)
        resolved = resolve_project(world.open().project, spark)
        for name in [name for name in VIEWS for _ in range(TRACES)]:
            at = AtTick(tick=Tick(chance.randint(1, maintainer.frontier(name))))
            traces += [
                (trace_view(spark, resolved, name, where=None, at=at, whole_rows=whole), whole)
                for whole in (False, True)
            ]
        writers.finish(stop=True)
    warehouse = Warehouse.open(str(world.open().project.warehouse))
    assert warehouse.log.last_tick > max(result.tick for result, _ in traces), "the sources went on"
    noted = AuditedRows(world, warehouse)
    assert sum(check(result, noted, whole=whole) for result, whole in traces) > 50
    origins = {(one.relation, whole): one.origin for result, whole in traces for one in result.relations}
    assert origins["shop.products", False] is Origin.REPLICA
    assert origins["shop.products", True] is Origin.SOURCE, "a replica has only the columns that views need"
    assert "crm.visits" not in {relation for relation, _ in origins}, "a partner that must not be is no lineage"


def test_what_a_transaction_changed_and_what_keeps_a_row_out(world: AuditedWorld) -> None:
    world.write_project({name: VIEWS[name] for name in ("bought", "by_kind")}, probed=("crm.customers",))
    project = world.open()
    project.run(until_idle=True)
    world.execute("shop", "UPDATE sales SET amount = 9 WHERE no = 5")
    [[position]] = world.execute("shop", "SELECT pg_current_wal_insert_lsn()::text")
    project.run(until_idle=True)

    impact = project.impact(f"shop:{position}")
    assert [(one.name, signs(one)) for one in impact.relations] == [("shop.sales", [-1, 1])]
    [shop] = [one for one in project.status().sources if one.name == "shop"]
    assert shop.last_transaction == impact.positions[0]
    [position] = shop.positions
    assert project.impact(str(position)).tick == impact.tick, "what status shows has come"
    assert project.view("bought").at(str(position)).arrow().num_rows > 0
    with pytest.raises(NotReadable, match="HW-417"):
        project.impact(AtPosition(source="shop", text=LSN.text(position.offset + 1)))
    changed = {one.name: one for one in impact.views}
    assert signs(changed["bought"]) == [-1, 1]
    assert changed["bought"].rows["no"].to_pylist() == [5, 5]
    assert signs(changed["by_kind"]) == [-1, 1]
    assert [one.tick for one in project.row_impact("shop.sales", "no = 5").views] == [impact.tick, impact.tick]

    derived = {one.view: one.rows for one in project.row_impact("shop.sales", "no = 5", at=impact.tick).views}
    assert derived["bought"]["no"].to_pylist() == [5]
    [kind] = derived["by_kind"]["kind"].to_pylist()
    assert kind in changed["by_kind"].rows["kind"].to_pylist()

    assert not project.why_not("bought", "no = 5").obstacles
    [small] = project.why_not("bought", "no = 9").obstacles
    assert small.text == "not true: sales.amount > 1 (with sales.amount = 0)"
    [missing] = project.why_not("bought", "no = 9999").obstacles
    assert missing.text == "no row of shop.sales has no = 9999"
    frames = project.view("bought").trace("no = 5")
    assert {name: frame.count() for name, frame in frames.items()} == {"shop.sales": 1, "crm.customers": 1}
    with pytest.raises(InvalidView, match="HW-135"):
        project.why_not("bought", "number = 5")
    with pytest.raises(InvalidView, match="HW-133"):
        project.trace("bought", where="number = 5")


def signs(changed: ChangedRows) -> list[int]:
    counts: list[int] = changed.rows[COUNT].to_pylist()
    return counts


def check(result: TraceResult, noted: AuditedRows, *, whole: bool) -> int:
    """Compare a trace with the definition over what triggers noted; return how many view rows were traced."""
    rows = noted.at(result.tick)
    columns = {str(name): one.column_names for name, one in noted.relations.items()}
    derived = Interpreter(columns, {str(name): own for name, own in rows.items()}).run(VIEWS[result.view])
    selected = list(zip(*(result.rows[name].to_pylist() for name in result.rows.column_names[:-1]), strict=True))
    assert {one.values for one in derived} == set(selected)
    shown = {str(leaf.name): leaf.columns for leaf in leaves(result.tree)}
    assert not whole or shown == {name: columns[name] for name in shown}
    expected = [_expected(row, derived, rows, columns, shown) for row in selected]
    assert lineage_by_row(result.tree, len(selected)) == expected, (result.view, result.tick)
    return len(selected)


def _expected(
    row: Row,
    derived: Sequence[Derived],
    rows: dict[RelationName, list[Row]],
    columns: dict[str, tuple[str, ...]],
    shown: dict[str, tuple[str, ...]],
) -> set[tuple[str, Row, int]]:
    """Return the source rows of a row of a view, of each the columns that were shown, and how often it is there."""
    named = {str(name): own for name, own in rows.items()}
    behind = {one for found in derived if found.values == row for one in found.lineage}

    def cut(relation: str, values: Row) -> Row:
        return tuple(values[columns[relation].index(name)] for name in shown[relation])

    cut_rows = {relation: [cut(relation, values) for values in named[relation]] for relation in shown}
    return {
        (relation, cut_rows[relation][place], cut_rows[relation].count(cut_rows[relation][place]))
        for relation, place in behind
    }
