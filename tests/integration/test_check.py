"""`check` beside a running maintainer: nothing where nothing is wrong, and the very tick where something is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from audited import STRONG, VIEWS, AuditedWorld, assert_exact, audited_world, state_at
from pyspark.sql import SparkSession
from running import Running, running
from writers import busy_writers

from headwater.deltas.compare import difference
from headwater.deltas.on_arrow import ArrowBag
from headwater.deltas.stored_bag import Bag, held
from headwater.errors import HeadwaterError
from headwater.judge.result import ViewCheck
from headwater.model.guarantee import Guarantee
from headwater.model.position import Tick
from headwater.observe.events import ViewBorn
from headwater.sources.embedded import EmbeddedServer
from headwater.warehouse.journal import TableChange
from headwater.warehouse.kept_table import KeptTable
from headwater.warehouse.query import Warehouse

CHECKED = ("probing", "mixed", "lately")


@pytest.fixture
def world(three_servers: dict[str, EmbeddedServer], tmp_path: Path) -> Iterator[AuditedWorld]:
    with audited_world(three_servers, tmp_path / "shop") as made:
        made.note_before()
        made.write_project({name: VIEWS[name] for name in CHECKED}, settings="[maintenance]\nbatch_ticks = 20\n")
        yield made


def check(world: AuditedWorld, ticks: int | None) -> dict[str, ViewCheck]:
    return {one.view: one for one in world.open().check(ticks=ticks).views}


@contextmanager
def settled(maintainer: Running, transactions: int) -> Iterator[None]:
    """Do so many transactions in a block; after it they are all in the view."""
    due = maintainer.maintainer.log.last_tick + transactions
    yield
    maintainer.wait_until(lambda: maintainer.frontier("probing") >= due)


def touch(world: AuditedWorld, maintainer: Running, times: int) -> None:
    with settled(maintainer, times):
        for number in range(times):
            world.execute("shop", f"UPDATE sales SET amount = {number + 5} WHERE no = 8")


def spoil(monkeypatch: pytest.MonkeyPatch, change: Callable[[pa.Table], pa.Table]) -> None:
    """Change what is appended to the view "probing"; whoever appends to another never notices."""
    change_of = KeptTable.change

    def spoilt(table: KeptTable, rows: Bag, upto: Tick, after: Tick | None = None) -> TableChange | None:
        spoils = "/probing/" in table.folder
        return change_of(table, ArrowBag(change(held(rows).table)) if spoils else rows, upto, after)

    monkeypatch.setattr(KeptTable, "change", spoilt)


@pytest.mark.thorough
def test_check_beside_a_busy_maintainer(world: AuditedWorld, spark: SparkSession) -> None:
    writers = busy_writers(dict(world.servers), world.database, transactions=40_000, pause_seconds=0.6, seed=5)
    with running(world, spark) as maintainer:
        maintainer.wait_until(lambda: len(maintainer.heard(ViewBorn)) == len(CHECKED))
        writers.start()
        maintainer.wait_until(lambda: maintainer.frontier("mixed") > 60)
        before = maintainer.frontier("mixed")
        found = check(world, 3)
        assert found["mixed"].tick >= before
        maintainer.wait_until(lambda: maintainer.frontier("mixed") > found["mixed"].tick)  # it went on all the time
        writers.finish(stop=True)
    for name, one in found.items():
        promised = Guarantee.STRONG if name in STRONG else Guarantee.COMPLETE
        assert (one.promised, one.verdict.guarantee, one.verdict.first_bad_tick) == (promised, promised, None)
        assert 2 <= one.verdict.states_checked <= 3
    world.open().run(until_idle=True)
    assert_exact(world, spark)


def test_a_lost_row_is_found_at_its_tick(
    world: AuditedWorld, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.open().run(until_idle=True)
    with running(world, spark) as maintainer:
        touch(world, maintainer, 3)
        bad = Tick(maintainer.frontier("probing") + 3)
        spoil(monkeypatch, lambda rows: rows.filter(pc.not_equal(rows["_tick"], bad)))
        touch(world, maintainer, 6)  # the states after the bad one cannot even be read
        [found] = world.open().check("probing", ticks=3).views
    verdict = found.verdict
    assert not found.kept
    assert (verdict.guarantee, verdict.first_bad_tick) == (Guarantee.NONE, bad)
    right = judged_state(world, spark, bad)
    shown = Warehouse.open(maintainer.path).view_dataframe(spark, "probing", bad)
    assert verdict.difference == difference(right, {tuple(row): 1 for row in shown.collect()})
    assert verdict.difference is not None
    assert verdict.difference.size == 2, "the old row is still there, the new one is not"


@pytest.mark.thorough
def test_a_right_state_under_a_wrong_tick_is_weak(
    world: AuditedWorld, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.open().run(until_idle=True)
    with running(world, spark) as maintainer:
        touch(world, maintainer, 3)
        late = Tick(maintainer.frontier("probing") + 2)

        held: list[pa.Table] = []

        def hold(rows: pa.Table) -> pa.Table:
            """Keep one tick's rows back, and let them come with those of a later tick, whatever the batches are."""
            held.append(rows.filter(pc.equal(rows["_tick"], late)))
            others = rows.filter(pc.not_equal(rows["_tick"], late))
            later = pc.min(rows["_tick"].filter(pc.greater(rows["_tick"], late)))
            if later.as_py() is None:
                return others
            due, held[:] = pa.concat_tables(held), []
            ticks = pa.repeat(later, due.num_rows)
            return pa.concat_tables([others, due.set_column(due.column_names.index("_tick"), "_tick", ticks)])

        spoil(monkeypatch, hold)
        with settled(maintainer, 4):
            for amount in (50, 51, 52, 53):  # of one source: their ticks come in this order
                world.execute("shop", f"UPDATE sales SET amount = {amount} WHERE no = 8")
        [found] = world.open().check("probing", ticks=None).views
    verdict = found.verdict
    assert (verdict.guarantee, verdict.first_bad_tick) == (Guarantee.WEAK, late)
    assert verdict.states_checked == found.tick + 1, "every tick since the birth"


def test_a_view_that_is_being_replaced_is_not_compared_with_its_new_sql(
    world: AuditedWorld, spark: SparkSession
) -> None:
    world.open().run(until_idle=True)
    with running(world, spark) as maintainer:
        touch(world, maintainer, 1)
        world.write_project({"probing": VIEWS["probing"].replace("> 1", "> 2")})
        with pytest.raises(HeadwaterError, match="not yet what the project says"):
            world.open().check()


def judged_state(world: AuditedWorld, spark: SparkSession, tick: Tick) -> dict[tuple[object, ...], int]:
    from audited import judge  # noqa: PLC0415 - here it is asked about one view that is wrong on purpose

    return dict(state_at(judge(world, spark).expected["probing"], tick))
